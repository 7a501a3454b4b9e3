"""Max-Norm noise (Li et al. 2022; Kang et al. 2022, Eq. 15).

Each gradient is multiplied by 1 + N(0, s_i^2): noise along its own direction
only, sized so that all gradients' expected squared norms equal the largest one.
It has no strength. Read Eq. 15's product literally: GAFM's Eq. 2 is printed
without the factor d_i, and noise of that size destroys the training.
"""
import jax
import jax.numpy as jnp

from vfljax.defense import Defense, each
from vfljax.numerics import row_norms, safe_sqrt
from vfljax.types import Array


def noise_std(d: Array) -> Array:
  """Eq. 15's deviations sqrt(max_j ||d_j||^2 / ||d_i||^2 - 1), [batch].

  Args:
    d: [batch, width] gradients. A row of zeros has no direction and gets 0. For
      a row whose ratio to the largest overflows the type (in float32 1e37), the
      result is finite and smaller than the equation's.
  """
  norms = row_norms(d)
  present = norms > 0
  ratio = norms.max() / jnp.where(present, norms, 1)
  # Noise of a few deviations has to be finite, too. GPUs have gradients as
  # small as that; CPUs flush them to 0.
  ratio = jnp.minimum(ratio, jnp.finfo(ratio.dtype).max / 16)
  # (r - 1)(r + 1) keeps the digits that r^2 - 1 loses where r is close to 1.
  std = safe_sqrt(ratio - 1) * jnp.sqrt(ratio + 1)
  return jnp.where(present, std, 0)


def max_norm() -> Defense:
  """Multiplies the gradient of sample i by 1 + N(0, `noise_std(d)[i]`^2)."""

  def perturb(key, d, labels):
    del labels
    noise = jax.random.normal(key, (len(d), 1), d.dtype)
    return d + d * (noise_std(d)[:, None] * noise)

  return Defense(gradient=each(perturb))
