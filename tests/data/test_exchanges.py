"""Splits by correlation: the exchange that is made is the best of all."""
import itertools

import numpy as np
import pytest

from vfljax.data import controlled

COLUMNS, PARTIES = 24, 3


@pytest.mark.parametrize('wanted', [-1e9, -3.0, -0.5, 0.0, 0.7, 4.0, 1e9])
@pytest.mark.parametrize('seed', range(4))
def test_no_other_exchange_is_nearer(wanted, seed):
  draw = np.random.default_rng(seed)
  # A few columns with much to gain: the others need not be looked at.
  sizes = draw.random(COLUMNS) ** 3
  matrix = np.outer(sizes, sizes) * draw.random((COLUMNS, COLUMNS))
  matrix = (matrix + matrix.T) / 2
  np.fill_diagonal(matrix, 0)
  owner = draw.permutation(COLUMNS) % PARTIES
  before = controlled.inside(matrix, owner)
  changes = {}
  for i, j in itertools.combinations(range(COLUMNS), 2):
    other = owner.copy()
    other[i], other[j] = owner[j], owner[i]
    if owner[i] != owner[j]:
      changes[i, j] = controlled.inside(matrix, other) - before
  best = min(abs(change - wanted) for change in changes.values())
  near = matrix @ (owner[:, None] == np.arange(PARTIES))
  off, change, i, j = min(
      controlled._exchange(matrix, near, owner, pair, wanted)
      for pair in itertools.combinations(range(PARTIES), 2)
  )
  assert off == pytest.approx(best)
  assert change == pytest.approx(changes[min(i, j), max(i, j)])
