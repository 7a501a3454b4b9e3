"""Vertical splits with a strength, after VertiBench (Wu et al., 2024).

By importance: each party's share is drawn from a symmetric Dirichlet
distribution, and every column goes to a party with that probability. A small
concentration gives one party nearly all columns, a large one equal shares.

By correlation: parties have equal numbers of columns, chosen so that the
columns of different parties are as little (0) or as much (1) correlated as
possible, or in between. VertiBench measures this by singular values of
correlation matrices and searches with a genetic algorithm. Here it is measured
by the sum of absolute rank correlations within the parties, and the search
exchanges pairs of columns.
"""
from collections.abc import Sequence

import numpy as np

_ROWS = 2000  # Rows from which rank correlations are computed.
_FAR = 1e9  # Larger than any sum of correlations.


def by_importance(
    columns: int, parties: int, concentration: float, seed: int
) -> list[np.ndarray]:
  """Every party's columns, ascending, at least one each.

  Args:
    columns: Number of columns, at least the number of parties.
    parties: Number of parties that get columns, 1 or more.
    concentration: Of the Dirichlet distribution, above 0.
    seed: Seeds all draws.

  Raises:
    ValueError: for numbers out of range.
  """
  if concentration <= 0:
    raise ValueError(
        "The strength of how='importance' must be above 0; got "
        f'{concentration:g}.'
    )
  _check(columns, parties)
  draw = np.random.default_rng(seed)
  shares = draw.dirichlet([concentration] * parties)
  owner = draw.choice(parties, columns, p=shares)
  # Each party gets at least one column.
  owner[draw.permutation(columns)[:parties]] = np.arange(parties)
  return [np.flatnonzero(owner == k) for k in range(parties)]


def by_correlation(
    x: np.ndarray, groups: Sequence[int], parties: int, between: float,
    seed: int,
) -> list[np.ndarray]:
  """Every party's original columns, ascending, in equal numbers.

  Args:
    x: Features, [n, columns].
    groups: The original column of each column.
    parties: Number of parties that get columns, 1 or more.
    between: 0 for the least correlation between parties and the most within
      them; 1 for the opposite.
    seed: Seeds the choice of rows and the split that the search starts from.

  Raises:
    ValueError: for numbers out of range.
  """
  if not 0 <= between <= 1:
    raise ValueError(
        f"The strength of how='correlation' must be in 0..1; got {between:g}."
    )
  draw = np.random.default_rng(seed)
  rows = draw.permutation(len(x))[:_ROWS]
  matrix = correlations(x[rows], groups)
  _check(len(matrix), parties)
  owner = draw.permutation(len(matrix)) % parties
  most, least = (_towards(matrix, owner, goal) for goal in (_FAR, -_FAR))
  high, low = inside(matrix, most), inside(matrix, least)
  start = least if between > 0.5 else most
  found = _towards(matrix, start, high + between * (low - high))
  return [np.flatnonzero(found == k) for k in range(parties)]


def correlations(x: np.ndarray, groups: Sequence[int]) -> np.ndarray:
  """Absolute rank correlations between original columns, [g, g].

  The diagonal is 0. For a categorical column, the largest correlation of its
  one-hot columns counts. A constant column is correlated with nothing.
  """
  from scipy import stats  # Imported late: it takes a second.
  ranks = stats.rankdata(np.asarray(x, np.float64), axis=0)
  ranks = ranks - ranks.mean(0)
  size = np.sqrt((ranks**2).sum(0))
  ranks = np.divide(ranks, size, out=np.zeros_like(ranks), where=size > 0)
  # A program's own table may have other columns between those of a group.
  order = np.argsort(groups, kind='stable')
  fine = abs(ranks.T @ ranks)[np.ix_(order, order)]
  starts = np.unique(np.asarray(groups)[order], return_index=True)[1]
  coarse = np.maximum.reduceat(np.maximum.reduceat(fine, starts, 0), starts, 1)
  np.fill_diagonal(coarse, 0)
  return coarse


def inside(matrix: np.ndarray, owner: np.ndarray) -> float:
  """The sum of `matrix` over pairs of columns of the same party."""
  return float(matrix[owner[:, None] == owner].sum() / 2)


def _towards(matrix: np.ndarray, owner: np.ndarray, goal: float) -> np.ndarray:
  """Exchanges pairs of columns as long as that moves `inside` towards `goal`.
  """
  owner, now = owner.copy(), inside(matrix, owner)
  parties = owner.max() + 1
  # near[i, k]: column i's correlations with party k's columns.
  near = matrix @ (owner[:, None] == np.arange(parties))
  pairs = [(k, other) for other in range(parties) for k in range(other)]
  for _ in range(4 * len(owner)):
    found = [_exchange(matrix, near, owner, pair, goal - now) for pair in pairs]
    if not found:
      break
    off, change, i, j = min(found)
    if off >= abs(now - goal) - 1e-9:
      break
    now += change
    moved = matrix[:, j] - matrix[:, i]
    near[:, owner[i]] += moved
    near[:, owner[j]] -= moved
    owner[i], owner[j] = owner[j], owner[i]
  return owner


def _exchange(
    matrix: np.ndarray, near: np.ndarray, owner: np.ndarray,
    pair: tuple[int, int], wanted: float,
) -> tuple[float, float, int, int]:
  """The exchange of two columns whose effect is nearest to `wanted`.

  Returns:
    (distance from `wanted`, change of `inside`, the two columns).
  """
  one, other = (np.flatnonzero(owner == k) for k in pair)
  gains = [
      near[mine, theirs] - near[mine, ours]
      for mine, ours, theirs in ((one, *pair), (other, *pair[::-1]))
  ]
  (one, a), (other, b) = _promising(matrix, (one, other), gains, wanted)
  change = a[:, None] + b - 2 * matrix[np.ix_(one, other)]
  off = abs(change - wanted)
  i, j = np.unravel_index(off.argmin(), off.shape)
  return float(off[i, j]), float(change[i, j]), int(one[i]), int(other[j])


def _promising(matrix, columns, gains, wanted):
  """The columns of two parties, with gains, that the best exchange may use.

  Exchanging i and j changes `inside` by gains[0][i] + gains[1][j] -
  2 matrix[i, j]. If no exchange can reach `wanted`, only columns with nearly
  the largest (or smallest) gains need to be compared pair by pair.
  """
  slack = 2 * matrix.max()
  if sum(g.max() for g in gains) <= wanted:
    signed = gains
  elif sum(g.min() for g in gains) - slack >= wanted:
    signed = [-g for g in gains]
  else:
    return tuple(zip(columns, gains))
  # The term of `matrix` cannot make up for a larger difference of gains.
  kept = [g >= g.max() - slack for g in signed]
  return tuple((c[k], g[k]) for c, g, k in zip(columns, gains, kept))


def _check(columns: int, parties: int) -> None:
  if parties > columns:
    raise ValueError(
        f'{parties} parties need {parties} or more columns, one each; there'
        f' {"is" if columns == 1 else "are"} {columns}.'
    )
