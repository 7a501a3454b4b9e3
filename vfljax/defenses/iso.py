"""Isotropic Gaussian noise (Li et al. 2022; Kang et al. 2022, Eq. 14).

Noise of the same deviation on every element, proportional to the batch's
largest gradient norm, so that the strength has no unit.
"""
import jax

from vfljax import check
from vfljax.defense import Defense, each
from vfljax.numerics import row_norms
from vfljax.types import Array


def noise_std(d: Array, amplifier) -> Array:
  """Eq. 14's deviation: amplifier * max_i ||d_i|| / sqrt(width), a scalar.

  Args:
    d: [batch, width] gradients.
    amplifier: 0 or more; may be traced.
  """
  return amplifier * row_norms(d).max() / d.shape[-1] ** 0.5


def iso(amplifier) -> Defense:
  """Adds N(0, `noise_std`^2) to every element of the gradient.

  Args:
    amplifier: Eq. 14's alpha, 0 or more; may be traced.

  Raises:
    ValueError: if `amplifier` is negative or not a number.
  """
  check.at_least('amplifier', amplifier, 0)

  def perturb(key, d, labels):
    del labels
    noise = jax.random.normal(key, d.shape, d.dtype) * noise_std(d, amplifier)
    return (d + noise).astype(d.dtype)

  return Defense(gradient=each(perturb))
