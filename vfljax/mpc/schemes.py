"""The exact matrix products mod 2^64, and how a scheme is applied to a shape.

A `Scheme` is a split into digits and a product of digits; row blocks, inner
lengths past its exactness bound and convolutions are the same code for all.
Everything here needs 64-bit types on (see `x64`).
"""
from collections.abc import Callable
from typing import NamedTuple

import jax
from jax import lax
import jax.numpy as jnp

from vfljax.mpc import digits, outer

Array = jax.Array


class Scheme(NamedTuple):
  """One exact way to multiply int64 matrices mod 2^64.

  Attributes:
    name: Its key in `SCHEMES`.
    split: int64 [...] -> digits [d, ...].
    product: (digits [d, m, k], digits [d, k, n]) -> int64 [m, n].
    length: Longest inner axis k for which `product` is exact; `None`: any.
    rows: Rows m of one call; more are cut into blocks this high, so that a
      block's digit products stay in the cache. `None`: never cut.
    positions: About as many output positions of a convolution, in a block of
      whole images.
  """

  name: str
  split: Callable[[Array], Array]
  product: Callable[[Array, Array], Array]
  length: int | None
  rows: int | None
  positions: int = 1024


def _whole(a: Array) -> Array:
  return a[None]


def _naive(a: Array, b: Array) -> Array:
  return digits.dot(a[0], b[0])


def _outer(a: Array, b: Array) -> Array:
  return outer.product(a[0], b[0])


def _karatsuba(a: Array, b: Array) -> Array:
  return digits.karatsuba(a[0], b[0])


_SCHEMES = (
    Scheme('naive', _whole, _naive, None, None),
    # The same product of patches: XLA has int64 convolutions for CPUs only.
    Scheme('patches', _whole, _naive, None, None),
    Scheme('outer', _whole, _outer, None, 512),
    Scheme('int8_rows', digits.split_int8, digits.rows_int8,
           digits.INT8_LENGTH, 128),
    Scheme('int8_merged', digits.split_int8, digits.merged_int8,
           digits.INT8_LENGTH, None),
    Scheme('int8_toeplitz', digits.split_int8, digits.toeplitz_int8,
           digits.INT8_LENGTH, 1024),
    Scheme('karatsuba', _whole, _karatsuba, digits.FLOAT_LENGTH, 512),
)
SCHEMES = {scheme.name: scheme for scheme in _SCHEMES}


def in_blocks(
    fn: Callable[[Array], Array], x: Array, size: int | None
) -> Array:
  """`fn` on equal blocks of x's leading axis, at most `size` long each.

  The last block is filled with zeros and its surplus cut from the result.
  """
  length = x.shape[0]
  count = 1 if size is None else -(-length // size)
  if count <= 1:
    return fn(x)
  size = -(-length // count)
  x = jnp.pad(x, [(0, count * size - length)] + [(0, 0)] * (x.ndim - 1))
  out = lax.map(fn, x.reshape(count, size, *x.shape[1:]))
  return out.reshape(-1, *out.shape[2:])[:length]


def multiply(scheme: Scheme, a: Array, b: Array) -> Array:
  """Product of digits, [d, m, k] and [d, k, n], for every k: int64 [m, n].

  None of the sizes is 0: those products are known without digits.
  """
  d, m, k = a.shape
  n = b.shape[2]
  if scheme.length is None or k <= scheme.length:
    return scheme.product(a, b)
  count = -(-k // scheme.length)
  size = -(-k // count)
  fill = (0, count * size - k)
  a = jnp.pad(a, ((0, 0), (0, 0), fill)).reshape(d, m, count, size)
  b = jnp.pad(b, ((0, 0), fill, (0, 0))).reshape(d, count, size, n)

  def add(total, part):
    return total + scheme.product(*part), None

  parts = jnp.moveaxis(a, 2, 0), jnp.moveaxis(b, 1, 0)
  return lax.scan(add, jnp.zeros((m, n), jnp.int64), parts)[0]


def matmul(scheme: Scheme, a: Array, b: Array) -> Array:
  """a [m, k] @ b [k, n] mod 2^64."""
  if not (a.size and b.size):  # An empty sum.
    return jnp.zeros((len(a), b.shape[1]), jnp.int64)
  right = scheme.split(b)

  def rows(block):
    return multiply(scheme, scheme.split(block), right)

  return in_blocks(rows, a, scheme.rows)
