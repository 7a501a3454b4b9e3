"""Random words of many keys at a time, in rows.

XLA's concatenation of many arrays is a kernel for each of them, and one more.
So words of many draws lie in one table, whose rows have one key each, and a row
finds out whose it is.
"""
from collections.abc import Sequence
import math

import jax
from jax import lax
from jax.extend.core.primitives import threefry2x32_p
import jax.numpy as jnp
import numpy as np

from vfljax.types import Array

_ROW = 128  # Words, so many that few are in rows which are not full.


def words(keys: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
  """What `jax.random.bits` gives for each key in its shape, uint32.

  Word i of a draw is the exclusive or of the two that Threefry makes of the key
  and (0, i): i is below 2^32 in arrays that anybody begins something with. Each
  draw begins a row, so that a row needs one key; the last one's rest is unused.

  Args:
    keys: [draws].
    shapes: Of the draws.
  """
  sizes = [math.prod(shape) for shape in shapes]
  rows = [-(-size // _ROW) for size in sizes]
  ends = np.cumsum(rows).tolist()
  begins = [end - own for end, own in zip(ends, rows)]
  row = lax.broadcasted_iota(np.int32, (ends[-1], 1), 0)
  own = (row >= table(ends)).sum(1)  # Whose row it is.
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
  """`x[index]` of indices that there are."""
  return x.at[index].get(
      mode='promise_in_bounds', wrap_negative_indices=False
  )


def table(numbers: Sequence[int]) -> Array:
  """An array of few numbers, which are a part of the program's text."""
  return lax.concatenate([lax.full((1,), n, np.int32) for n in numbers], 0)
