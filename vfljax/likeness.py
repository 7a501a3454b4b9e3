"""Similarity of images: SSIM and PSNR, as in scikit-image; their variation.

Pure JAX functions, so that they run inside a scan.
"""
from jax import lax
from jax.core import Tracer
import jax.numpy as jnp
import numpy as np

from vfljax import check
from vfljax.numerics import floating
from vfljax.types import Array


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
    window: Side of the uniform window, odd, 3 or more; ignored if `gaussian`.
    gaussian: 11 x 11 Gaussian window of deviation 1.5, as Wang et al.
    sample_covariance: Divides by n - 1; Wang et al. divide by n.

  Returns:
    [...]: one value in [-1, 1] an image; a scalar without leading axes.

  Raises:
    ValueError: if shapes differ, an image is smaller than the window, the
      window is even or below 3, or the range is not above 0, or smaller than
      that of both images (unless they are traced).
  """
  check.above('ssim: data_range', data_range, 0)
  x, y = _images(x, y, data_range)
  check.count('ssim: window', window, 3)
  taps = _gaussian_taps() if gaussian else np.full(window, 1 / window)
  if len(taps) % 2 == 0 or min(x.shape[-3:-1]) < len(taps):
    raise ValueError(
        f'ssim: the window ({len(taps)}) must be odd and fit into the image'
        f' {x.shape[-3:-1]}.'
    )
  # In one call, as each filter adds its own code to the program.
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
    ValueError: if shapes differ, or for a range that `ssim` refuses.
  """
  check.above('psnr: data_range', data_range, 0)
  x, y = _images(x, y, data_range)
  return 10 * jnp.log10(data_range**2 / ((x - y) ** 2).mean((-3, -2, -1)))


def finds_its_own(guess: Array, truth: Array) -> Array:
  """Whether each guess is nearest to its own image, of all that are guessed.

  PSNR and SSIM of a guess that is the mean of all images are high, and it tells
  none from another: by this it is right once in n, as by chance.

  Args:
    guess: Images [n, ...], the guess at image i at place i.
    truth: The images, of the same shape.

  Returns:
    bool [n], by the squared distance sum (guess_i - truth_j)^2 over j; of equal
    distances the first counts.

  Raises:
    ValueError: if shapes differ.
  """
  guess, truth = jnp.asarray(guess), jnp.asarray(truth)
  if guess.shape != truth.shape:
    raise ValueError(
        f'Images must have one shape; got {guess.shape} and {truth.shape}.'
    )
  a, b = guess.reshape(len(guess), 1, -1), truth.reshape(len(truth), -1)
  apart = lax.map(lambda one: ((one - b) ** 2).sum(-1).argmin(), a)
  return apart == jnp.arange(len(a))


def total_variation(x: Array) -> Array:
  """Sum of absolute differences of neighbours; 0 for what is no image.

  Args:
    x: [n, height, width, channels].
  """
  if x.ndim != 4:
    return jnp.zeros((), x.dtype)
  down, right = x[:, 1:] - x[:, :-1], x[:, :, 1:] - x[:, :, :-1]
  return jnp.abs(down).sum() + jnp.abs(right).sum()


def _images(
    x: Array, y: Array, data_range: float
) -> tuple[Array, Array]:
  """Both as floats [..., height, width, channels]."""
  x, y = floating(x), floating(y)
  if x.shape != y.shape or x.ndim < 2:
    raise ValueError(f'images must have one shape; got {x.shape}, {y.shape}.')
  _check_range(x, y, data_range)
  return (x[..., None], y[..., None]) if x.ndim == 2 else (x, y)


def _check_range(x: Array, y: Array, data_range: float) -> None:
  """Raises ValueError if both exceed the range: a guess alone may.

  As of pixels up to 255, whose numbers would look like others.
  """
  if any(isinstance(part, Tracer) for part in (x, y, data_range)) or not x.size:
    return
  span = min(float(part.max() - part.min()) for part in (x, y))
  if span > data_range * (1 + check.ROUNDED):
    raise ValueError(
        f'data_range is {data_range:g}, and both images have numbers {span:g} '
        'apart or more: it is how far apart they can be, 255 in 8 bits, 2 from '
        '-1 to 1.'
    )


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
