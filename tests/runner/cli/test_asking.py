"""Which samples an experiment has: others are another experiment."""
import dataclasses

import jax
import numpy as np
import pytest

from vfljax.data.table import Table
from vfljax.runner.cli import asking
from vfljax.runner.config import Config, DataConfig, Entry, TrainConfig
from vfljax.runner.errors import UserError
from vfljax.runner.workdir import identity, recording

X = np.arange(24, dtype=np.float32).reshape(6, 4)
Y = np.array([0, 1, 0, 1, 0, 1])

GIVEN = Config(
    seeds=1, listed=(Entry('none'),), listed_attacks=('norm_scoring',),
    train=TrainConfig(batch_size=2),
)


def table(test=None):
  return Table(X, Y, tuple('abcd'), ('no', 'yes'), (0, 1, 2, 3), test)


def test_a_test_set_is_part_of_the_samples():
  few, more = (np.arange(6) >= at for at in (4, 3))
  found = {asking.fingerprint(table(test)) for test in (None, few, more)}
  assert len(found) == 3
  assert len({each.partition('-')[0] for each in found}) == 1


def test_samples_of_another_data_set_are_too():
  found = {
      asking.fingerprint(table(), outside)
      for outside in (None, (X, Y), (X + 1, Y), (X, None))
  }
  assert len(found) == 4


@pytest.mark.parametrize('saved, same', [
    ('aa-bb', True), ('aa', True), ('aa-cc', False), ('cc', False),
])
def test_earlier_versions_kept_the_first_digest_alone(saved, same):
  now = dict(samples='aa-bb')
  found = asking._completed(now, lambda x: x, dict(samples=saved, seeds=2))
  assert (found == dict(samples='aa-bb', seeds=2)) == same


def test_names_over_other_columns_are_another_experiment(tmp_path):
  # The numbers are the same, and so is the digest of the samples: a header
  # that was put right gave the old results.
  own = DataConfig(name='csv', path='a.csv', split='named', named='a,b;*')
  of = lambda names, **own_too: asking.of(
      dataclasses.replace(GIVEN, data=dataclasses.replace(own, **own_too)),
      table()._replace(names=tuple(names)), str(tmp_path),
  )
  first = of('abcd')
  assert not asking.has_begun(first)  # Nobody has written anything.
  identity.save(tmp_path, first.recorded, {})
  assert asking.has_begun(of('baxy'))  # Other names for the same division.
  with pytest.raises(UserError, match='columns belong .* to names in'):
    asking.has_begun(of('cdab'))
  # Before it was noted it was not looked at.
  older = {k: v for k, v in first.recorded.items() if k != 'columns'}
  identity.save(tmp_path, older, {})
  identity.check(tmp_path, *of('cdab')[2:])


@pytest.mark.parametrize('split', ['even', 'random', 'importance'])
def test_columns_that_belong_together_are_another_experiment(tmp_path, split):
  # A text's categories, and the same numbers as columns that a user made, are
  # split otherwise. Seeds of both were mixed in one folder, and a kept program
  # of the one was called with the other's shapes.
  config = dataclasses.replace(
      GIVEN, data=DataConfig(name='csv', path='a.csv', split=split)
  )
  of = lambda *groups: asking.of(
      config, table()._replace(groups=groups), str(tmp_path)
  )
  apart, together = of(0, 1, 2, 3), of(0, 0, 1, 2)
  assert apart.recorded != together.recorded  # By which programs are found.
  for one, other in (apart, together), (together, apart):
    identity.save(tmp_path, one.recorded, {})
    assert asking.has_begun(one)
    with pytest.raises(UserError, match='other columns belong.*to a party'):
      asking.has_begun(other)


def test_where_the_samples_are_is_no_part_of_an_experiment(tmp_path):
  of = lambda path: asking.of(
      dataclasses.replace(GIVEN, data=DataConfig(name='csv', path=path)),
      table(), str(tmp_path),
  )
  identity.save(tmp_path, of('data/my.csv').recorded, {})
  assert asking.has_begun(of('/else/where/my.csv'))
  with pytest.raises(UserError, match='data.path is "data/my.csv" there'):
    asking.has_begun(of('data/other.csv'))


def test_what_jax_is_told_is_part_of_an_experiment(tmp_path):
  """And of its record; as JAX is by itself nothing is said."""
  asked = lambda: asking.of(GIVEN, table(), str(tmp_path / 'none')).recorded
  assert not recording.settings() and 'jax' not in asked()
  with jax.default_prng_impl('unsafe_rbg'):
    said = dict(jax_default_prng_impl='unsafe_rbg')
    assert recording.settings() == said == asked()['jax']
    assert said.items() <= recording.versions().items()
  with jax.enable_x64(True):
    assert asked()['jax'] == dict(jax_enable_x64='True')


def test_how_jax_draws_classes_is_part_of_an_experiment():
  """LabelDP flips other labels; its seeds were joined with the usual ones."""
  name = 'jax_high_dynamic_range_gumbel'
  rows = jax.numpy.zeros((32, 9))
  draw = lambda: jax.random.categorical(jax.random.key(0), rows).tolist()
  usual = draw()
  jax.config.update(name, True)
  try:
    assert draw() != usual and recording.settings() == {name: 'True'}
  finally:
    jax.config.update(name, False)


@pytest.mark.parametrize('one, other, same', [
    ('aa', 'aa', True), ('aa', 'aa-bb', True), ('aa-bb', 'aa', True),
    ('aa-bb', 'aa-bb', True), ('aa-bb', 'aa-cc', False), ('aa', 'bb', False),
    ('aa-bb', 'cc-bb', False), ('', 'aa', False),
])
def test_fingerprints_agree_as_far_as_they_tell(one, other, same):
  assert asking.same_samples(one, other) == same
