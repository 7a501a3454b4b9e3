"""How many samples a round and how many epochs suit a table."""
from types import SimpleNamespace

import numpy as np
import pytest

from vfljax.runner.experiment import rounds


def table(rows, of_second, of_third=0):
  labels = np.zeros(rows, int)
  labels[:of_second] = 1
  labels[of_second: of_second + of_third] = 2
  names = 'abc'[: 3 if of_third else 2]
  return SimpleNamespace(labels=labels, classes=names)


@pytest.mark.parametrize('rows, of_second, batch, epochs', [
    (100, 50, 25, 30), (2000, 1000, 32, 16), (2001, 1000, 128, 30),
    (20_000, 9000, 128, 6), (20_001, 9000, 512, 26), (200_000, 90_000, 512, 5),
    (200_001, 90_000, 1024, 5),
    # Two of the rarer class in a round; as many rounds as with 32.
    (2000, 100, 40, 20), (2000, 20, 200, 100),
    # At most 16 times as many, and a quarter of the table; at least 2.
    (20_000, 1, 2048, 102), (2000, 1, 500, 250), (6, 3, 2, 30),
])
def test_what_suits_a_table(rows, of_second, batch, epochs):
  one = table(rows, of_second)
  assert rounds.batch_size(one) == batch
  assert rounds.epochs(one, batch) == epochs


def test_of_three_classes_none_is_rare():
  assert rounds.batch_size(table(2000, 20, 5)) == 32


@pytest.mark.parametrize('rows, batch, epochs', [
    (2000, 1400, 700), (2000, 2000, 700),  # One round an epoch, at least.
    (2000, 8, 5), (100, 50, 30),
])
def test_other_rounds_have_other_epochs(rows, batch, epochs):
  """About 700 rounds in 5 to 30 epochs, more where rounds are larger."""
  assert rounds.epochs(table(rows, rows // 2), batch) == epochs


def test_how_many_times_more_rounds():
  """Of 2000 rows 43.75 rounds of 32 make an epoch, and 16 epochs suit."""
  one = table(2000, 1000)
  assert rounds.times(one, 32, 16) == pytest.approx(1)
  assert rounds.times(one, 16, 16) == pytest.approx(2)
  assert rounds.times(one, 2000, 160) == pytest.approx(160 / 700)
