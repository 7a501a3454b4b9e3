"""Floats as integers of the same order, because XLA sorts integers faster.

On a CPU its sort of 32-bit integers is about five times as fast as that of
floats or of pairs, which shows in an AUC or a defense that sorts every round.
"""
import jax.numpy as jnp
from jax import lax

from vfljax.types import Array


def as_integers(x: Array) -> Array:
  """Integers that compare as the floats `x` do.

  Args:
    x: 32- or 64-bit floats; infinities are fine, NaN comes last (or first, if
      its sign bit is set).

  Returns:
    Integers of the same width.
  """
  integer = jnp.int64 if x.dtype.itemsize == 8 else jnp.int32
  bits = lax.bitcast_convert_type(jnp.where(x == 0, 0, x), integer)
  return jnp.where(bits < 0, bits ^ jnp.iinfo(integer).max, bits)
