"""Pretrained weights are arguments of the runner's programs."""
import dataclasses
import json
from pathlib import Path
import shutil

import jax
import numpy as np
import pytest

from tests.nets.test_encoder import GOLDEN
from vfljax.nets import base, encoder, encoder_files, pretrained
from vfljax.commands import same
from vfljax.runner import run
from vfljax.runner.checking import checks
from vfljax.runner.cli import arguments, asking
from vfljax.runner.compiled import calls, cell, families
from vfljax.runner.config import (
    AttackConfig, Config, DataConfig, Entry, ModelConfig, TrainConfig,
)
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import jobs
from vfljax.runner.workdir import identity

FOLDER = str(GOLDEN / 'tiny_bert')


def config(**changed):
  """Columns that are read as token numbers, seven and six."""
  given = Config(
      experiment='pretrained', seeds=1, listed=(Entry('none'),), alone=False,
      listed_attacks=('model_completion',),
      data=DataConfig(name='wine', scale='none'),
      model=ModelConfig(
          name='encoder', options=f'path={FOLDER};blocks=1', width=2, top=()
      ),
      train=TrainConfig(epochs=2, batch_size=16, optimizer='sgd'),
      attack=AttackConfig(
          known=2, repeats=1, own=dict(completion=dict(
              epochs=2, stages=1, optimizer='sgd', head=()
          ))
      ),
  )
  return dataclasses.replace(given, **changed)


def results(given, folder):
  work = run.run(given, arguments.load_data(given.data), str(folder))
  lines = (work.path / 'results.jsonl').read_text().splitlines()
  return [json.loads(line) for line in lines]


@pytest.mark.slow
@pytest.mark.usefixtures('place', 'uncached')
def test_a_second_start_traces_nothing(monkeypatch, tmp_path):
  """A program that asked the host could not be kept.

  Of encoders without blocks: their tables of words are pretrained, too.
  """
  whole = encoder_files.read_structure
  monkeypatch.setattr(
      encoder, 'read_structure', lambda path: whole(path)._replace(blocks=0)
  )
  first, traced = results(config(), tmp_path / 'first'), []
  for name in ('start', 'advance', 'close', 'attack'):
    plain = getattr(cell, name)
    monkeypatch.setattr(
        cell, name, lambda *a, plain=plain: traced.append(1) or plain(*a)
    )
  assert results(config(), tmp_path / 'second') == first and not traced


def test_other_weights_in_their_folder_are_another_experiment(tmp_path):
  """A finished folder was read again, and got seeds of the others."""
  kept = tmp_path / 'bert'
  shutil.copytree(FOLDER, kept)
  model = dataclasses.replace(config().model, options=f'path={kept};blocks=1')
  given = config(model=model)
  table = arguments.load_data(given.data)
  of = lambda: asking.of(given, table, str(tmp_path / 'work'))
  first = of()
  (tmp_path / 'work').mkdir()
  identity.save(tmp_path / 'work', first.recorded, {})
  assert asking.has_begun(of())
  file = kept / 'model.safetensors'
  content = bytearray(file.read_bytes())
  head = 8 + int.from_bytes(content[:8], 'little')
  np.frombuffer(content, np.float32, offset=head)[:] = 0.5
  file.write_bytes(content)
  second = of()
  with pytest.raises(UserError, match='the weights have changed since then'):
    asking.has_begun(second)
  names = 'one', 'two'
  with pytest.raises(UserError, match='two experiments: weights is'):
    same.check([*map(Path, names)], [first.recorded, second.recorded])
  # An earlier version did not say.
  older = {k: v for k, v in first.recorded.items() if k != 'weights'}
  identity.save(tmp_path / 'work', older, {})
  identity.check(tmp_path / 'work', *second[2:])
  same.check([*map(Path, names)], [older, second.recorded])


def test_a_training_starts_with_them():
  given = config()
  setting = checks.assembled(given, arguments.load_data(given.data))
  job = jobs.jobs(setting)[0]
  like = encoder_files.read_structure(FOLDER)._replace(blocks=1)
  weights = encoder_files.read_weights(FOLDER, like)
  (cells, *_), samples = calls.place(families.alone(job), job)
  _, own = calls.also(job, samples)
  program = jax.jit(calls.over(cell.start, job))
  traced = str(jax.make_jaxpr(program)(cells, (samples, own)))
  assert 'callback' not in traced
  for factor in (1, 2):
    begun = jax.tree.map(lambda w, f=factor: f * w, own)
    state = program(cells, (samples, begun)).state
    for party in state.parties:
      bottom = party.params['bottom'] if 'bottom' in party.params else (
          party.params
      )
      jax.tree.map(
          lambda found, w, f=factor: np.testing.assert_array_equal(
              found, np.stack([f * w] * len(found))
          ), bottom['encoder'], weights
      )


def test_the_host_is_asked_where_nobody_gives_them():
  """Outside `given` the host says them; inside others of that name count."""
  one = pretrained.Pretrained('one', dict(w=np.arange(3, dtype=np.float32)))
  start = lambda: one.start()['w']
  np.testing.assert_array_equal(jax.jit(start)(), [0, 1, 2])
  with pretrained.given(dict(another=dict(w=np.zeros(3)))):
    np.testing.assert_array_equal(start(), [0, 1, 2])
  with pytest.raises(RuntimeError), pretrained.given(dict(one=dict(w=5))):
    assert start() == 5
    raise RuntimeError
  np.testing.assert_array_equal(start(), [0, 1, 2])


def test_networks_on_top_know_what_is_below():
  net = base.mlp(2)._replace(pretrained=pretrained.Pretrained('a', dict(w=1.0)))
  where = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
  nets = (
      base.then(net, base.mlp(3)), base.binary(net),
      base.with_weights(net, lambda p: p), None, base.mlp(2),
  )
  for one in nets[:3]:
    assert list(pretrained.placed([one, None], where)) == ['a']
  assert pretrained.placed(nets[3:], where) == {}
  assert one.pretrained.placed(where) is one.pretrained.placed(where)
