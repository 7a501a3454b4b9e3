"""Norms of rows whose squares are too small for their floats."""
import jax.numpy as jnp

from vfljax.types import Array


def row_norms(d: Array) -> Array:
  """2-norms [batch] of the rows of d [batch, width].

  Late in training a cut-layer gradient is smaller than 1e-19, whose square is 0
  in 32 bits: every row is scaled by its largest entry first.
  """
  largest = jnp.abs(d).max(axis=-1, initial=0)
  scale = jnp.where(largest > 0, largest, 1)
  return scale * jnp.sqrt(jnp.sum((d / scale[:, None]) ** 2, axis=-1))
