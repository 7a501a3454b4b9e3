"""Vertical splits with a knob: importance and correlation."""
import itertools

import numpy as np
import pytest
from scipy import stats

from vfljax.data import controlled, split
from vfljax.data.table import Table


def blocks(copies=3, rows=400, seed=0):
  """Two hidden causes; columns 0, 2, 4 follow the first, 1, 3, 5 the second."""
  draw = np.random.default_rng(seed)
  causes = draw.standard_normal((rows, 2))
  noise = 0.3 * draw.standard_normal((rows, 2 * copies))
  return (np.tile(causes, copies) + noise).astype(np.float32)


def table(x):
  n = x.shape[1]
  labels = np.arange(len(x), dtype=np.int32) % 2
  return Table(
      x, labels, tuple(f'x{i}' for i in range(n)), ('a', 'b'), tuple(range(n))
  )


def lists(parts):
  return sorted(part.tolist() for part in parts)


def test_correlations_are_scipys():
  x = blocks()
  expected = abs(stats.spearmanr(x).statistic)
  np.fill_diagonal(expected, 0)
  np.testing.assert_allclose(
      controlled.correlations(x, range(6)), expected, atol=1e-6
  )
  # One-hot columns of one column: the largest counts. A constant: nothing.
  x[:, 3] = 1
  merged = controlled.correlations(x, (0, 0, 1, 2, 3, 3))
  np.testing.assert_allclose(
      merged[0, 1], max(expected[0, 2], expected[1, 2]), atol=1e-6
  )
  assert not merged[2].any()


def test_a_groups_columns_need_not_be_neighbours():
  x, groups = blocks(), (0, 1, 0, 2, 3, 1)
  order = np.argsort(groups, kind='stable')
  np.testing.assert_allclose(
      controlled.correlations(x, groups),
      controlled.correlations(x[:, order], np.array(groups)[order]),
      atol=1e-6,
  )
  found = split.columns(table(x)._replace(groups=groups), 2, 'correlation')
  assert sorted(np.concatenate(found)) == [*range(6)]


def test_the_ends_are_those_of_an_exhaustive_search():
  x = blocks()
  matrix = controlled.correlations(x, range(6))
  sums = {}
  for own in itertools.combinations(range(1, 6), 2):
    owner = np.array([int(i not in (0, *own)) for i in range(6)])
    sums[controlled.inside(matrix, owner)] = owner
  apart = controlled.by_correlation(x, range(6), 2, 0.0, 1)
  assert lists(apart) == [[0, 2, 4], [1, 3, 5]]
  assert lists(apart) == lists(
      np.flatnonzero(sums[max(sums)] == k) for k in range(2)
  )
  mixed = controlled.by_correlation(x, range(6), 2, 1.0, 1)
  assert lists(mixed) == lists(
      np.flatnonzero(sums[min(sums)] == k) for k in range(2)
  )


def test_between_the_ends():
  x = blocks(copies=8)
  matrix = controlled.correlations(x, range(16))

  def reached(between):
    parts = controlled.by_correlation(x, range(16), 4, between, 0)
    owner = np.empty(16, int)
    for k, part in enumerate(parts):
      assert len(part) == 4
      owner[part] = k
    return controlled.inside(matrix, owner)

  high, middle, low = map(reached, (0.0, 0.5, 1.0))
  assert high > middle > low
  assert abs(middle - (high + low) / 2) < 0.1 * (high - low)


def test_importance_is_as_unequal_as_asked():
  def largest(concentration):
    return np.mean([
        max(map(len, controlled.by_importance(60, 4, concentration, seed)))
        for seed in range(40)
    ])

  assert largest(100.0) < 24 < 27 < largest(1.0) < 40 < largest(0.05)
  parts = controlled.by_importance(7, 5, 0.01, 3)
  assert min(map(len, parts)) >= 1
  assert sorted(np.concatenate(parts)) == list(range(7))
  again = controlled.by_importance(7, 5, 0.01, 3)
  assert lists(parts) == lists(again)


def test_as_a_split_of_a_table():
  found = split.columns(table(blocks()), 3, 'correlation', label_only=True,
                        strength=0.0)
  assert found[0] is None
  assert [part.tolist() for part in found[1:] if part is not None] in (
      [[0, 2, 4], [1, 3, 5]], [[1, 3, 5], [0, 2, 4]]
  )
  shares = split.columns(table(blocks()), 2, 'importance', strength=0.5)
  assert sum(len(part) for part in shares if part is not None) == 6


def test_what_is_wrong_is_said():
  for options, match in (
      (dict(how='correlation', strength=1.5), r'0\.\.1'),
      (dict(how='importance', strength=0.0), 'above 0'),
      (dict(how='importance', parties=9), 'need 9 or more columns'),
      (dict(how='correlation', parties=9), 'need 9 or more columns'),
  ):
    with pytest.raises(ValueError, match=match):
      split.columns(table(blocks()), **(dict(parties=2) | options))


def test_one_party_has_all_columns():
  found = controlled.by_correlation(blocks(), range(6), 1, 0.5, 0)
  assert [part.tolist() for part in found] == [[0, 1, 2, 3, 4, 5]]
