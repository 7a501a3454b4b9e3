"""MID's experiments: that they can be run, what is refused, what is claimed."""
import dataclasses
import functools
import importlib
import json

import jax
import numpy as np
import pytest

from experiments import evidence
from experiments.mid import claims, curves, fig3, rivalries, tables, two_classes
from vfljax import data
from vfljax.report import reading
from vfljax.runner import run, variants
from vfljax.runner.checking import checks
from vfljax.runner.config import Config
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import jobs, setting

NAMES = (
    'cafe', 'cafe_defended',
    *(f'fig3:{variant}' for variant in fig3.VARIANTS), 'fig4:bli',
    'fig4:dli', 'fig5:missing', 'fig5:noisy', 'fig5:replacement', 'fig9',
)


def config_of(name: str, **fields) -> Config:
  """An experiment on scikit-learn's digits, which need no file."""
  file, variant = variants.split(name)
  module = importlib.import_module(f'experiments.mid.{file}')
  config = module.get_config(*[variant] if variant else [])
  config.data.name, config.data.path, config.data.limit = 'digits', '', 0
  config.data.scale = 'minmax' if config.data.scale == 'standard' else 'none'
  config.data.resplit = False
  config.train.batch_size = min(config.train.batch_size, 100)
  for path, value in fields.items():
    group, _, field = path.rpartition('__')
    if group and not hasattr(config, group):
      config.attack = config.attack.but(**{group: {field: value}})
      continue
    setattr(getattr(config, group) if group else config, field, value)
  return config


def made(config):
  return checks.make(config, data.load('digits'))


@functools.cache
def traced():
  """Federations without attacks that can be run: configurations' texts."""
  return set()


@pytest.mark.slow
@pytest.mark.parametrize('name', NAMES)
def test_every_config_can_be_run(name):
  """Attacks on large networks are traced with the first stage of them; where
  nothing else differs, the whole network is traced once."""
  config = config_of(name, defenses='MID')
  if config.model.name == 'resnet20':
    whole = config_of(name, defenses='none', listed_attacks=())
    text = repr(dataclasses.replace(whole, experiment='', variants=()))
    if text not in traced():
      assert jobs.jobs(made(whole))
      traced().add(text)
    config.model.options = 'channels=(16,)'
  assert jobs.jobs(made(config))


def test_a_training_has_one_backdoor_and_none_where_it_is_honest():
  config = config_of('fig5:noisy', defenses='none')
  found = {job.name: job.setting.backdoor for job in jobs.jobs(made(config))}
  assert found == {'none': 'noisy_sample', 'alone': ''}
  config = config_of('fig5:noisy', attacks='noisy_sample,missing_features')
  with pytest.raises(UserError, match='apart'):
    made(config)


@pytest.mark.parametrize('name, fields, message', [
    ('fig5:replacement', dict(label_replacement__targets=0), 'targets'),
    ('fig5:replacement', dict(label_replacement__triggered=1.0), 'triggered'),
    ('fig4:dli', dict(attack__replay_rounds=-1), 'replay_rounds'),
    ('fig4:dli', dict(attack__replay_rounds=99), 'replay_rounds'),
    ('fig4:dli', dict(attack__known=500), 'known'),
    ('fig4:dli', dict(attack__replay_at='never'), 'replay_at'),
    ('cafe', dict(cafe__pool=0), 'cafe.pool'),
    ('cafe', dict(cafe__batch=300), 'cafe.batch'),
    ('cafe', dict(cafe__steps=0), 'steps'),
    ('cafe', dict(data__scale='standard'), 'scale'),
    ('fig4:dli', dict(attacks='cafe'), 'model.name=cafe'),
    ('fig3:pmc,cpu', dict(attack__known=500), 'known'),
])
def test_what_cannot_be_run_is_refused(name, fields, message):
  with pytest.raises(UserError, match=message):
    made(config_of(name, defenses='none', **fields))


@pytest.mark.slow
def test_a_run_from_start_to_end(tmp_path):
  """A backdoor and attacks on rounds that are played again."""
  config = config_of(
      'fig5:replacement', defenses='none', seeds=1, alone=False,
      train__epochs=1, attack__replay_rounds=4, attack__replay=True,
      gradient_inversion__steps=3, gradient_inversion__restarts=1,
      model__bottom=(10,), model__top=(), train__optimizer='sgd',
      attacks='label_replacement,learned_gradient,gradient_inversion',
  )
  work = run.run(config, data.load('digits'), str(tmp_path / 'out'))
  text = (work.path / 'results.jsonl').read_text()
  rows = [json.loads(line) for line in text.splitlines()]
  found = {(r['attack'], r['metric']): r['value'] for r in rows}
  assert {
      ('label_replacement', 'backdoor_accuracy'),
      ('learned_gradient', 'accuracy_start'),
      ('learned_gradient', 'accuracy_end'),
      ('gradient_inversion', 'matched_end'),
  } <= set(found)
  assert all(np.isfinite(x) for x in found.values())
  assert found['learned_gradient', 'accuracy_start'] > 0.5


def test_two_classes_are_balanced():
  y = np.array([3, 8, 8, 1, 3, 8])[:, None]
  x, labels = two_classes.select(np.arange(6), y, (3, 8))
  np.testing.assert_array_equal(x, [0, 1, 2, 4])
  np.testing.assert_array_equal(labels, [0, 1, 1, 0])
  with pytest.raises(ValueError, match='no samples'):
    two_classes.select(np.arange(6), y, (3, 5))


def of(rows, metric='accuracy', alone=0.8):
  """Results: (defense, strength, accuracy, success) for two seeds."""
  base = dict(experiment='e', dataset='d', algorithm='vhnn', split='test')
  found = [base | dict(defense='none', strength=None, seed=0, attack=None,
                       metric='alone_accuracy', value=alone)]
  for defense, strength, accuracy, success in rows:
    for seed, off in enumerate((-0.01, 0.01)):
      row = base | dict(defense=defense, strength=strength, seed=seed)
      found += [
          row | dict(attack=None, metric='accuracy', value=accuracy),
          row | dict(attack='direct_label', metric=metric,
                     value=success + off),
      ]
  (results,) = reading.of_rows(found, {}, 10)
  return results


ROWS = [
    ('none', None, 0.95, 1.0), ('MID', 0.0, 0.948, 0.3),
    ('MID', 1.0, 0.80, 0.1), ('DP-L', 0.1, 0.947, 0.6),
    ('DP-L', 1.0, 0.92, 0.15),
]


def test_claims_are_decided_at_equal_accuracy():
  found = curves.curves(of(ROWS), 'direct_label', 'accuracy')
  np.testing.assert_allclose(found.alone, 80)
  np.testing.assert_allclose(found.undefended.success, 100)
  lines = curves.compared(found)
  assert [c.loss for c in lines] == [0.5, 1.0, 2.0, 5.0, 10.0]
  assert lines[0].won and not lines[0].near
  assert str(lines[0]) == 'MID 0: 30.0 < 60.0: DP-L 0.1'
  # At five points lost the noise does better: MID's 0.1 is worth nothing.
  assert not lines[3].won
  assert str(lines[3]) == 'MID 0: 30.0 > 15.0: DP-L 1'
  weak = next(p for p in found.by_defense['MID'] if p.strength == 1.0)
  np.testing.assert_allclose(weak.left, 0, atol=1e-9)
  np.testing.assert_allclose(weak.spread, 2 ** 0.5)  # n - 1
  decided = rivalries.decided(lines)
  assert decided.held is False and '15.0: DP-L 1' in decided.because
  assert rivalries.decided(lines[:3]).held


@pytest.mark.parametrize('seeds', claims.CHANCES)
def test_how_often_what_is_alike_is_apart(seeds):
  drawn = np.random.default_rng(0).normal(size=(2, 300_000, seeds))
  (a, b), (s, t) = drawn.mean(2), drawn.std(2, ddof=1)
  assert 1 / (a - b > s + t).mean() == pytest.approx(
      claims.CHANCES[seeds], rel=0.05
  )


def test_what_is_within_the_spread_decides_nothing():
  near = of([ROWS[0], ('MID', 0.0, 0.95, 0.30), ('DP-L', 0.1, 0.95, 0.31)])
  lines = curves.compared(curves.curves(near, 'direct_label', 'accuracy'))
  assert all(c.won and c.near for c in lines) and '~' in str(lines[0])
  assert rivalries.decided(lines).held is None
  assert rivalries.decided([]).held is None


def test_what_diverged_in_a_seed_keeps_to_no_accuracy():
  """The seed that is left would win."""
  lost = of([*ROWS, ('MID', 0.01, 0.949, 0.0)])
  utility = lost.values[('MID', 0.01), None, 'accuracy', 'test']
  found = curves.curves(lost, 'direct_label', 'accuracy')
  assert str(curves.compared(found)[0]).startswith('MID 0.01: 0.0')
  utility[1] = float('nan')
  found = curves.curves(lost, 'direct_label', 'accuracy')
  assert [p.strength for p in found.by_defense['MID']] == [0.0, 1.0]
  assert str(curves.compared(found)[0]).startswith('MID 0: 30.0')


def test_completion_stands_beside_what_needs_no_federation(monkeypatch):
  none = ('none', None)
  results = of([(*none, 0.9, 0.5)])
  for attack, value in (
      ('local_model', 0.2), ('local_model:10', 0.1), ('scratch', 0.3),
  ):
    results.values[none, attack, 'accuracy_last', 'test'] = {0: value}
  monkeypatch.setattr(
      evidence, 'load', lambda paper, name: evidence.Kept({}, results)
  )
  monkeypatch.setattr(tables, 'completed', lambda kind: {
      name: tables.Column('direct_label', 'accuracy') for name in 'abcde'
  })
  lines = tables.stolen('r', 'direct_label').splitlines()
  assert lines[-2] == (
      '| a local model, no federation |  |  | 20.0 | 10.0 |  |  |  |'
  )
  assert lines[-1] == (
      '| the same network from scratch |  |  | 30.0 |  |  |  |  |'
  )


def test_a_loss_is_against_the_best_model_where_the_attack_spoils_it():
  spoiled = of([('none', None, 0.85, 0.5), ('MID', 0.0, 0.93, 0.2),
                ('MID', 1.0, 0.84, 0.0), ('GS', 0.1, 0.90, 0.3)])
  found = curves.curves(spoiled, 'direct_label', 'accuracy')
  assert str(curves.compared(found)[1]).startswith('MID 1: 0.0')
  line, last = curves.compared(found, of_best=True)
  assert str(line) == 'MID 0: 20.0 < 30.0: GS, drop 90 %' and line.loss == 5
  assert last.loss == 10 and last.mine.strength == 1.0


def test_of_several_metrics_the_attackers_best_counts():
  base = dict(experiment='e', dataset='d', algorithm='vhnn', split='test',
              defense='none', strength=None, attack='a')
  values = dict(accuracy_start=(0.2, 0.9), accuracy_end=(0.4, 0.1))
  (results,) = reading.of_rows([
      base | dict(metric=m, seed=seed, value=v)
      for m, found in values.items() for seed, v in enumerate(found)
  ], {}, 10)
  best = curves.success(results, ('none', None), 'a', [*values])
  assert best == {0: 40.0, 1: 90.0}


@pytest.mark.parametrize('rivalry', rivalries.RIVALRIES, ids=lambda r: r.title)
def test_a_rivalry_names_what_its_config_measures(rivalry):
  command = tables.RUNS[rivalry.record].split()[0].removesuffix('.py')
  config = config_of(command.replace('.py', ''), defenses='none')
  labels = {entry.name for entry in config.listed}
  assert {rivalry.one, *rivalry.others} <= labels
  assert {*np.atleast_1d(rivalry.attack)} <= {*config.listed_attacks}


def test_tables_say_what_is_not_recorded(monkeypatch):
  monkeypatch.setattr(evidence, 'exists', lambda paper, name: False)
  for name, command in tables.RUNS.items():
    of = 'fig3_momentum' if name in tables.RATES else name  # Two in one.
    text = tables.TABLES[of]()
    assert f'--config=experiments/mid/{command} --record' in text
  assert 'no record yet' in tables.TABLES['claims']()
  assert tables.TABLES['equal']()


def test_a_table_has_accuracy_worth_left_and_attacks(monkeypatch):
  kept = evidence.Kept({}, of(ROWS))
  monkeypatch.setattr(evidence, 'load', lambda paper, name: kept)
  column = tables.Column('direct_label', 'accuracy', 'accuracy')
  lines = tables.table('r', dict(DLI=column)).splitlines()
  assert lines[0] == '|  | accuracy | worth left | DLI |'
  assert '| MID 1 | 80.0 +- 0.0 | 0 | 10.0 +- 1.4 (10.0) |' in lines
  assert lines[-1] == '| the active party alone | 80.0 | 0 |  |'


@pytest.mark.parametrize('name', ['fig3:pmc', 'fig4:dli'])
def test_dg_keeps_the_largest_gradients_of_its_batches(name):
  """(p - y) / batch: Eq. 19 zeroes them, a bound of 0.03 most batches."""
  file, variant = variants.split(name)
  config = importlib.import_module(f'experiments.mid.{file}').get_config(
      variant
  )
  entry = next(entry for entry in config.listed if entry.name == 'DG')
  assert entry.strengths == (24, 12, 6, 3)  # Section 5.3: 3 to 24.
  size = config.train.batch_size
  labels = np.eye(10, dtype=np.float32)[np.arange(size) % 10]
  noise = np.random.default_rng(0).uniform(0, 0.02, labels.shape)
  # Most are sure of their class, some are wrong.
  wrong = (np.arange(size) < size // 8)[:, None]
  d = np.float32((noise - np.where(wrong, labels, 0)) / size)

  @jax.jit
  def of(bins):
    defense = setting.build(entry, bins)
    return defense.gradient((), jax.random.key(0), (d,), labels)[0]

  for bins in entry.strengths:
    sent, = of(bins)
    own = np.asarray(sent)[: size // 8].min(-1)
    assert (own < -0.6 / size).all() and (own > -1.4 / size).all()
