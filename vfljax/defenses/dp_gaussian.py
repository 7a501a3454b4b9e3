"""Gaussian noise on clipped cut-layer gradients (DP-SGD's, at the cut).

Each sample's gradient is clipped to a 2-norm and gets independent Gaussian
noise on every element. The default norm, 0.2, and the form that scales the
whole batch are VFLAIR's (Zou et al., 2024). Gradients here are those of the
batch's mean loss, 1/batch of a sample's own, so that the default seldom clips.
"""
import jax

from vfljax import check
from vfljax.defense import Defense, each
from vfljax.defenses import clipping


def dp_gaussian(std, clip_norm=0.2, clip: str = 'sample') -> Defense:
  """Adds N(0, `std`^2) to every element of the clipped gradient.

  Args:
    std: Standard deviation of the noise, 0 or more, in the gradient's own unit
      (not a multiple of `clip_norm`); may be traced.
    clip_norm: Bound on the gradient's 2-norm before the noise, above 0; may be
      traced. `None` does not clip.
    clip: 'sample' or 'batch' (VFLAIR), see `clipping.clip`.

  Raises:
    ValueError: if an argument is out of range.
  """
  check.at_least('std', std, 0)
  clipping.check_clipping(clip_norm, clip)

  def perturb(key, d, labels):
    del labels
    noise = jax.random.normal(key, d.shape, d.dtype) * std
    return (clipping.clip(d, clip_norm, clip) + noise).astype(d.dtype)

  return Defense(gradient=each(perturb))
