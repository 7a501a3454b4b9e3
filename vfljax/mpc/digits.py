"""Exact int64 products from digits that a fast matrix unit can multiply.

An element of Z_2^64 is written in small signed digits; digit products run as
int8 -> int32 or float64 GEMMs, whose sums stay exact up to a stated length, and
shifted sums mod 2^64 put the result together. Bounds, for inner length K:

- int8, base 256: digit products are at most 2^14, and an antidiagonal has up to
  8 of them, so 8 K 2^14 < 2^31 gives K <= 16383 for the sum of all. Half of the
  antidiagonals land where only their value mod 2^32 counts and int32 that wraps
  would do for longer K; but a GPU's matrix unit may stop at 2^31 - 1 instead
  (mma...satfinite, which XLA's Triton emits), so no sum may come there.
- float64, widths 22/20/22 with one Karatsuba step (5 GEMMs instead of 6): the
  largest factor is |d0 + d1| <= 2^21 + 2^19, so K 2^42 25/16 <= 2^53 gives
  K <= 1310. The middle digit is the narrow one: a1 b2 + a2 b1 then lands at bit
  64 and drops out. (With 21/21/22 it lands at 63 and its parity is lost.)

The int8 split puts the digits on a new leading axis.
"""
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from vfljax.mpc import blocks

Array = jax.Array

_DIGITS = 8  # Per element, so an antidiagonal has at most so many products.
_LARGEST = 1 << 14  # A product of two digits, -128 * -128.
INT8_LENGTH = (2**31 - 1) // (_DIGITS * _LARGEST)
FLOAT_LENGTH = 1310
_ELEMENTS = 1 << 18
_BIAS = int(np.uint64(0x8080808080808080).astype(np.int64))


def dot(a: Array, b: Array, dtype: Any = None) -> Array:
  """a @ b as one dot, accumulated in `dtype`.

  Int8 operands need a `dtype`; 64-bit operands must have none: JAX repeats this
  call when it batches a scan, perhaps with 64-bit types off, and would then cut
  float64 down.
  """
  return lax.dot_general(
      a, b, (((a.ndim - 1,), (b.ndim - 2,)), ((), ())),
      precision=lax.Precision.HIGHEST, preferred_element_type=dtype,
  )


def _assemble(antidiagonals: list[Array]) -> Array:
  """sum_s antidiagonals[s] 2^(8s), from int32 to int64."""
  total = antidiagonals[0].astype(jnp.int64)
  for s, part in enumerate(antidiagonals[1:], 1):
    total = total + (part.astype(jnp.int64) << (8 * s))
  return total


def split_int8(a: Array) -> Array:
  """int64 [...] -> int8 [8, ...], balanced base-256 digits, lowest first.

  Adding 128 to every byte and flipping its top bit makes each byte a digit in
  [-128, 127] with the carries already propagated.
  """
  bias = jnp.int64(_BIAS)
  digits = lax.bitcast_convert_type((a + bias) ^ bias, jnp.int8)
  return jnp.moveaxis(digits, -1, 0)


def rows_int8(a: Array, b: Array) -> Array:
  """[8, m, k], [8, k, n] -> [m, n]: 8 dots, all rows of a per digit of b.

  36 digit products, the fewest; one big left operand that is never copied.
  """
  _, m, k = a.shape
  flat = a.reshape(8 * m, k)
  sums: list[Array | None] = [None] * 8
  for j in range(8):
    part = dot(flat[: (8 - j) * m], b[j], jnp.int32).reshape(8 - j, m, -1)
    for i in range(8 - j):
      old = sums[i + j]
      sums[i + j] = part[i] if old is None else old + part[i]
  return _assemble([s for s in sums if s is not None])


def merged_int8(a: Array, b: Array) -> Array:
  """[8, m, k], [8, k, n] -> [m, n]: 8 dots, one an antidiagonal.

  The s+1 digit products of an antidiagonal are concatenated along k. Fewest
  passes over the output, which is what counts on an accelerator.
  """
  _, m, k = a.shape
  left = jnp.moveaxis(a, 0, 1).reshape(m, 8 * k)
  right = b[::-1].reshape(8 * k, -1)
  return _assemble([
      dot(left[:, : (s + 1) * k], right[(7 - s) * k :], jnp.int32)
      for s in range(8)
  ])


def toeplitz_int8(a: Array, b: Array) -> Array:
  """[8, m, k], [8, k, n] -> [m, n]: one dot against a block Toeplitz matrix.

  64 digit products where 36 would do, but a single launch: for operands so
  small that launches cost more than arithmetic.
  """
  _, m, k = a.shape
  n = b.shape[2]
  padded = jnp.concatenate([jnp.zeros((7, k, n), jnp.int8), b])
  # Row block i, column block s holds digit s - i of b.
  right = jnp.stack([padded[7 - i : 15 - i] for i in range(8)])
  right = jnp.transpose(right, (0, 2, 1, 3)).reshape(8 * k, 8 * n)
  left = jnp.moveaxis(a, 0, 1).reshape(m, 8 * k)
  out = dot(left, right, jnp.int32).reshape(m, 8, n)
  return _assemble([out[:, s] for s in range(8)])


def _split_float(a: Array) -> tuple[Array, Array, Array, Array]:
  """Signed digits of 22, 20 and 22 bits, and the sum of the first two."""
  low = (a << 42) >> 42
  rest = (a - low) >> 22
  # Only the low 42 bits of the rest count: a - low may have wrapped.
  middle = (rest << 44) >> 44
  high = (((rest - middle) >> 20) << 42) >> 42
  low, middle, high, both = (
      d.astype(jnp.float64) for d in (low, middle, high, low + middle)
  )
  return low, middle, high, both


def karatsuba(a: Array, b: Array) -> Array:
  """int64 [m, k] @ [k, n] with 5 float64 GEMMs, k <= 1310.

  Each digit is written once, as float64, for at most 2^18 elements of the right
  operand at a time: a stack of all digits of all elements took longer than the
  GEMMs.
  """
  a0, a1, a2, a01 = _split_float(a)

  def columns(b):
    b0, b1, b2, b01 = _split_float(b)
    whole = lambda x, y: dot(x, y).astype(jnp.int64)
    low, middle = whole(a0, b0), whole(a1, b1)
    cross = whole(a01, b01) - low - middle
    high = whole(a0, b2) + whole(a2, b0)
    return low + (cross << 22) + (high << 42) + (middle << 44)

  return blocks.in_columns(columns, b, max(8, _ELEMENTS // len(b)))
