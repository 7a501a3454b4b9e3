"""Streamed experiments: the numbers of those in memory, stopped and continued,
chosen by the device's memory, and what they refuse."""
import json
import shutil

import jax
import numpy as np
import optax
import pytest

from vfljax import algorithms, data, nets, stream, train
from vfljax.data import scale
from vfljax.data.table import Table
from vfljax.defense import none
from vfljax.runner import run
from vfljax.runner.checking import checks
from vfljax.runner.cli.progress import Progress
from vfljax.runner.compiled import streamed
from vfljax.runner.config import (
    Config, DataConfig, Entry, ModelConfig, TrainConfig,
)
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import jobs, memory
from vfljax.runner.experiment.setting import from_config
from vfljax.types import Batch

# What ranks two classes in training, and asks for nothing else.
OFFERED = (
    'attacks=direction_scoring,mean_scoring,median_scoring,norm_scoring,'
    'residual_scoring,value_scoring'
)


def config(**changed) -> Config:
  own = dict(
      name='npz', split='left_right', validation=0.2, stream=3, limit=0,
  ) | changed.pop('data', {})
  training = dict(
      epochs=2, batch_size=8, remainder='pad', best=True, measure_every=2,
      optimizer='momentum',  # It has a memory, and compiles quickly.
  ) | changed.pop('train', {})
  return Config(**dict(
      experiment='streamed', seeds=2, alone=False,
      listed=(Entry('dp_gaussian', (0.01,)),), listed_attacks=('norm_scoring',),
      data=DataConfig(**own), train=TrainConfig(**training),
      model=ModelConfig(bottom=(4,), top=()),
  ) | changed)


def images(rows: int = 60) -> Table:
  """Images with a test set, of two classes that differ in brightness."""
  draw = np.random.default_rng(0)
  labels = np.arange(rows, dtype=np.int32) % 2
  x = draw.integers(0, 180, (rows, 4, 4, 1)) + 40 * labels[:, None, None, None]
  test = np.arange(rows) % 3 == 0  # Not the last rows.
  return Table(x.astype(np.uint8), labels, (), ('dark', 'bright'), (), test)


def results(work) -> dict:
  text = (work.path / 'results.jsonl').read_text()
  rows = [json.loads(line) for line in text.splitlines()]
  return {
      (r['defense'], r['strength'], r['attack'], r['metric'], r['seed']):
          r['value']
      for r in rows
  }


class Killed(Exception):
  pass


@pytest.fixture(scope='module', autouse=True)
def one_job():
  """Of two strengths; its streamed programs are compiled once for all runs."""
  made, compile_job = {}, streamed.compile_job

  def once(job, *rest):
    if job.name not in made:
      made[job.name] = compile_job(job, *rest)
    return made[job.name]

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(streamed, 'compile_job', once)
    patch.setattr(run, 'jobs', lambda setting: [
        job for job in jobs.jobs(setting) if job.entry.name != 'none'
    ])
    yield


def eleven(stream=0):
  return config(
      data=dict(stream=stream), train=dict(epochs=11, measure_every=11),
      listed=(Entry('dp_gaussian', (0.01, 0.1)),),
  )


@pytest.fixture(scope='module')
def plain(tmp_path_factory):
  """What is found in memory."""
  place = tmp_path_factory.mktemp('plain')
  return results(run.run(eleven(), images(), str(place)))


@pytest.fixture(scope='module')
def killed(tmp_path_factory):
  """A streamed run that was killed when it had saved its third epoch."""
  place = tmp_path_factory.mktemp('killed') / 'out'

  def advance(self, epoch, *arguments):
    if epoch == 4:
      raise Killed

  with pytest.MonkeyPatch.context() as killing:
    killing.setattr(run, 'SAVE_SECONDS', -1)  # After every epoch.
    killing.setattr(Progress, 'advance', advance)
    killing.setattr(memory, 'rounds_of', lambda *_: 3)  # By itself.
    with pytest.raises(Killed):
      run.run(eleven(), images(), str(place))
  return place


def test_the_numbers_are_those_in_memory_also_when_continued(
    plain, killed, tmp_path, monkeypatch
):
  found = results(run.run(eleven(stream=3), images(), str(tmp_path / 'whole')))
  assert found.keys() == plain.keys() and len(found) > 8
  for key, value in found.items():
    assert value == pytest.approx(plain[key], abs=1e-5), key
  place = shutil.copytree(killed, tmp_path / 'out')
  monkeypatch.setattr(memory, 'rounds_of', lambda *_: 3)
  epochs, advance = [], Progress.advance
  monkeypatch.setattr(Progress, 'advance', lambda self, epoch, *rest: (
      epochs.append(epoch) or advance(self, epoch, *rest)
  ))
  assert results(run.run(eleven(), images(), str(place))) == found
  assert epochs == [*range(4, 12)]


def test_a_run_may_go_on_in_memory(plain, killed, tmp_path):
  """Which plays two epochs at a time where a streamed one saves after each.

  Pixels are scaled in another program, which may round otherwise.
  """
  place = shutil.copytree(killed, tmp_path / 'out')
  found = results(run.run(eleven(), images(), str(place)))
  assert found == pytest.approx(plain, rel=1e-6)


@pytest.mark.parametrize('changed, message', [
    (dict(listed_attacks=('model_completion',)),
     'does not go with model_completion.*--config.' + OFFERED),
    (dict(listed_attacks=('norm_scoring', 'label_replacement')),
     'label_replacement: .*--config.attacks=norm_scoring'),
    (dict(train=dict(remainder='keep')), 'drop or pad'),
    (dict(train=dict(patience=2)), 'patience=0'),
    (dict(defenses='kdk'), 'cannot be streamed'),
    (dict(data=dict(stream=-2)), 'data.stream must be -1 or more'),
])
def test_what_needs_all_samples_is_refused(changed, message):
  with pytest.raises(UserError, match=message) as error:
    checks.make(config(**changed), images())
  assert '\n' not in str(error.value)


class Device:
  """One that says how much memory it has."""

  def __init__(self, memory):
    self.memory = memory

  def memory_stats(self):
    return dict(bytes_limit=self.memory)


def test_too_many_samples_are_streamed_by_themselves(monkeypatch):
  table, small = images(), config(data=dict(stream=0))
  assert memory.rounds_of(small, table) == 0  # A CPU does not say.
  assert memory.rounds_of(config(), table) == 3

  def rounds(limit, config, possible=True):
    monkeypatch.setattr(jax, 'local_devices', lambda: [Device(limit)])
    return memory.rounds_of(config, table, possible)

  monkeypatch.setattr(jax, 'local_device_count', lambda: 1)
  # 960 bytes, and two seeds' float32: 8640 bytes.
  assert rounds(25_000, small) == 0
  # A twentieth is room for 3 rounds of 8 images for each of two trainings.
  assert rounds(20_000, small) == 3
  assert rounds(20_000, small, possible=False) == 0
  assert rounds(20_000, config(data=dict(stream=-1))) == 0
  # One split for all seeds is scaled once: 4800 bytes.
  for shared in (dict(validation=0.0), dict(resplit=False)):
    same = config(data=dict(stream=0) | shared)
    assert rounds(13_000, same) == 0 and rounds(11_000, same) > 0
  swept = Entry('plugvfl', (0.1,), grid=dict(drop=(0.1, 0.2)))
  grid = config(data=dict(stream=0), listed=(swept,))
  assert rounds(45_000, grid) == 0 and rounds(40_000, grid) > 0


def test_a_device_begins_with_the_first_training_samples():
  """A round of them, in each training's own order."""
  job, *_ = jobs.jobs(from_config(config(), images()))
  cells, host = streamed.place(job, dict(seed=np.arange(2)))
  assert not np.array_equal(*host.rows)
  held = cells['held'].splits
  for i, rows in enumerate(host.rows):
    for x, y in zip(held.train.features, host.samples.features):
      np.testing.assert_array_equal(x[i], y[rows[:8]])


def test_only_attacks_that_can_work_are_offered_instead():
  few = config()
  with pytest.raises(ValueError, match=OFFERED + '.$'):
    memory.check(few, 2, [], ['model_completion'])
  with pytest.raises(ValueError, match='during training.$'):
    memory.check(few, 10, [], ['model_completion'])


def test_two_parts_are_on_the_device_and_no_more(monkeypatch):
  """Each part waits for the one before the last."""
  waited = []
  real = jax.block_until_ready
  monkeypatch.setattr(
      jax, 'block_until_ready', lambda x: waited.append(len(x)) or real(x)
  )
  x = np.ones((40, 3), np.float32)
  batch = Batch((x, x), np.eye(2, dtype=np.float32)[np.arange(40) % 2])
  net = nets.mlp(2)
  vfl = algorithms.vhnn([net, net], nets.mlp(2))
  plan = train.Plan(vfl, none(), (optax.sgd(0.1),) * 2, 1, 8)
  stream.fit(jax.random.key(0), plan, batch, 1)
  assert waited == [0, 0, 1, 1, 1]


@pytest.mark.parametrize('whole', [False, True])
def test_moments_are_read_a_block_at_a_time(whole):
  x = np.random.default_rng(0).normal(100, 3, (50, 3)).astype(np.float32)
  x[:, 1] = 7
  rows = np.random.default_rng(1).permutation(50)[:31]
  seen = scale.moments(x, rows, whole, block=12)
  own, axis = x[rows].astype(np.float64), None if whole else 0
  np.testing.assert_allclose(seen.mean, own.mean(axis), rtol=1e-10)
  np.testing.assert_allclose(seen.std, own.std(axis), rtol=1e-6, atol=0)
  np.testing.assert_array_equal(seen.low, own.min(axis))
  np.testing.assert_array_equal(seen.high, own.max(axis))


@pytest.mark.parametrize('kind, unit', [
    (np.uint8, 255), (np.float32, 1), (bool, 1),
])
def test_pixels_of_bytes_alone_are_fractions_of_255(kind, unit):
  x = np.random.default_rng(0).integers(0, 2, (20, 3, 3, 1)).astype(kind)
  found = streamed.scale_of(x, np.arange(20), 'standard')
  assert found is not None
  assert float(found.shift) == pytest.approx(x.mean() / unit)


def test_a_mapped_cache_is_not_read_into_memory(tmp_path):
  """From the data cache to the setting a streamed table stays a map."""
  x, y = np.zeros((60, 28, 28), np.uint8), np.arange(60) % 10
  file, cache = tmp_path / 'mnist.npz', str(tmp_path / 'cache')
  np.savez(file, x_train=x[:40], y_train=y[:40], x_test=x[40:], y_test=y[40:])
  data.load('mnist', str(file), cache=cache)
  found = data.load('mnist', str(file), cache=cache)
  setting = checks.make(config(data=dict(name='mnist')), found)
  for half in setting.samples.features:
    assert np.shares_memory(half, found.features)
  held = found.features
  while isinstance(held, np.ndarray) and not isinstance(held, np.memmap):
    held = held.base
  assert isinstance(held, np.memmap)
