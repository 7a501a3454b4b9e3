"""As many trainings at a time as fit, with a device that says what it has."""
import gc
from pathlib import Path
import subprocess
import sys
from types import SimpleNamespace
import weakref

import jax
import pytest

from tests.devices import of_a_cpu, of_a_gpu
from tests.runner.compiled.test_families import config
from vfljax.runner import run
from vfljax.runner.cli import arguments
from vfljax.runner.compiled import compiling, families, fitting, programs
from vfljax.runner.compiled.families import Family
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import jobs
from vfljax.runner.machine import exhausted

FULL = 'RESOURCE_EXHAUSTED: Out of memory allocating 99 bytes.'


def analysis(temporary, stays):
  return SimpleNamespace(
      temp_size_in_bytes=temporary, argument_size_in_bytes=stays,
      output_size_in_bytes=7, alias_size_in_bytes=7,
  )


def test_the_most_that_fit():
  needs = analysis(600, 100)
  assert fitting.most(needs, 64, 1000) == 64
  assert fitting.most(needs, 64, 700 / 0.9) == 64
  assert fitting.most(needs, 64, 400 / 0.9) == 32
  assert fitting.most(needs, 64, 50) == 1
  assert fitting.most(needs, 64, 0) == fitting.most(None, 64, 9) == 64


@pytest.mark.parametrize('devices, cells, wanted, want', [
    (1, 40, 39, 20), (1, 40, 19, 10), (1, 40, 1, 1), (1, 7, 6, 1), (1, 1, 0, 0),
    (2, 40, 19, 10), (2, 40, 1, 2), (2, 2, 1, 0), (4, 12, 11, 4),
])
def test_pieces_are_equal(devices, cells, wanted, want, monkeypatch):
  monkeypatch.setattr(jax, 'local_device_count', lambda: devices)
  job: jobs.Job = SimpleNamespace()  # pyright: ignore
  found = fitting.fewer(Family('a', job, {}, cells, None), wanted)
  assert (found.cells if found else 0) == want


def small(**changed):
  """One job: 4 trainings on two devices."""
  own = dict(seeds=4, listed_attacks=(), alone=False)
  return config('none', **own | changed)


def results(given, folder):
  table = arguments.load_data(given.data)
  run.run(given, table, str(folder))
  return Path(folder, 'results.jsonl').read_bytes()


@pytest.fixture(scope='module')
def undisturbed(tmp_path_factory):
  return results(small(), tmp_path_factory.mktemp('whole') / 'out')


@pytest.fixture
def pieces(monkeypatch):
  """How many trainings the calls of the programs in use have."""
  found, plain = [], programs.Programs.compiled

  def compiled(self, job):
    found.append(fitting.played(self._family))
    return plain(self, job)

  monkeypatch.setattr(programs.Programs, 'compiled', compiled)
  return found


@pytest.mark.slow
def test_as_many_as_the_device_has_room_for(
    monkeypatch, pieces, undisturbed, tmp_path
):
  """The results are the same bytes, in the same files."""
  monkeypatch.setattr(fitting, 'limit', lambda: 1000)
  monkeypatch.setattr(
      programs.Programs, 'memory',
      lambda self: analysis(300 * fitting.played(self._family), 100),
  )
  assert results(small(), tmp_path / 'out') == undisturbed
  assert pieces == [2]


def full_once(monkeypatch, times=1):
  """The device's memory ends in the first so many jobs."""
  plain, left = run._run_job, [None] * times

  def play(*arguments):
    if left:
      left.pop()
      raise jax.errors.JaxRuntimeError(FULL)
    return plain(*arguments)

  monkeypatch.setattr(run, '_run_job', play)


@pytest.mark.slow
def test_the_end_of_memory_is_met_once_with_half(
    monkeypatch, pieces, undisturbed, tmp_path
):
  full_once(monkeypatch)
  assert results(small(), tmp_path / 'out') == undisturbed
  assert pieces == [4, 2]


@pytest.mark.slow
def test_the_end_of_memory_met_twice_is_told(monkeypatch, pieces, tmp_path):
  full_once(monkeypatch, 2)
  with pytest.raises(UserError, match='too little memory'):
    results(small(), tmp_path / 'out')
  assert pieces == [4, 2]


def test_who_has_chosen_is_told_at_once(monkeypatch, pieces, tmp_path):
  full_once(monkeypatch)
  with pytest.raises(UserError, match='seeds_per_chunk'):
    results(small(seeds_per_chunk=4), tmp_path / 'out')
  assert pieces == [4]


@of_a_cpu
def test_what_will_not_fit_is_said_before_it_begins(
    monkeypatch, capsys, tmp_path
):
  monkeypatch.setattr(exhausted, 'memory', lambda: 1000)
  full_once(monkeypatch)
  with pytest.raises(UserError, match='too little memory'):
    results(small(seeds_per_chunk=4), tmp_path / 'out')
  assert 'Memory: a program takes about' in capsys.readouterr().out


FILLED = '''
import os
os.environ['XLA_PYTHON_CLIENT_MEM_FRACTION'] = '.03'
os.environ['XLA_PYTHON_CLIENT_PREALLOCATE'] = 'true'
import pathlib, re, sys
import jax
import jax.numpy as jnp
import numpy as np
from tests.runner.compiled.test_fitting import results, small
from vfljax.runner import run
from vfljax.runner.compiled import fitting, programs
from vfljax.runner.config import ModelConfig

jax.config.update('jax_default_matmul_precision', 'highest')
compiled, play, calls, needs, filled = (
    programs.Programs.compiled, run._run_job, [], [], [])

def noted(self, job):
  calls.append(fitting.played(self._family))
  needs.append(self.memory())
  return compiled(self, job)

def full(*arguments):
  if not filled:  # All but what trainings and 3/4 of the rest take.
    stats = jax.local_devices()[0].memory_stats()
    left = needs[-1].argument_size_in_bytes + .75 * needs[-1].temp_size_in_bytes
    size = int(stats['bytes_limit'] - stats['bytes_in_use'] - left)
    filled.append(jax.block_until_ready(jnp.ones(size // 4)))
  return play(*arguments)

programs.Programs.compiled = noted
given = small(
    seeds=16, model=ModelConfig(algorithm='vhnn', bottom=(1024, 1024), top=(9,))
)
folder = pathlib.Path(sys.argv[1])
found = [results(given, folder / 'whole')]
run._run_job = full
found.append(results(given, folder / 'halves'))
assert calls == [16, 16, 8], calls
whole, halves = (
    np.array(re.findall(rb'-?\\d+\\.\\d+(?:e-?\\d+)?', text), float)
    for text in found
)
assert len(whole) == len(halves) == 48  # Three of each training.
np.testing.assert_allclose(whole, halves, atol=5e-3)
'''


@of_a_gpu
def test_the_end_of_a_real_devices_memory_is_met_with_half(tmp_path):
  """Of which something else has taken more than the program was told of."""
  call = [sys.executable, '-c', FILLED, str(tmp_path)]
  subprocess.run(call, check=True, timeout=300)


def test_another_error_is_not_tried_again(monkeypatch, tmp_path):
  def play(*_):
    raise jax.errors.JaxRuntimeError('INTERNAL: something else')

  monkeypatch.setattr(run, '_run_job', play)
  with pytest.raises(jax.errors.JaxRuntimeError, match='something else'):
    results(small(), tmp_path / 'out')


@of_a_cpu
def test_a_cpu_does_not_say():
  assert fitting.limit() == 0


@of_a_cpu
def test_defenses_that_share_programs_go_on_sharing_them(monkeypatch):
  table = arguments.load_data(config('none').data)
  found = jobs.jobs(run.checks.assembled(config('none', 'iso', seeds=8), table))
  compiler = compiling.Compiler(found, found)
  before = families.families(found)['none']
  assert compiler.halve(found[0])
  own = compiler._families
  assert own['none'] is own['iso'] and own['none'].cells == before.cells // 2


@of_a_cpu
def test_what_just_fits_is_played_at_once(monkeypatch):
  table = arguments.load_data(config('none').data)
  found = jobs.jobs(run.checks.assembled(config('none', seeds=8), table))
  monkeypatch.setattr(fitting, 'limit', lambda: 1000)
  monkeypatch.setattr(compiling, 'Programs', lambda family, *_: SimpleNamespace(
      memory=lambda: None, compiled=lambda job: fitting.played(family)
  ))
  for room, played in ((9, 8), (8, 8), (7, 4)):
    monkeypatch.setattr(fitting, 'most', lambda *_, room=room: room)
    compiler = compiling.Compiler(found, found)
    family = families.families(found)['none']
    assert compiler._fitting(family, found[0]) == played


@pytest.mark.parametrize('cores, platform, want', [
    (1, 'cpu', 2), (2, 'cpu', 2), (6, 'cpu', 3), (64, 'cpu', 4),
    (2, 'gpu', 2), (12, 'gpu', 6), (16, 'gpu', 8), (224, 'tpu', 8),
])
def test_compilers_are_half_as_many_as_cores(cores, platform, want):
  assert compiling.at_once(cores, platform) == want


@pytest.mark.slow
def test_where_there_is_no_room_nothing_is_kept_that_was_made():
  table = arguments.load_data(config('none').data)
  found = jobs.jobs(run.checks.assembled(small(seeds=8), table))
  with compiling.Compiler(found, found) as compiler:
    made = compiler._maker.known('a', lambda: jax.jit(lambda x: x).lower(1.0))
    left = weakref.ref(made.result()[0])
    del made
    assert left() and compiler.halve(found[0])
    gc.collect()
    assert not left()
