"""One class alone is refused where an AUC is asked for, and said to be it."""
import numpy as np
import pytest

from vfljax.data.table import Table
from vfljax.runner.checking import checks, one_class
from vfljax.runner.config import Config, DataConfig, Entry, TrainConfig
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import division

ROWS = 40


def setting(
    positives, test=None, seeds=3, classes=2, first=0, best=False, **data
):
  """Of a table with so many positives, its first rows."""
  x = np.random.default_rng(0).normal(size=(ROWS, 4)).astype(np.float32)
  labels = (np.arange(ROWS) < positives).astype(int)
  if classes > 2:
    labels[-1] = 2
  table = Table(
      x, labels, tuple('abcd'), tuple('xyz'[:classes]), (0, 1, 2, 3), test
  )
  return checks.assembled(Config(
      seeds=seeds, first_seed=first, listed=(Entry('none'),),
      listed_attacks=('norm_scoring',),
      data=DataConfig('synthetic', **data),
      train=TrainConfig(batch_size=8, best=best),
  ), table)


def refusal(*args, **options):
  try:
    one_class.check(setting(*args, **options))
  except ValueError as error:
    return str(error)
  return ''


@pytest.mark.parametrize('rows, whose', [
    (slice(None, 10), 'training'), (slice(20, None), 'test'),
])
def test_a_test_set_of_ones_own(rows, whose):
  test = np.zeros(ROWS, bool)
  test[rows] = True
  assert refusal(10, test).startswith(f'The {whose} set has one class alone')
  assert not refusal(10, np.arange(ROWS) % 2 == 0)


def test_a_seed_that_lacks_a_class_is_named():
  """By its own split, which another seed may do without."""
  found = [not refusal(4, seeds=1, first=first) for first in range(6)]
  assert 0 < sum(found) < 6
  bad = found.index(False)
  message = refusal(4, seeds=1, first=bad)
  assert f'The test set of seed {bad} has one class' in message
  assert '4 of 40 samples' in message
  assert f'of seed {bad} ' in refusal(4, seeds=6)


def test_which_samples_a_seed_has_is_what_it_trains_on():
  made = setting(4, validation=0.2)
  for seed in range(6):
    splits = checks.split_samples(
        made, division.key_of(seed), made.samples
    )
    found = division.counts(
        np.array([seed]), made.samples.labels, made.sizes
    )
    want = [
        part.labels.sum(0)
        for part in (splits.train, splits.test, splits.validation)
    ]
    np.testing.assert_array_equal(found[0], want)


def test_one_split_for_all_seeds_is_looked_at_once():
  found = [not refusal(4, seeds=1, first=first) for first in range(6)]
  good = found.index(True)
  assert not refusal(4, seeds=50, first=good, resplit=False)


def test_accuracy_needs_no_second_class():
  assert not refusal(1, classes=3)


def test_it_is_refused_before_anything_runs():
  with pytest.raises(UserError, match='has one class alone'):
    checks.rehearse(setting(1))


@pytest.mark.parametrize('test', [None, np.arange(ROWS) % 4 == 0])
def test_a_validation_set_that_knows_no_best_epoch_is_refused(test):
  """With a test set of one's own, too. Whoever keeps the last epoch may."""
  ask = lambda first, best: refusal(
      10, test, seeds=1, first=first, best=best, validation=0.1
  )
  found = [ask(first, True) for first in range(12)]
  bad = [first for first, said in enumerate(found) if said]
  assert 0 < len(bad) < 12
  for first in bad:
    assert found[first].startswith(f'The validation set of seed {first} has')
    assert '--config.data.validation or' in found[first]
    assert not ask(first, False)
  for first in range(12):
    made = setting(10, test, 1, first=first, best=True, validation=0.1)
    held = division.rows_of(
        division.key_of(first), made.sizes, made.official
    )[1]
    own = np.asarray(made.samples.labels)[held].sum(0)
    assert (own.min() == 0) == (first in bad)
