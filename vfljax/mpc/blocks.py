"""Computes a product in blocks of its right operand's columns.

A block's intermediate arrays then fit in the caches, and the program's memory
under 32 MiB. Larger allocations glibc requests from the system and returns at
every call, and touching new pages costs more than the product.
"""
from collections.abc import Callable

import jax
from jax import lax
import jax.numpy as jnp

Array = jax.Array


def pad_to(x: Array, axis: int, size: int) -> Array:
  """Zeros after `x` along `axis` until it has `size` elements."""
  if x.shape[axis] == size:
    return x
  widths: list[tuple[int, int]] = [(0, 0)] * x.ndim
  widths[axis] = (0, size - x.shape[axis])
  return jnp.pad(x, widths)


def in_columns(fn: Callable[[Array], Array], b: Array, size: int) -> Array:
  """`fn`, [k, c] -> [m, c], on equal blocks of b [k, n]: int64 [m, n].

  Args:
    fn: The product with one block as its right operand.
    b: The whole right operand.
    size: Most columns of a block, at least 8.
  """
  k, n = b.shape
  count = -(-n // size)
  if count == 1:
    return fn(b)
  width = -(-n // (8 * count)) * 8
  b = pad_to(b, 1, count * width)

  def part(start):
    return fn(lax.dynamic_slice(b, (0, start), (k, width)))

  out = lax.map(part, width * jnp.arange(count))
  return jnp.moveaxis(out, 0, 1).reshape(out.shape[1], -1)[:, :n]
