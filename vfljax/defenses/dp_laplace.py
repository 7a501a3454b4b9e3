"""Laplace noise on cut-layer gradients (Fu et al. 2022; Kang et al. 2022).

Independent Laplace noise on every element, Eq. 13 of Kang et al. Their strength
is the distribution's scale b; its standard deviation is sqrt(2) b. Neither they
nor Fu et al. clip. Without clipping the sensitivity is unbounded; what clipping
the 2-norm bounds is in `clipping`.
"""
import jax

from vfljax import check
from vfljax.defense import Defense, each
from vfljax.defenses import clipping


def dp_laplace(scale, clip_norm=None, clip: str = 'sample') -> Defense:
  """Adds Laplace(0, `scale`) to every element of the gradient.

  Args:
    scale: The noise's b, 0 or more, in the gradient's own unit; may be traced.
    clip_norm: Bound on the gradient's 2-norm before the noise, above 0; may be
      traced. `None` does not clip.
    clip: 'sample' or 'batch', see `clipping.clip`.

  Raises:
    ValueError: if an argument is out of range.
  """
  check.at_least('scale', scale, 0)
  clipping.check_clipping(clip_norm, clip)

  def perturb(key, d, labels):
    del labels
    noise = jax.random.laplace(key, d.shape, d.dtype) * scale
    return (clipping.clip(d, clip_norm, clip) + noise).astype(d.dtype)

  return Defense(gradient=each(perturb))
