"""Draws random words for many keys at once.

XLA concatenates many arrays with one kernel for each. So the words of all draws
are made in one table instead: each row belongs to one draw, and looks up that
draw's key.
"""
from collections.abc import Sequence
import math

import jax
from jax import lax
from jax.extend.core.primitives import threefry2x32_p
import jax.numpy as jnp
import numpy as np

from vfljax.types import Array

_ROW = 128  # Words in a row; the last row of each draw may be partly unused.


def words(keys: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
  """What `jax.random.bits` returns for each key and shape, uint32.

  Word i of a draw is the exclusive or of the two words that Threefry makes of
  the key and (0, i). This assumes fewer than 2^32 words in a draw. Each draw
  starts a new row, so that a row needs one key only; the rest of its last row
  is unused.

  Args:
    keys: The draws' keys, [draws].
    shapes: The draws' shapes.
  """
  sizes = [math.prod(shape) for shape in shapes]
  rows = [-(-size // _ROW) for size in sizes]
  ends = np.cumsum(rows).tolist()
  begins = [end - own for end, own in zip(ends, rows)]
  row = lax.broadcasted_iota(np.int32, (ends[-1], 1), 0)
  own = (row >= table(ends)[None]).sum(1)  # The draw of each row.
  data = at(jax.random.key_data(keys), own)
  place = (row - at(table(begins), own)[:, None]) * _ROW
  place = place + lax.broadcasted_iota(np.int32, (1, _ROW), 1)
  place = place.astype(np.uint32)
  both = threefry2x32_p.bind(
      data[:, :1], data[:, 1:], jnp.zeros_like(place), place
  )
  found = (both[0] ^ both[1]).ravel()
  return [
      found[begin * _ROW : begin * _ROW + size].reshape(shape)
      for begin, size, shape in zip(begins, sizes, shapes)
  ]


def at(x: Array, index: Array) -> Array:
  """`x[index]` for indices that are known to be in bounds."""
  return x.at[index].get(
      mode='promise_in_bounds', wrap_negative_indices=False
  )


def table(numbers: Sequence[int]) -> Array:
  """An int32 array of a few numbers, written out in the program."""
  return lax.concatenate([lax.full((1,), n, np.int32) for n in numbers], 0)
