"""Clips the 2-norm of cut-layer gradients, so that noise can hide a sample.

Shared by the defenses that are named after differential privacy. 'sample'
bounds each sample's gradient on its own; 'batch' divides the whole batch by one
number, as VFLAIR (Zou et al., 2024) does: directions and ratios of norms stay,
and the largest gradient is bounded.

Clipping bounds the effect of one label (the sensitivity) only if a row's
gradient depends on its own label alone: not with batch statistics in the top
network, nor with 'batch'. A 2-norm is the sensitivity that Gaussian noise has
to hide; for Laplace noise it is the 1-norm, which is up to sqrt(width) times as
large. No privacy budget is computed here.
"""
import jax.numpy as jnp

from vfljax import check
from vfljax.numerics import row_norms
from vfljax.types import Array

FORMS = ('sample', 'batch')


def clip(d: Array, norm, form: str = 'sample') -> Array:
  """Clips gradients to a 2-norm of at most `norm`.

  Args:
    d: [batch, width] gradients.
    norm: Above 0; may be traced. `None` changes nothing.
    form: 'sample': d_i / max(1, ||d_i|| / norm); 'batch': all of them divided
      by max(1, max_i ||d_i|| / norm).

  Returns:
    [batch, width].
  """
  if norm is None:
    return d
  norms = row_norms(d)
  if form == 'batch':
    norms = norms.max(keepdims=True)
  return d / jnp.maximum(1, norms / norm).astype(d.dtype)[:, None]


def check_clipping(clip_norm, form: str) -> None:
  """Raises ValueError if `clip_norm` or `form` is not usable."""
  if clip_norm is not None:
    check.inside('clip_norm', clip_norm, 0, jnp.inf, open_low=True)
  check.one_of('clip', form, FORMS)
