"""Gaussian classes with a known label signal at every party.

Party k's columns are N(mean_k[label], I) with the class means on the corners of
a regular simplex of radius signal[k], in a random direction of its space: for
two classes, at +-signal[k] along a unit vector. Parties are independent given
the label, so signals add in quadrature: what a party, or all of them, can know
of the labels is known exactly. Textbook detection theory (M-ary simplex
signals in white noise), written out here.
"""
from collections.abc import Sequence

import numpy as np

from vfljax.data.files import fits
from vfljax.data.options import whole
from vfljax.data.source import Source
from vfljax.data.table import Table


def load(
    path: str = '', samples: int = 1000, columns: int = 5,
    signal: Sequence[float] = (1.0, 0.5), classes: int = 2,
    imbalance: float = 1.0, seed: int = 0,
) -> Table:
  """Draws a table; `columns` columns a party, in the parties' order.

  An 'even' split over len(signal) parties gives every party its own columns.

  Args:
    path: Must be empty.
    samples: Rows, at least 2.
    columns: Columns of each party, at least classes - 1.
    signal: Each party's signal >= 0: the distance of the class means from their
      centre, in standard deviations of the noise.
    classes: At least 2.
    imbalance: The first class is this many times as frequent as the last
      (1e-6 to 1e6), with geometric steps between.
    seed: Seeds the draw, 0 or more.

  Raises:
    ValueError: for arguments outside these ranges.
  """
  _check(path, samples, columns, signal, classes)
  whole('synthetic', 0, seed=seed)
  rng = np.random.default_rng(seed)
  labels = rng.choice(classes, samples, p=priors(classes, imbalance))
  corners = simplex(classes)
  parts = []
  for s in signal:
    # Orthonormal rows: a random orientation of the simplex in the columns.
    basis = np.linalg.qr(rng.standard_normal((columns, classes - 1)))[0].T
    noise = rng.standard_normal((samples, columns))
    parts.append(s * (corners @ basis)[labels] + noise)
  features = np.concatenate(parts, axis=1).astype(np.float32)
  names = tuple(
      f'p{k}_x{i}' for k in range(len(signal)) for i in range(columns)
  )
  return Table(
      features, labels.astype(np.int32), names, tuple(map(str, range(classes))),
      tuple(range(len(names))),
  )


def bayes_accuracy(
    signal: Sequence[float], classes: int = 2, imbalance: float = 1.0
) -> float:
  """The best possible accuracy from these parties' columns together.

  With s = sqrt(sum of squares), r = s sqrt(classes / (classes - 1)), priors p:
  sum_c p_c E[ prod_{j != c} Phi(Z + r + log(p_c / p_j) / r) ], Z ~ N(0, 1); for
  two equal classes Phi(s). The expectation is a trapezoidal sum, exact to about
  1e-12.

  Args:
    signal: The signals of the parties that pool their columns.
    classes: As in `load`.
    imbalance: As in `load`.
  """
  from scipy import special
  p = priors(classes, imbalance)
  r = total(signal) * np.sqrt(classes / (classes - 1))
  if r == 0:
    return float(p.max())
  z, step = np.linspace(-12, 12, 6001, retstep=True)
  density = np.exp(-z**2 / 2) / np.sqrt(2 * np.pi)
  shift = r + (np.log(p)[:, None] - np.log(p)) / r
  inside = special.ndtr(z[:, None, None] + shift)  # [points, class, rival]
  others = ~np.eye(classes, dtype=bool)
  right = np.prod(inside, axis=2, where=others) @ p
  return float((density * right).sum() * step)


def bayes_auc(signal: Sequence[float]) -> float:
  """The best possible ROC-AUC for two classes: Phi(sqrt(2) s)."""
  from scipy import special
  return float(special.ndtr(np.sqrt(2) * total(signal)))


def total(signal: Sequence[float]) -> float:
  """The signal of parties that pool their columns: the root of the squares."""
  return float(np.sqrt(np.square(np.asarray(signal, float)).sum()))


def priors(classes: int, imbalance: float = 1.0) -> np.ndarray:
  """The classes' frequencies [classes]: geometric from first to last."""
  if classes < 2 or not 1e-6 <= imbalance <= 1e6:
    raise ValueError(
        'synthetic: at least 2 classes and an imbalance above 0, 1e-6 to 1e6,'
        f' are needed; got {classes} and {imbalance}.'
    )
  p = float(imbalance) ** -(np.arange(classes) / (classes - 1))
  return p / p.sum()


def simplex(classes: int) -> np.ndarray:
  """Corners of a regular simplex of radius 1: [classes, classes - 1].

  Every two have inner product -1 / (classes - 1); for two classes -1 and 1.
  """
  corners = np.zeros((classes, classes - 1))
  for i in range(classes - 1):
    # Column i separates class i from the later ones, which share its rest.
    rest = classes - i
    corners[i, i] = -np.sqrt((rest - 1) / rest)
    corners[i + 1:, i] = 1 / np.sqrt(rest * (rest - 1))
  return corners * np.sqrt(classes / (classes - 1))


def _check(path, samples, columns, signal, classes) -> None:
  if path:
    raise ValueError(f'synthetic reads no file; got the path {path!r}.')
  if samples < 2:
    raise ValueError(f'synthetic: samples must be at least 2; got {samples}.')
  if columns < max(classes - 1, 1):
    raise ValueError(
        f'synthetic: {classes} classes need at least {classes - 1} columns a'
        f' party; got {columns}.'
    )
  if not len(signal) or not all(0 <= s < np.inf for s in signal):
    raise ValueError(
        f'synthetic: signal must be one number >= 0 a party; got {signal}.'
    )
  size = _bytes(samples, columns, len(signal), classes)
  fits(size, 'synthetic: so many samples, columns and classes')


def _bytes(samples: int, columns: int, parties: int, classes: int) -> int:
  """The most bytes of memory that `load` takes at a time.

  At its end it holds, in 8 bytes a number, every party's columns, all of them
  side by side, the last party's noise and the labels; and all columns in 4
  bytes. Before that it holds the corners of the classes and a basis.
  """
  row = 8 * (2 * columns * parties + columns + 1) + 4 * columns * parties
  return samples * row + 16 * columns * classes


SOURCE = Source(
    load, 'any', 'drawn from a seed; no path', 'none needed',
    extent='(samples) x (columns a party)', parties='any', with_us=True,
)
