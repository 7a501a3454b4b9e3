"""The GPU's benchmark: what is written when, without a GPU."""
import json
import time

import jax
import pytest

from experiments.bench import gpu, quotes


def job(name, compiled):
  return gpu.Job(f'group/{name}', compiled, lambda s: dict(seconds=s))


@pytest.fixture
def record(tmp_path, monkeypatch):
  monkeypatch.setattr(gpu, 'seconds_of', lambda call: call())
  return gpu.Record(tmp_path / 'gpu.json')


def broken():
  raise RuntimeError('no such kernel\nand much more')


def test_what_does_not_compile_or_run_is_told_and_the_rest_measured(record):
  def full():
    raise jax.errors.JaxRuntimeError('RESOURCE_EXHAUSTED: memory')

  jobs = [job('bad', broken), job('full', lambda: full),
          job('good', lambda: lambda: 0.123456)]
  gpu.measure(jobs, record, time.monotonic() + 60, 2)
  found = json.loads(record.path.read_text())['measured']
  assert found['group/bad'] == dict(error='RuntimeError: no such kernel')
  assert 'RESOURCE_EXHAUSTED' in found['group/full']['error']
  assert found['group/good']['seconds'] == 0.1235
  # Another start goes on with what is there.
  assert 'group/good' in gpu.Record(record.path)


def test_nothing_begins_when_time_is_up(record, capsys):
  gpu.measure([job('late', broken)], record, time.monotonic() - 1, 1)
  assert 'goes on' in capsys.readouterr().out
  assert 'group/late' not in record


def test_the_readmes_have_a_round_by_defense_and_what_64_seeds_cost():
  """By hand: .1457 and .238 of .082 ms; .082 of .0688; four are over .164."""
  lines = quotes.gpu().splitlines()
  assert lines[2] == '| none | 0.082 ms | 1.00 |'
  assert '| gafm | 0.146 ms | 1.78 |' in lines
  assert lines[-1] == '| rvfr | 0.238 ms | 2.90 |'
  assert quotes.gpu_seeds() == '1.2' and quotes.gpu_compiling() == '7 to 13'
  assert quotes.gpu_twice() == '21' and quotes.gpu_defenses() == '25'
  assert quotes.gpu_ratios() == '0.88 to 1.56'
  peers = quotes.gpu_peers()
  assert '| splitNN, 64 seeds | H200 | 0.087 s | 0.12 s | 1.38 |' in peers


def test_keys_name_each_measurement_once():
  """Without making data: of what is compiled nothing is."""
  keys = [j.key for make in (gpu.convolutions, gpu.networks) for j in make()]
  assert len(keys) == len(set(keys)) and 'model/vgg13/bfloat16' in keys
