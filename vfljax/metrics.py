"""Metrics of tasks and label attacks, of image similarity and of dependence.

All but `mean_interval` are pure JAX functions, so that they run inside a scan.
Values are fractions, not percentages. They equal the functions of the same name
in scikit-learn, scikit-image and dcor, except where a docstring says otherwise.
"""
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from vfljax import check, numerics, target
from vfljax.likeness import psnr, ssim
from vfljax.numerics import as_integers, counts_below, floating, safe_sqrt
from vfljax.types import Array

__all__ = [
    'accuracy', 'distance_correlation', 'leak_auc', 'mean_interval', 'psnr',
    'roc_auc', 'ssim', 'top_k',
]

AT_ONCE = 256  # Rows whose distances a CPU computes all at once.
_EXACT = 1 << 19  # Samples up to which an AUC's sum is one of int32.


def roc_auc(
    scores: Array, labels: Array, weights: Array | None = None
) -> Array:
  """Area under the ROC curve: P(a positive scores above a negative), ties 1/2.

  Sorts the negatives and looks each positive up among them: O(n log n). Exact
  up to 500 000 samples, then up to float32's rounding; 2^29 samples at most.

  Args:
    scores: [n], the larger the more positive. As JAX takes them: what float32
      cannot tell apart is a tie, unless JAX has 64 bits.
    labels: [n] of 0 and 1.
    weights: [n] of 0 and 1; samples at 0 are left out.

  Returns:
    A scalar in [0, 1]. NaN of one class alone, or if a score that counts is.

  Raises:
    ValueError: if scores, labels and weights are not [n] each; if labels that
      are not traced have more than two values, where they were swapped, or two
      above 0; if such weights are others than 0 and 1.
  """
  scores, (labels, weights) = floating(scores), numerics.arrays(labels, weights)
  _check_rows('roc_auc', scores, labels=labels, weights=weights)
  _check_two(labels, weights)
  counted = jnp.ones(scores.shape, bool) if weights is None else _holds(weights)
  positive = counted & _holds(labels)
  negative = counted & ~_holds(labels)
  keys = as_integers(scores)
  last = jnp.iinfo(keys.dtype).max
  below = lax.sort(jnp.where(negative, keys, last), is_stable=False)
  # Of integers, "below x + 1" is "not above x": with "below x", a lower
  # negative counts twice and a tied one once.
  twice = counts_below(below, jnp.stack([keys, keys + 1])).sum(0)
  twice = jnp.where(positive, twice, 0)
  total = _total(twice, scores.dtype)
  count = lambda mask: mask.sum(dtype=jnp.int32).astype(scores.dtype)
  pairs = count(positive) * count(negative)
  defined = (pairs > 0) & ~(jnp.isnan(scores) & counted).any()
  area = total / 2 / jnp.where(pairs > 0, pairs, 1)
  return jnp.where(defined, area, jnp.nan)


def leak_auc(
    scores: Array, labels: Array, weights: Array | None = None
) -> Array:
  """The folded ROC AUC, max(a, 1 - a): of an attacker who may swap the classes.

  GAFM's leak measure (Han et al., 2023). Arguments and errors as `roc_auc`'s.

  Returns:
    A scalar in [0.5, 1], or NaN where `roc_auc` is.
  """
  area = roc_auc(scores, labels, weights)
  return jnp.maximum(area, 1 - area)


def accuracy(
    logits: Array, labels: Array, weights: Array | None = None
) -> Array:
  """Share of samples whose largest logit is the label's; of ties the first is.

  Args:
    logits: [n, classes], or probabilities.
    labels: [n, classes], one-hot or distributions, or [n] class indices.
    weights: [n], 0 or more; 0 leaves a sample out. By default all count but
      those whose labels are zeros, as of padding.

  Returns:
    A scalar in [0, 1]; NaN if no sample counts, or a logit of a sample that
    counts is NaN: a network that has diverged has no accuracy, and `argmax` of
    NaN would give that of always guessing the first class.

  Raises:
    ValueError: for labels of another shape, or class numbers that are none.
  """
  logits, = numerics.arrays(logits)
  right = lambda classes: logits.argmax(-1) == classes
  return _share(logits, labels, weights, right)


def top_k(
    logits: Array, labels: Array, k: int, weights: Array | None = None
) -> Array:
  """Share of samples whose label is among the `k` largest logits.

  Of tied logits the first ones count (scikit-learn: the last ones), so that
  `top_k(..., 1)` is `accuracy` and constant logits earn nothing.

  Args:
    logits: [n, classes].
    labels: [n, classes] or [n], as in `accuracy`.
    k: 1 or more; static. More than the number of classes counts as all.
    weights: As in `accuracy`.

  Returns:
    A scalar in [0, 1]; NaN where `accuracy` is.

  Raises:
    ValueError: if `k` is below 1, or labels have another shape.
  """
  check.count('top_k: k', k)
  logits, = numerics.arrays(logits)
  _, best = lax.top_k(logits, min(k, logits.shape[-1]))
  right = lambda classes: (best == classes[:, None]).any(-1)
  return _share(logits, labels, weights, right)


def distance_correlation(
    x: Array, y: Array, weights: Array | None = None
) -> Array:
  """Distance correlation of two samples (Székely et al., 2007), biased form.

  sqrt(dCov^2(x, y) / sqrt(dCov^2(x, x) dCov^2(y, y))), where dCov^2 is the mean
  product of two matrices of Euclidean distances, each doubly centered. The
  gradient is finite everywhere, and 0 where there is no derivative. Time and,
  under differentiation, memory are O(n^2).

  Args:
    x: [n, ...]; what follows the first axis is flattened.
    y: [n, ...].
    weights: [n] of 0 and 1; samples at 0 are left out.

  Returns:
    A scalar in [0, 1]; 0 if x or y is constant or n = 1.

  Raises:
    ValueError: if x and y are not equally long, or empty.
  """
  if len(x) != len(y) or not len(x):
    raise ValueError(
        f'distance_correlation: {len(x)} samples against {len(y)}.'
    )
  real = jnp.ones(len(x)) if weights is None else floating(weights)
  a, b = centered_distances(x, real), centered_distances(y, real)
  var_x, var_y = (a * a).mean(), (b * b).mean()
  varies = (var_x != 0) & (var_y != 0)  # True of NaN, so that NaN stays NaN.
  root = lambda variance: jnp.sqrt(jnp.where(varies, variance, 1))
  norm = root(var_x) * root(var_y)
  return safe_sqrt(jnp.where(varies, (a * b).mean() / norm, 0))


def centered_distances(x: Array, real: Array) -> Array:
  """Euclidean distances [n, n] minus row and column means plus overall mean.

  Rows and columns where `real` is 0 do not count and are 0. Means over the
  result still divide by n^2, which cancels in a correlation.
  """
  real = real.astype(floating(x).dtype)
  x = jnp.where(real[:, None] > 0, floating(x).reshape(len(x), -1), 0)
  # Scale does not matter to a correlation, but squares of 1e-20 underflow.
  largest = lax.stop_gradient(jnp.abs(x).max(initial=0))
  x = x / jnp.where(largest == 0, 1, largest)  # NaN, or infinity, stays.
  distances = _distances(x)
  count = jnp.maximum(real.sum(), 1)
  rows = distances @ real / count
  centered = distances - rows[:, None] - rows[None] + rows @ real / count
  return real[:, None] * real[None] * centered


def _distances(x: Array) -> Array:
  """Euclidean distances [n, n] of the rows of x [n, width].

  Of many rows a CPU takes one after the other: the gradient of all differences,
  [n, n, width], it reads against the grain and many times as slowly.
  """
  if target.kind() != 'cpu' or len(x) <= AT_ONCE:
    return safe_sqrt(((x[:, None] - x[None]) ** 2).sum(-1))
  return _one_by_one(x)


@jax.jit(inline=True)  # As `counts_below`: each call outside would compile.
def _one_by_one(x: Array) -> Array:
  row = lambda one: safe_sqrt(((one[None] - x) ** 2).sum(-1))
  return lax.map(jax.checkpoint(row, prevent_cse=False), x)


def mean_interval(values) -> tuple[np.ndarray, np.ndarray]:
  """Mean and half-width of its 95 % Student t confidence interval, in NumPy.

  Args:
    values: [n] or [n, ...], one entry a seed; NaN makes the result NaN.

  Returns:
    (mean, half-width), each [...]. The half-width is NaN for n = 1.

  Raises:
    ValueError: if there are no values.
  """
  values = np.asarray(values, np.float64)
  n = len(values) if values.ndim else 1
  if n == 0:
    raise ValueError('mean_interval: there are no values.')
  mean = np.mean(values, axis=0) if values.ndim else values
  if n == 1:
    return mean, np.full_like(mean, np.nan)
  from scipy import special  # Here, as importing it takes a sixth of a second.
  quantile = special.stdtrit(n - 1, 0.975)
  return mean, quantile * np.std(values, axis=0, ddof=1) / np.sqrt(n)


def _holds(x: Array) -> Array:
  """bool [n]: which numbers are above 0; booleans as they are."""
  return x if jnp.issubdtype(x.dtype, jnp.bool_) else x > 0


def _total(x: Array, dtype) -> Array:
  """The sum of integers x [n], each in 0..2n, as a float."""
  if len(x) > _EXACT:  # Sums of all would overflow int32, those of rows not.
    x = jnp.pad(x, (0, -len(x) % 4096)).reshape(-1, 4096)
  # In two parts, as the whole sum overflows int32 and is rounded in float32.
  high, low = (x >> 12).sum(-1), (x & 4095).sum(-1)
  return (high.astype(dtype) * 4096 + low.astype(dtype)).sum()


def _check_rows(name: str, scores: Array, **others: Array | None) -> None:
  """Raises ValueError unless all are [n]: others would be broadcast."""
  shapes = {k: x.shape for k, x in others.items() if x is not None}
  if scores.ndim != 1 or {*shapes.values()} != {scores.shape}:
    said = ', '.join(f'{k} {shape}' for k, shape in shapes.items())
    raise ValueError(
        f'{name}: all must be [samples]; got scores {scores.shape}, {said}.'
    )


def _check_two(labels: Array, weights: Array | None) -> None:
  """Raises ValueError for labels or weights that would be misread."""
  if not isinstance(labels, Tracer):
    values = np.unique(labels)
    if len(values) > 2:
      raise ValueError(
          'roc_auc: labels must be 0 or 1; here they have more than two values.'
          ' The scores come first: roc_auc(scores, labels).'
      )
    if len(values) == 2 and values[0] > 0:  # All would be positive.
      raise ValueError(
          f'roc_auc: labels must be 0 or 1; here they are {values[0]} and '
          f'{values[1]}: type labels == {values[1]}.'
      )
  if weights is not None and not isinstance(weights, Tracer):
    if not np.isin(weights, (0, 1)).all():  # All above 0 would count as 1.
      raise ValueError(
          'roc_auc: weights must be 0 or 1: a sample is left out, or it counts.'
      )


def _classes(logits: Array, labels: Array, weights: Array | None) -> Array:
  """Class numbers [n] of labels that are such, or distributions."""
  check.columns(logits, labels, weights)
  if labels.ndim == logits.ndim:
    return labels.argmax(-1)
  if not any(isinstance(x, Tracer) for x in (labels, weights)):
    # Of classes 1 to n one would never be hit. In NumPy: JAX would trace it.
    counts = np.asarray(True if weights is None else weights) > 0
    there = np.unique(np.asarray(labels)[counts]) + 0
    check.whole('class numbers', there, 0, logits.shape[-1] - 1, many=True)
  return labels


def _share(
    logits: Array, labels: Array, weights: Array | None, right: Callable
) -> Array:
  """Weighted mean of `right(classes)` [n]; NaN if one that counts is."""
  labels, weights = numerics.arrays(labels, weights)
  hit = right(_classes(logits, labels, weights))
  undefined = jnp.isnan(logits).any(-1)
  if weights is None:
    counts = True if labels.ndim < logits.ndim else labels.sum(-1) > 0
    weights = jnp.broadcast_to(counts, hit.shape)
  weights = floating(weights)
  found = (hit.astype(weights.dtype) * weights).sum() / weights.sum()
  return jnp.where((undefined & (weights > 0)).any(), jnp.nan, found)
