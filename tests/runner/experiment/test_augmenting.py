"""A defender's samples made by flips and crops, or by other words."""
import jax
import numpy as np
import pytest

from tests.experiments.test_vmask_experiments import small
from experiments.vmask import common
from vfljax import data
from vfljax.runner.checking import checks
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import augmenting
from vfljax.runner.experiment.setting import split_samples
from vfljax.types import Batch

KEY = jax.random.key(0)


def test_images_are_mirrored_and_shifted_by_up_to_four_pixels():
  x = jax.random.uniform(KEY, (80, 14, 12, 1), minval=0.5)
  found = np.asarray(jax.jit(augmenting.image)(jax.random.key(1), x))
  moves = set()
  x = np.asarray(x)
  wide = np.pad(
      x, ((0, 0), (4, 4), (4, 4), (0, 0)), constant_values=x.min()
  )
  for one, image in zip(found, wide):
    fits = [
        (turned, i - 4, j - 4)
        for turned, whole in enumerate((image, image[:, ::-1]))
        for i in range(9) for j in range(9)
        if (whole[i:i + 14, j:j + 12] == one).all()
    ]
    assert len(fits) == 1
    moves.add(fits[0])
  assert {turned for turned, _, _ in moves} == {0, 1}
  for axis in (1, 2):
    assert {move[axis] for move in moves} == set(range(-4, 5))


@pytest.mark.parametrize('shape', [(200, 2, 8, 1), (200, 8, 2, 1)])
def test_half_of_the_smaller_side_stays_in_the_picture(shape):
  x = jax.random.uniform(KEY, shape, minval=0.5)
  found = np.asarray(augmenting.image(jax.random.key(1), x))
  there = (found != float(x.min())).sum((1, 2, 3))
  assert there.min() == 7 and there.max() == 16  # Moved by 1 each way, or not.


FIRST, LAST = 101, 102
changed = jax.jit(augmenting.words)


def texts(count=400, length=16):
  """Words 1 to 99 between two special tokens, then zeros."""
  draw = np.random.default_rng(0)
  x = np.zeros((count, length), np.float32)
  for row in x:
    words = draw.integers(1, 100, draw.integers(1, length - 1))
    row[: len(words) + 2] = [FIRST, *words, LAST]
  return x


def test_words_are_left_out_and_put_in():
  x = texts()
  found = np.asarray(changed(KEY, x, augmenting.RATE))
  assert found.shape == x.shape and found.dtype == x.dtype
  longer = np.sum(found != 0, 1) - np.sum(x != 0, 1)
  assert (longer > 0).any() and (longer < 0).any()
  for row in found:
    count = int((row != 0).sum())
    assert row[0] == FIRST and row[count - 1] == LAST
    assert not row[count:].any()
    assert ((row[1:count - 1] >= 1) & (row[1:count - 1] < 100)).all()


@pytest.mark.parametrize('rate', [0.0, 0.1, 0.5])
def test_words_change_at_their_rate(rate):
  """A text of one word over and over: what is another word was put in."""
  x = np.zeros((2000, 40), np.float32)
  x[:, :22] = [FIRST, *[7] * 20, LAST]
  x[0, 1:21] = 8  # Drawn once in 2000 times.
  found = np.asarray(changed(KEY, x, rate))
  if not rate:
    np.testing.assert_array_equal(found, x)
  words = (found == 7).sum() + (found == 8).sum()
  assert abs(words / (2000 * 20) - 1) < 0.01  # As many in as out.
  counts = (found != 0).sum(1) - 22
  # A difference of two binomial numbers of 20 words each.
  np.testing.assert_allclose(counts.var(), 40 * rate * (1 - rate), rtol=0.1)


def test_a_text_that_grows_too_long_keeps_its_last_token():
  x = np.full(texts().shape, 7, np.float32)  # As above: compiled once.
  x[:, 0], x[:, -1] = FIRST, LAST
  found = np.asarray(changed(KEY, x, 0.5))
  ends = (found != 0).sum(1) - 1
  assert (found[np.arange(400), ends] == LAST).all()
  assert (found == LAST).sum() == 400 and (ends == 15).any()


def test_parties_draw_apart_and_labels_stay():
  x = np.random.default_rng(0).random((30, 14, 14, 1), np.float32)
  labels = np.eye(3, dtype=np.float32)[np.arange(30) % 3]
  batch = Batch((None, x, x), labels)
  made = jax.jit(augmenting.augmented)(KEY, batch)
  none, one, two = made.features
  assert none is None and (one != two).any()
  np.testing.assert_array_equal(made.labels, batch.labels)
  with pytest.raises(ValueError, match='flips and crops images'):
    augmenting.augmented(KEY, Batch((x[:, 0, 0],), batch.labels))


def spare(how):
  config = small(common.config('test', ()))
  config.auxiliary.augment = how
  setting = checks.make(config, data.load('digits'))
  found = jax.jit(lambda key: split_samples(setting, key, setting.samples))(KEY)
  return found.train, found.spare


@pytest.mark.slow
def test_the_defenders_samples_are_made_of_those_that_were_asked_for():
  train, plain = spare('none')
  same, aside = spare('held_out')
  also, copies = spare('training')
  for own in (same, also):  # Nobody trains on others for it.
    np.testing.assert_array_equal(own.features[1], train.features[1])
  assert len(aside.labels) == len(copies.labels) == len(plain.labels) == 160
  np.testing.assert_array_equal(aside.labels, plain.labels)
  np.testing.assert_array_equal(copies.labels, train.labels[:160])
  assert (aside.features[1] != plain.features[1]).any()
  # A shift moves pixels: most are still there.
  for made, of in ((aside, plain), (copies, train)):
    ours, theirs = (np.asarray(b.features[1])[:160] for b in (made, of))
    assert not (ours == theirs).all((1, 2, 3)).all()
    assert np.isin(ours, np.append(theirs, ours.min())).all()


def test_a_table_has_nothing_to_flip():
  config = small(common.config('test', ()))
  config.data.name, config.data.split = 'breast_cancer', 'even'
  config.auxiliary.augment, config.auxiliary.samples = 'held_out', 20
  with pytest.raises(UserError, match='flips and crops images'):
    checks.make(config, data.load('breast_cancer'))
