"""What is measured: of tasks and label attacks, of images, of dependence.

All but `mean_interval` are pure JAX functions, so that they run inside a scan.
Values are fractions, not percentages. Equal to scikit-learn's, scikit-image's
and dcor's functions of the same name, apart from what the docstrings name.
"""
import jax.numpy as jnp
import numpy as np
from jax import lax

from vfljax.numerics import (
    as_integers, centered_distances, counts_below, floating, safe_sqrt,
)
from vfljax.types import Array


def roc_auc(
    scores: Array, labels: Array, weights: Array | None = None
) -> Array:
  """Area under the ROC curve: P(positive above negative), ties counting 1/2.

  Sorts the negatives and looks each positive up among them: O(n log n) and
  exact up to 500 000 samples.

  Args:
    scores: [n], the larger the more positive.
    labels: [n] of 0 and 1.
    weights: [n] of 0 and 1; samples at 0 are left out.

  Returns:
    A scalar in [0, 1]. NaN if there is one class only, or a score is NaN.
  """
  scores = floating(scores)
  counted = jnp.ones(scores.shape, bool) if weights is None else _holds(weights)
  positive = counted & _holds(labels)
  negative = counted & ~_holds(labels)
  keys = as_integers(scores)
  last = jnp.iinfo(keys.dtype).max
  below = lax.sort(jnp.where(negative, keys, last), is_stable=False)
  # A tie is below one of the two: what is not above x is below x + 1.
  twice = counts_below(below, jnp.stack([keys, keys + 1])).sum(0)
  twice = jnp.where(positive, twice, 0)
  # Two integer sums, as neither 32-bit integers nor floats hold the whole one.
  high, low = (twice >> 12).sum(), (twice & 4095).sum()
  total = high.astype(scores.dtype) * 4096 + low.astype(scores.dtype)
  pairs = _count(positive, scores.dtype) * _count(negative, scores.dtype)
  defined = (pairs > 0) & ~(jnp.isnan(scores) & counted).any()
  area = total / 2 / jnp.where(pairs > 0, pairs, 1)
  return jnp.where(defined, area, jnp.nan)


def leak_auc(
    scores: Array, labels: Array, weights: Array | None = None
) -> Array:
  """max(a, 1 - a) of the ROC AUC a: what an attacker who may swap classes gets.

  GAFM's (Han et al., 2023) measure. Arguments as in `roc_auc`.

  Returns:
    A scalar in [0.5, 1], or NaN where `roc_auc` is.
  """
  area = roc_auc(scores, labels, weights)
  return jnp.maximum(area, 1 - area)


def accuracy(
    logits: Array, labels: Array, weights: Array | None = None
) -> Array:
  """Share of samples whose largest logit is at the label; the first of ties.

  Args:
    logits: [n, classes], or probabilities.
    labels: [n, classes], one-hot or distributions, or [n] class indices.
    weights: [n], 0 or more; 0 leaves a sample out.

  Returns:
    A scalar in [0, 1]; NaN if all weights are 0, or a logit of a sample that
    counts is NaN: a network that has diverged has no accuracy, and what
    `argmax` makes of it would be that of the first class.
  """
  hit = logits.argmax(-1) == _classes(logits, labels)
  return _mean(hit, weights, _undefined(logits))


def top_k(
    logits: Array, labels: Array, k: int, weights: Array | None = None
) -> Array:
  """Share of samples whose label is among the `k` largest logits.

  Of tied logits the first ones count (scikit-learn: the last ones), so that
  `top_k(..., 1)` is `accuracy` and constant logits earn nothing.

  Args:
    logits: [n, classes].
    labels: [n, classes] or [n], as in `accuracy`.
    k: 1 or more; static. More than there are classes is all of them.
    weights: As in `accuracy`.

  Returns:
    A scalar in [0, 1]; NaN where `accuracy` is.

  Raises:
    ValueError: if `k` is below 1.
  """
  if k < 1:
    raise ValueError(f'top_k: k must be 1 or more; got {k}.')
  _, best = lax.top_k(logits, min(k, logits.shape[-1]))
  hit = (best == _classes(logits, labels)[:, None]).any(-1)
  return _mean(hit, weights, _undefined(logits))


def ssim(
    x: Array, y: Array, data_range: float = 1.0, window: int = 7,
    gaussian: bool = False, sample_covariance: bool = True,
) -> Array:
  """Structural similarity (Wang et al., 2004), local windows, K = .01 and .03.

  The mean over all windows that lie inside the image, and over channels; the
  defaults are those of `skimage.metrics.structural_similarity`.

  Args:
    x: [height, width], [height, width, channels] or
      [..., height, width, channels] images.
    y: Images of the same shape.
    data_range: Largest minus smallest possible value.
    window: Side of the uniform window, odd; ignored if `gaussian`.
    gaussian: 11 x 11 Gaussian window of deviation 1.5, as Wang et al.
    sample_covariance: Divides by n - 1; Wang et al. divide by n.

  Returns:
    [...]: one value in [-1, 1] an image; a scalar without leading axes.

  Raises:
    ValueError: if shapes differ, an image is smaller than the window or the
      window is even.
  """
  x, y = _images(x, y)
  taps = _gaussian_taps() if gaussian else np.full(window, 1 / window)
  if len(taps) % 2 == 0 or min(x.shape[-3:-1]) < len(taps):
    raise ValueError(
        f'ssim: the window ({len(taps)}) must be odd and fit into the image'
        f' {x.shape[-3:-1]}.'
    )
  # At once: each filter is a program's code of its own.
  mean_x, mean_y, xx, yy, xy = _blur(
      jnp.stack([x, y, x * x, y * y, x * y]), taps
  )
  pixels = len(taps) ** 2
  unbias = pixels / (pixels - 1) if sample_covariance else 1.0
  var_x = unbias * (xx - mean_x**2)
  var_y = unbias * (yy - mean_y**2)
  cov = unbias * (xy - mean_x * mean_y)
  c1, c2 = (0.01 * data_range) ** 2, (0.03 * data_range) ** 2
  top = (2 * mean_x * mean_y + c1) * (2 * cov + c2)
  bottom = (mean_x**2 + mean_y**2 + c1) * (var_x + var_y + c2)
  return (top / bottom).mean((-3, -2, -1))


def psnr(x: Array, y: Array, data_range: float = 1.0) -> Array:
  """Peak signal-to-noise ratio, 10 log10(data_range^2 / MSE), in decibels.

  Args:
    x: Images as in `ssim`.
    y: Images of the same shape.
    data_range: Largest minus smallest possible value.

  Returns:
    [...]: one value an image; infinite for identical images.

  Raises:
    ValueError: if shapes differ.
  """
  x, y = _images(x, y)
  return 10 * jnp.log10(data_range**2 / ((x - y) ** 2).mean((-3, -2, -1)))


def distance_correlation(
    x: Array, y: Array, weights: Array | None = None
) -> Array:
  """Distance correlation of two samples (Székely et al., 2007), biased form.

  The square root of the normalized distance covariance of Euclidean distances,
  each centered by rows and columns. Gradients are finite everywhere, 0 at what
  has no derivative. Time and, under differentiation, memory are O(n^2).

  Args:
    x: [n, ...]; what follows the first axis is flattened.
    y: [n, ...].
    weights: [n] of 0 and 1; samples at 0 are left out.

  Returns:
    A scalar in [0, 1]; 0 if x or y is constant or n = 1.

  Raises:
    ValueError: if x and y are not equally long.
  """
  if len(x) != len(y):
    raise ValueError(
        f'distance_correlation: {len(x)} samples against {len(y)}.'
    )
  real = jnp.ones(len(x)) if weights is None else floating(weights)
  a, b = centered_distances(x, real), centered_distances(y, real)
  var_x, var_y = (a * a).mean(), (b * b).mean()
  varies = (var_x != 0) & (var_y != 0)  # NaN is no number in the end, too.
  norm = jnp.sqrt(jnp.where(varies, var_x, 1)) * jnp.sqrt(
      jnp.where(varies, var_y, 1)
  )
  return safe_sqrt(jnp.where(varies, (a * b).mean() / norm, 0))


def mean_interval(values) -> tuple[np.ndarray, np.ndarray]:
  """Mean and half the width of its 95 % Student t interval, in NumPy.

  Args:
    values: [n] or [n, ...], one entry a seed; NaN makes the result NaN.

  Returns:
    (mean, half width), each [...]. The half width is NaN for n = 1.

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
  from scipy import special  # A sixth of a second, for this one number.
  quantile = special.stdtrit(n - 1, 0.975)
  return mean, quantile * np.std(values, axis=0, ddof=1) / np.sqrt(n)


def _holds(x: Array) -> Array:
  """Which of [n] numbers are above 0, or of booleans true."""
  return x if jnp.issubdtype(x.dtype, jnp.bool_) else x > 0


def _count(mask: Array, dtype) -> Array:
  return mask.sum(dtype=jnp.int32).astype(dtype)


def _classes(logits: Array, labels: Array) -> Array:
  return labels if labels.ndim < logits.ndim else labels.argmax(-1)


def _undefined(logits: Array) -> Array:
  """[n], the samples of which a logit is NaN."""
  return jnp.isnan(logits).any(-1)


def _mean(hit: Array, weights: Array | None, undefined: Array) -> Array:
  """Mean of a [n] mask, over the samples with weight; NaN if one has no hit."""
  if weights is None:
    found = hit.astype(jnp.float32).mean()
    return jnp.where(undefined.any(), jnp.nan, found)
  weights = floating(weights)
  found = (hit.astype(weights.dtype) * weights).sum() / weights.sum()
  return jnp.where((undefined & (weights > 0)).any(), jnp.nan, found)


def _images(x: Array, y: Array) -> tuple[Array, Array]:
  """Both as floats [..., height, width, channels]."""
  x, y = floating(x), floating(y)
  if x.shape != y.shape or x.ndim < 2:
    raise ValueError(f'images must have one shape; got {x.shape}, {y.shape}.')
  return (x[..., None], y[..., None]) if x.ndim == 2 else (x, y)


def _gaussian_taps(deviation: float = 1.5, radius: int = 5) -> np.ndarray:
  taps = np.exp(-(np.arange(-radius, radius + 1) ** 2) / (2 * deviation**2))
  return taps / taps.sum()


def _blur(image: Array, taps: np.ndarray) -> Array:
  """Separable filter over height and width, inside only.

  Shifted sums, because XLA's convolutions inside a scan are slow on a CPU.
  """
  for axis in (image.ndim - 3, image.ndim - 2):
    size = image.shape[axis] - len(taps) + 1
    shifted = [
        float(t) * lax.slice_in_dim(image, i, i + size, axis=axis)
        for i, t in enumerate(taps)
    ]
    image = sum(shifted, start=jnp.zeros_like(shifted[0]))
  return image
