"""Each part has samples of its own, scaled as the training part is."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax.data import split
from vfljax.data.split import Spec
from vfljax.data.table import Table
from vfljax.runner.compiled import streamed
from vfljax.runner.config import (
    AttackConfig, AuxiliaryConfig, Config, DataConfig,
)
from vfljax.runner.experiment import division
from vfljax.types import Batch

KEY = jax.random.key(0)


def table(rows=20, test=None):
  """Samples that can be told apart by their features, and by their labels."""
  numbers = np.arange(rows, dtype=np.float32)
  return Table(
      np.stack([numbers, -numbers], 1), numbers.astype(np.int32) % 3,
      ('x', 'y'), ('a', 'b', 'c'), (0, 1), test,
  )


def config(auxiliary=0, spare=0, **data):
  return Config(
      data=DataConfig(**data), attack=AttackConfig(auxiliary=auxiliary),
      auxiliary=AuxiliaryConfig(samples=spare),
  )


def test_shares_are_rounded_for_the_part_that_is_held_out():
  order, sizes = division.divide(
      table(20), config(2, 3, test=0.31, validation=0.5)
  )
  assert order == slice(None)
  # 7 of 20 are for tests, 2 and 3 set aside; half of the 8 left.
  assert sizes == division.Sizes(4, 4, 7, 2, 3)
  assert sizes == division.divide(
      table(20), config(2, 3, test=0.35, validation=0.4)
  )[1]


def test_an_official_test_set_goes_to_the_end():
  official = np.isin(np.arange(20), [0, 3, 19])
  order, sizes = division.divide(table(20, official), config(test=0.9))
  assert list(order) == [*np.flatnonzero(~official), 0, 3, 19]
  assert sizes == division.Sizes(17, 0, 3)
  order, _ = division.divide(table(20, np.arange(20) > 14), config())
  assert order == slice(None)


@pytest.mark.parametrize('given, message', [
    (config(test=0.96), r'No training samples are left of 20.*0\.96'),
    (config(14), 'attack.auxiliary must .* of the 14 training.*got 14'),
    (config(-1), 'attack.auxiliary must be 0 or more'),
    (config(0, 14), r'^auxiliary.samples must .*got 14'),
    (config(7, 7), r'attack.auxiliary \+ auxiliary.samples must .*got 14'),
    (config(test=0.0), r'data.test must be inside \(0, 1\)'),
    (config(test=1.0), r'data.test must be inside \(0, 1\)'),
    (config(validation=1.0), r'inside \[0, 1\); got 0.3 and 1.0'),
    (config(validation=0.93), r'left of 14: .*--config.data.validation=0.93\.'),
    (config(6, 7, validation=0.1), 'left of 1: .*--config.data.validation=0.1'),
])
def test_who_leaves_nothing_to_train_on_is_refused(given, message):
  with pytest.raises(ValueError, match=message):
    division.divide(table(20), given)


def test_just_enough_is_enough():
  assert division.divide(table(20), config(13))[1].train == 1
  assert division.divide(table(20), config(6, 7))[1].train == 1
  assert division.divide(table(20), config(test=0.95))[1].train == 1
  assert division.divide(table(20), config(validation=0.92))[1].train == 1
  elsewhere = config(13)
  elsewhere.auxiliary = AuxiliaryConfig(samples=50, data='digits')
  assert division.divide(table(20), elsewhere)[1] == division.Sizes(
      1, 0, 6, 13, 0
  )


@pytest.mark.parametrize('official', [False, True])
@pytest.mark.parametrize('sizes', [
    division.Sizes(1, 0, 1), division.Sizes(7, 3, 5, 2, 4),
    division.Sizes(5, 0, 6, 0, 3),
])
def test_every_sample_is_in_one_part(sizes, official):
  everything = np.arange(sum(sizes))
  rows = division.rows_of(division.key_of(3), sizes, official)
  parts = [everything[own] for own in rows]
  assert tuple(map(len, parts)) == sizes
  assert sorted(np.concatenate(parts)) == list(everything)
  if official:
    assert list(parts[2]) == list(everything[-sizes.test:])


def test_seeds_draw_different_parts_and_the_same_again():
  sizes = division.Sizes(7, 3, 5, 2, 4)
  drawn = lambda seed, official: [
      tuple(np.arange(21)[own].tolist())
      for own in division.rows_of(division.key_of(seed), sizes, official)
  ]
  assert drawn(1, False) == drawn(1, False)
  assert all(map(lambda a, b: a != b, drawn(1, False), drawn(2, False)))
  for i, (one, other) in enumerate(zip(drawn(1, True), drawn(2, True))):
    assert (one == other) == (i == 2)
  # Who sets nothing aside of an official division draws no order.
  plain = division.rows_of(division.key_of(1), division.Sizes(4, 0, 2), True)
  assert plain[0] == slice(0, 4) and plain[2] == slice(4, 6)


def test_classes_are_counted_where_they_fall():
  sizes, labels = division.Sizes(9, 0, 6, 3, 2), jnp.eye(3)[np.arange(20) % 3]
  counts = division.counts(jnp.array([4, 7]), labels, sizes)
  for seed, own in zip((4, 7), counts):
    rows = division.rows_of(division.key_of(seed), sizes, False)
    for part, found in ((0, own[0]), (2, own[1])):
      expected = np.bincount(np.arange(20)[rows[part]] % 3, minlength=3)
      np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize('how', ['standard', 'minmax', 'none'])
def test_all_parts_are_scaled_by_the_training_part(how):
  x = np.random.default_rng(0).normal(3, 2, (20, 2)).astype(np.float32)
  samples = Batch((None, jnp.asarray(x)), jnp.eye(3)[np.arange(20) % 3])
  sizes = division.Sizes(8, 4, 3, 3, 2)
  parts = division.split(KEY, samples, sizes, False, how)
  rows = division.rows_of(KEY, sizes, False)
  fit = x[rows[0]]
  middle, width = {
      'standard': (fit.mean(0), fit.std(0)), 'none': (0.0, 1.0),
      'minmax': (fit.min(0), np.ptp(fit, 0)),
  }[how]
  for part, own in zip(parts, rows):
    assert part.features[0] is None
    np.testing.assert_allclose(
        part.features[1], (x[own] - middle) / width, rtol=1e-4, atol=1e-5
    )
    np.testing.assert_array_equal(part.labels.argmax(-1), own % 3)


def test_images_have_one_mean_and_deviation():
  pixels = np.random.default_rng(0).integers(0, 256, (12, 3, 3, 2), np.uint8)
  samples = Batch((jnp.asarray(pixels),), jnp.eye(2)[np.arange(12) % 2])
  sizes = division.Sizes(8, 0, 4)
  rows = division.rows_of(KEY, sizes, False)
  x, fit = pixels / 255, pixels[rows[0]] / 255
  for how, middle, width in (
      ('standard', fit.mean(), fit.std()), ('none', 0, 1), ('minmax', 0, 1)
  ):
    parts = division.split(KEY, samples, sizes, False, how)
    np.testing.assert_allclose(
        parts.test.features[0], (x[rows[2]] - middle) / width, atol=1e-5
    )


def test_other_distributions_have_noise_or_fewer_classes():
  x = jnp.zeros((1000, 2))
  samples = Batch((None, x, x), jnp.eye(4)[np.arange(1000) % 4])
  same = division.distorted(KEY, samples, 0, 0.0)
  assert same.features is samples.features
  np.testing.assert_array_equal(same.labels, samples.labels)
  fewer = division.distorted(KEY, samples, 2, 0.0)
  first = jnp.array([1, 1, 0, 0])
  np.testing.assert_array_equal(fewer.labels, samples.labels * first)
  _, one, other = division.distorted(KEY, samples, 0, 0.5).features
  for own in (one, other):
    assert float(own.std()) == pytest.approx(0.5, rel=0.1)
    assert abs(float(own.mean())) < 0.05
  assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.1


def test_another_data_set_is_divided_and_scaled_by_itself():
  spec = Spec(2)
  found = division.outside(table(20), table(), spec, 20, 'standard')
  numbers = np.sort(found.features[0], axis=None)
  assert numbers.mean() == pytest.approx(0, abs=1e-5)
  assert numbers.std() == pytest.approx(1, abs=1e-4)
  assert found.features[1].shape == (20, 1) and found.labels.shape == (20, 3)
  # A row's features and label are of one sample.
  plain = division.outside(table(20), table(), spec, 7, 'none')
  np.testing.assert_array_equal(
      plain.features[0][:, 0], -plain.features[1][:, 0]
  )
  np.testing.assert_array_equal(
      plain.labels.argmax(-1), plain.features[0][:, 0] % 3
  )
  assert len(set(plain.features[0].ravel().tolist())) == 7
  assert len(division.outside(table(20), table(), spec, 1, 'none').labels) == 1
  for count in (0, 21):
    with pytest.raises(ValueError, match=f'must be 1..20, .*got {count}'):
      division.outside(table(20), table(), spec, count, 'none')


@pytest.mark.parametrize('groups, how', [
    ((0, 1, 2, 3), 'correlation'), ((0, 0, 0, 1), 'even'),
])
def test_of_another_data_set_parties_have_the_same_columns(groups, how):
  """Whatever is correlated with what there, or belongs together."""
  draw = np.random.default_rng(0)

  def made(pairs, groups):
    x = draw.normal(size=(40, 2)).astype(np.float32)[:, pairs]
    x += 0.01 * draw.normal(size=x.shape).astype(np.float32)
    return Table(
        x, np.arange(40) % 2, ('a', 'b', 'c', 'd'), ('0', '1'), groups
    )

  here = made([0, 0, 1, 1], groups)
  other = made([0, 1, 0, 1], (0, 1, 2, 3))
  spec = Spec(2, how, strength=0.0)
  held = [
      [here.features[0].tolist().index(v) for v in part[0].tolist()]
      for part in split.apply(here, spec)
  ]
  assert [*map(len, held)] == ([3, 1] if how == 'even' else [2, 2])
  found = division.outside(other, here, spec, 40, 'none')
  order = np.random.default_rng(0).choice(40, 40, False)
  for part, own in zip(found.features, held):
    np.testing.assert_array_equal(part, other.features[order][:, own])


def test_who_knows_none_in_particular_knows_all():
  training = Batch((jnp.arange(6.0)[:, None],), jnp.eye(2)[np.arange(6) % 2])
  assert division.known(KEY, training, 0) is training


@pytest.mark.parametrize('count', [1, 2, 3, 4])
def test_fewer_known_samples_are_those_drawn_with_fewer(count):
  """Also where a class has fewer than that: of the last there are two."""
  numbers = jnp.array([0] * 5 + [1] * 9 + [2] * 2)
  training = Batch((jnp.arange(16.0)[:, None],), jax.nn.one_hot(numbers, 3))
  all_ = division.known(KEY, training, 4)
  fewer = division.fewer(all_, jnp.array(count))
  expected = division.known(KEY, training, count)
  with_labels = lambda batch: np.asarray(batch.labels.sum(-1) > 0)
  for one, other in zip(jax.tree.leaves(fewer), jax.tree.leaves(expected)):
    np.testing.assert_array_equal(
        one[with_labels(fewer)], other[with_labels(expected)]
    )
  assert with_labels(fewer).sum() == 2 * count + min(count, 2)


def test_images_of_floats_are_scaled_by_their_training_part():
  """Streamed samples, too; once 'minmax' left pixels up to 255 as they are."""
  x = np.random.default_rng(0).uniform(-50, 255, (12, 3, 3, 2))
  x = x.astype(np.float32)
  samples = Batch((jnp.asarray(x),), jnp.eye(2)[np.arange(12) % 2])
  sizes = division.Sizes(8, 0, 4)
  rows = division.rows_of(KEY, sizes, False)
  fit = x[rows[0]]
  for how, middle, width in (
      ('standard', fit.mean(), fit.std()), ('none', 0, 1),
      ('minmax', fit.min(), np.ptp(fit)),
  ):
    parts = division.split(KEY, samples, sizes, False, how)
    expected = (x[rows[2]] - middle) / width
    np.testing.assert_allclose(parts.test.features[0], expected, rtol=1e-4)
    own = streamed.scale_of(x, np.asarray(rows[0]), how)
    found = division.scale_by(jnp.asarray(x[rows[2]]), own)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize('how', ['standard', 'minmax'])
@pytest.mark.parametrize('value', [0.0, 0.3])
def test_pixels_that_are_alike_in_training_are_zeros(how, value):
  """As at a party that has the dark edge of images: a speck in one of the test
  images would else be divided by next to nothing."""
  sizes = division.Sizes(200, 0, 4)
  rows = division.rows_of(KEY, sizes, False)
  x = np.full((204, 7, 3, 1), value, np.float32)
  x[rows[2][0], 0, 0] = 1
  samples = Batch((jnp.asarray(x),), jnp.eye(2)[np.arange(204) % 2])
  parts = division.split(KEY, samples, sizes, False, how)
  for part in (parts.train, parts.test):
    np.testing.assert_array_equal(part.features[0], 0)
