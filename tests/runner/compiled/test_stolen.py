"""Attacks by who has stolen weights: one program, and nobody's numbers know."""
import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.runner.compiled.test_families import config, found
from vfljax import attacks, measure, views
from vfljax.attack import Attack, in_halves
from vfljax.runner import run
from vfljax.runner.cli import arguments
from vfljax.runner.compiled import cell, families, stolen
from vfljax.runner.config import AttackConfig, ModelConfig, Variant
from vfljax.runner.experiment import division
from vfljax.runner.experiment.setting import split_samples
from vfljax.types import Batch

DEEP = ModelConfig(algorithm='vhnn', bottom=(4,), top=())
KNOWN = AttackConfig(known=2, repeats=2, own=dict(
    completion=dict(
        epochs=3, stages=3, learning_rate=0.5, optimizer='sgd', head=()
    )
))


def experiment(*names, **changed):
  return config(*names, **dict(model=DEEP, attack=KNOWN) | changed)


def test_which_attacks_these_are():
  everything = found(experiment('none', listed_attacks=(
      'norm_scoring', 'model_completion', 'mixmatch', 'model_inversion',
  )))
  setting = everything[0].setting
  assert set(stolen.attacks(setting)) == {
      'model_completion', 'mixmatch', 'local_model', 'scratch',
  }
  rest = set(stolen.without(setting).after_training)
  assert 'model_inversion' in rest
  assert not rest & set(stolen.attacks(setting))
  # Who knows the defense owes more than weights to it.
  first = setting.after_training['mixmatch']
  setting = setting._replace(after_training=setting.after_training | dict(
      mixmatch=first._replace(against=lambda defense: first)
  ))
  assert 'mixmatch' not in stolen.attacks(setting)


def results(place, *names, **changed):
  given = experiment(*names, alone=False, **changed)
  work = run.run(given, arguments.load_data(given.data), str(place))
  lines = (work.path / 'results.jsonl').read_text().splitlines()
  return [json.loads(line) for line in lines]


@pytest.fixture(scope='module')
def apart(tmp_path_factory):
  """What two families' attacks find, and which attacks were traced for it."""
  traced, attack = [], cell.attack

  def counted(job, *given):
    traced.append(sorted(job.setting.after_training))
    return attack(job, *given)

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(cell, 'attack', counted)
    patch.setattr(run.checks, 'rehearse', lambda *_: None)  # It traces, too.
    found = results(tmp_path_factory.mktemp('apart'), 'none', 'iso', 'dcor')
  return found, traced


@pytest.mark.slow
def test_weights_of_one_structure_have_one_program(apart):
  """Of two families the attacks are traced once, and once the baselines."""
  everything = found(experiment('none', 'iso', 'dcor', alone=False))
  names = {f.name for f in families.families(everything).values()}
  assert names == {'iso none', 'dcor'}
  assert sorted(apart[1]) == [['local_model'], ['model_completion', 'scratch']]


@pytest.mark.slow
def test_numbers_are_those_of_one_program(apart, tmp_path, monkeypatch):
  """Each cell is attacked with its own weights, known labels and luck."""
  rows, _ = apart
  whose = {r['defense'] for r in rows if r['attack'] in ('scratch', 'local')}
  assert whose == {'none'}
  completed = [r for r in rows if r['attack'] == 'model_completion']
  assert len({r['value'] for r in completed}) > 5  # They differ by cell.
  monkeypatch.setattr(families, '_one_by_one', lambda job: False)
  whole = results(tmp_path, 'none', 'dcor')
  both = [r for r in rows if r['defense'] != 'iso']
  for one, other in zip(both, whole, strict=True):
    assert one | dict(value=0) == other | dict(value=0)
    assert one['value'] == pytest.approx(other['value'], abs=0.02), one


def test_each_party_attacks_with_its_own(monkeypatch):
  """Its weights, features and luck, of which each repeat has another."""
  three = dataclasses.replace(config('none').data, parties=3)
  everybody = dataclasses.replace(KNOWN, party=0)
  setting = found(experiment('none', data=three, attack=everybody))[0].setting
  setting = setting._replace(after_training=dict(model_completion=Attack(
      views.TrainedBottom, lambda key, view: dict(
          weights=view.weights, luck=jax.random.uniform(key),
          wanted=view.features.sum(), read=view.labeled_features.sum(),
      ),
  )))
  monkeypatch.setattr(measure, 'of_completion', lambda guess, truth: guess)
  splits = split_samples(setting, jax.random.key(1), setting.samples)
  keys = jax.random.split(jax.random.key(2), 2)
  told = stolen.measured(
      setting, splits, keys, {str(k): jnp.arange(2.0) + k for k in (1, 2)}
  )
  name = 'model_completion'
  lucks = [
      jax.random.uniform(measure.own_key(stolen.luck(key)[2], name))
      for key in keys
  ]
  known = [
      division.known(stolen.luck(key)[0], splits.train, 2) for key in keys
  ]
  assert len(told) == 2
  for k in (1, 2):
    own = told[measure.label(name, k, setting.attackers)]
    assert own['weights'] == k + 0.5
    expected = dict(
        luck=np.mean(lucks), wanted=splits.test.features[k].sum(),
        read=np.mean([batch.features[k].sum() for batch in known]),
    )
    for what, value in expected.items():
      assert own[what] == pytest.approx(float(value), rel=1e-4), what


FEWER = experiment(
    'none', listed_attacks=(
        'mixmatch', 'mixmatch:1', 'model_completion', 'model_completion:1',
        'mixmatch:3', 'mixmatch:frozen', 'mixmatch:all',
    ), variants=(
        Variant('mixmatch:1', dict(known=1)),
        Variant('model_completion:1', dict(known=1)),
        Variant('mixmatch:3', dict(known=3)),
        Variant('mixmatch:frozen', dict(tune=False)),
        Variant('mixmatch:all', dict(known=0)),
    ),
)


def test_who_only_knows_fewer_labels_needs_no_program_of_its_own(monkeypatch):
  """Each attacks with the labels and the luck that it has alone."""
  setting = found(FEWER)[0].setting
  setting = setting._replace(after_training={
      name: attack._replace(run=lambda key, view: dict(
          luck=jax.random.uniform(key), read=read_by(view),
          told=view.labeled.sum(),
      )) for name, attack in setting.after_training.items()
      if name in FEWER.listed_attacks
  })
  traced = []
  monkeypatch.setattr(
      measure, 'of_completion',
      lambda guess, truth: traced.append(guess) or guess,
  )
  splits = split_samples(setting, jax.random.key(1), setting.samples)
  key, weights = jax.random.key(2), {'1': jnp.zeros(1)}
  told = stolen.measured(setting, splits, key[None], weights)
  counts = {
      'mixmatch': 2, 'mixmatch:1': 1, 'model_completion': 2,
      'model_completion:1': 1, 'mixmatch:3': 3, 'mixmatch:frozen': 2,
      'mixmatch:all': 0,
  }
  assert set(told) == set(counts)
  assert len(traced) == len(counts) - 2  # mixmatch, :1 and :3 are one.
  first, _, last = stolen.luck(key)
  for name, count in counts.items():
    known = division.known(first, splits.train, count)
    own = views.TrainedBottom((), known.features[1], known.labels, ())
    assert told[name]['luck'] == jax.random.uniform(
        measure.own_key(last, name)
    ), name
    assert told[name]['told'] == (2 * count or len(known.labels)), name
    np.testing.assert_allclose(told[name]['read'], read_by(own), rtol=1e-4)


def test_each_of_those_knows_as_many_labels_as_it_has_alone(monkeypatch):
  """One program of those that differ in their start and in what they know."""
  setting = found(FEWER)[0].setting
  counts = {'model_completion': 2, 'model_completion:1': 1}
  read = in_halves(
      views.TrainedBottom, lambda key, view: jax.random.uniform(key),
      lambda luck, view: dict(
          luck=luck, read=read_by(view), told=view.labeled.sum()
      ),
  )
  setting = setting._replace(after_training=dict.fromkeys(counts, read))
  monkeypatch.setattr(measure, 'of_completion', lambda guess, truth: guess)
  splits = split_samples(setting, jax.random.key(1), setting.samples)
  key, weights = jax.random.key(2), {'1': jnp.zeros(1)}
  first, _, last = stolen.luck(key)
  for i, (name, count) in enumerate(counts.items()):
    told = stolen.measured_of_one(
        setting, splits, key[None], weights, jnp.int32(i)
    )['1']
    known = division.known(first, splits.train, count)
    own = views.TrainedBottom((), known.features[1], known.labels, ())
    luck = jax.random.uniform(measure.own_key(last, name))
    assert told['luck'] == luck, name
    assert told['told'] == 2 * count, name
    np.testing.assert_allclose(told['read'], read_by(own), rtol=1e-4)


@pytest.mark.parametrize('counts, apart', [
    ((2, 1), False), ((7, 1), False), ((8, 7), True), ((9, 8), True),
    ((1, 0), True),
])
def test_who_knows_many_labels_has_a_program_of_its_own(counts, apart):
  """Beside the other it would compute many blank samples."""
  most, few = counts
  one = experiment(
      'none', listed_attacks=('model_completion', 'model_completion:few'),
      attack=AttackConfig(known=most),
      variants=(Variant('model_completion:few', dict(known=few)),),
  )
  setting = found(one)[0].setting
  groups = stolen.by_start([setting])
  assert sorted(map(len, groups)) == ([2, 2] if apart else [4])


@pytest.mark.parametrize('changed', [
    dict(attack=KNOWN.but(completion=dict(batch_size=2))),
    dict(attack=KNOWN.but(completion=dict(standardize=True))),
    dict(model=dataclasses.replace(DEEP, dropout=0.5)),
])
def test_who_counts_blanks_reads_none(changed):
  """They have a place in a batch, a share in a scale, a draw of dropout."""
  one = dataclasses.replace(FEWER, **changed)
  assert len(stolen.by_start([found(one)[0].setting])) == 2


def test_who_reads_blanks_is_with_nobody_who_does_not(monkeypatch):
  """An attack of one's own, whose rest has the same name."""
  setting = found(FEWER)[0].setting
  assert len(stolen.by_start([setting])) == 1
  monkeypatch.setattr(
      attacks.REGISTRY['scratch'], 'rest_skips_blank',
      lambda options, scene: False,
  )
  assert sorted(stolen.by_start([setting])) == [
      ['model_completion', 'model_completion:1'],
  ]


def test_who_differs_in_the_start_alone():
  """Variants that know fewer labels have baselines that know as few."""
  one = experiment(
      'none', listed_attacks=(
          'model_completion', 'model_completion:1', 'model_completion:frozen',
          'mixmatch',
      ), variants=(
          Variant('model_completion:1', dict(known=1)),
          Variant('model_completion:frozen', dict(tune=False)),
      ),
  )
  everything = found(one)
  both = [job.setting for job in everything]
  expected = [
      ['model_completion', 'model_completion:1', 'scratch', 'scratch:1'],
  ]
  assert stolen.by_start(both) == expected
  # Who remains when the baselines are done has the same programs.
  last = [job for job in everything if not families.has_baselines(job)]
  for left in (everything, last):
    (family, *_) = families.needed(everything, left).values()
    started = [list(job.setting.after_training) for job in family.started]
    assert started == expected
    asked = {attack for _, attack in family.attacked(everything[0])}
    assert asked == {'', *expected[0]}
  bare = both[0]._replace(after_training={
      name: attack._replace(halves=None)
      for name, attack in both[0].after_training.items()
  })
  assert not stolen.by_start([bare])


@pytest.mark.parametrize('other', [jnp.float32, jnp.float16])
def test_one_of_them_has_its_own_start_and_luck(other, monkeypatch):
  """Also if they start with numbers of another type."""
  three = dataclasses.replace(config('none').data, parties=3)
  everybody = dataclasses.replace(KNOWN, party=0)
  setting = found(experiment('none', data=three, attack=everybody))[0].setting

  def made(number, kind):
    return in_halves(
        views.TrainedBottom, lambda key, view: (
            jax.random.uniform(key), jnp.asarray(number, kind) + view.weights,
        ), lambda begun, view: dict(
            luck=begun[0], start=begun[1].astype(jnp.float32),
            read=view.labeled_features.sum(), wanted=view.features.sum(),
        ),
    )

  setting = setting._replace(after_training=dict(
      model_completion=made(10, jnp.float32), scratch=made(20, other),
  ))
  monkeypatch.setattr(measure, 'of_completion', lambda guess, truth: guess)
  splits = split_samples(setting, jax.random.key(1), setting.samples)
  keys = jax.random.split(jax.random.key(2), 2)
  weights = {
      str(k): jnp.arange(2).astype(other) + k for k in (1, 2)
  }
  apart = stolen.measured(setting, splits, keys, weights)
  for i, name in enumerate(setting.after_training):
    told = stolen.measured_of_one(
        setting, splits, keys, weights, jnp.int32(i)
    )
    for k in (1, 2):
      own = apart[measure.label(name, k, setting.attackers)]
      assert own['start'] == 10 * i + 10.5 + k
      for what, value in own.items():
        assert told[str(k)][what] == pytest.approx(float(value), rel=1e-6), what


def read_by(view):
  """The sum of each class's known samples."""
  flat = view.labeled_features.reshape(len(view.labeled), -1)
  return view.labeled.T @ flat


def test_luck_is_of_a_stream_of_its_own(monkeypatch):
  """Not the training's, nor the split's; the same in either program."""
  job = found(experiment('none'))[0]
  one, samples = dict(seed=5, strength=0.0, others={}), job.setting.samples
  prepared = cell.prepare(job, one, samples)
  own = jax.random.key(5)
  streams = [jax.random.fold_in(own, 0), prepared.k_train, prepared.k_attack]
  data = {tuple(jax.random.key_data(key).tolist()) for key in (own, *streams)}
  assert len(data) == 4
  monkeypatch.setattr(
      stolen, 'measured', lambda setting, splits, keys, weights, played: keys
  )
  keys = cell.attack(job, dict(cells=one, weights={}), samples)
  expected = jax.random.split(jax.random.split(prepared.k_attack)[1], 2)
  np.testing.assert_array_equal(
      jax.random.key_data(keys), jax.random.key_data(expected)
  )


def test_each_repeat_reads_the_weights_anew():
  """A defense may show something else each time, as one that redraws layers."""
  job = found(experiment('none'))[0]
  defense = job.make(None)._replace(
      expose=lambda state, key, k, weights: jax.random.normal(key, (3,)) + k
  )

  class State:
    defense, parties = (), [None, jax.tree.map(jnp.zeros, dict(params=()))]

  own = jnp.zeros(3)
  State.parties[1] = type('Party', (), dict(params=dict(bottom=own)))
  keys = jax.random.split(jax.random.key(3), 4)
  read = stolen.weights(job.setting, defense, State, keys)['1']
  expected = [
      1 + jax.random.normal(stolen.luck(key)[1], (3,)) for key in keys
  ]
  np.testing.assert_allclose(read, np.stack(expected), rtol=1e-6)


@pytest.mark.parametrize('kind', list(views.OF_ONES_OWN))
def test_a_view_of_ones_own_has_no_more_than_that(kind):
  """Of samples no others' features, and no labels but of those it knows."""
  batch = lambda rows, mark: Batch(
      tuple(jnp.full((rows, 2), mark + k) for k in range(3)),
      jnp.full((rows, 2), mark),
  )
  view = views.OF_ONES_OWN[kind](views.Own(
      jnp.zeros(1), 2, batch(1, 10.0), batch(2, 20.0), batch(3, 30.0)
  ))
  seen = {float(x) for leaf in jax.tree.leaves(view) for x in leaf.ravel()}
  assert seen <= {0.0, 12.0, 10.0, 22.0, 32.0}
  assert {0.0, 12.0, 10.0, 22.0} <= seen
