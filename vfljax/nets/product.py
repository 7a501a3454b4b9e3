"""A layer's product x @ w, and on CPUs a quicker way to its weights' gradient.

The gradient x^T d reads both matrices across their rows. XLA has a fast library
for products on CPUs that cannot do so, and leaves these to a slower one
(YNNPACK and Eigen, JAX 0.10). Where there are few columns of d, it takes less
time to lay d^T out and compute d^T x by the fast one. And where x has a
multiple of 256 columns, so that what is read together falls into one place of
the cache, eight columns of zeros behind them help. Either has the same terms;
the last digits of sums over many rows may differ.
"""
import math
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp

from vfljax import target
from vfljax.types import Array

_WORTH_IT = 2**14  # Numbers in x: of fewer, what is moved costs what is won.
_FEW = 4  # Times as many columns x has, where those of d are few.
_ROWS = 64  # Of x; fewer fit into the cache, however wide.
_PLACES = 256  # Columns after which float32s share a place in the cache.
_MORE = 8  # Columns of zeros, which move the next row to another place.


def product(x: Array, w: Array) -> Array:
  """[..., k] times [k, n] is [..., n], as `x @ w`."""
  return _product(x, w) if _way(x, w) else x @ w


def dot_general(x: Array, w: Array, dimension_numbers: Any, **options: Any):
  """`lax.dot_general` as `flax.linen.Dense` asks for it: of those `product`."""
  rows = (((x.ndim - 1,), (0,)), ((), ()))
  known = all(value is None for value in options.values())
  if known and w.ndim == 2 and dimension_numbers == rows and _way(x, w):
    return _product(x, w)
  return lax.dot_general(x, w, dimension_numbers, **options)


@jax.custom_jvp
def _product(x, w):
  return x @ w


def _moved(primals, tangents):
  (x, w), (dx, dw) = primals, tangents
  parts = []
  if not _is_zero(dx):
    parts.append(dx @ w)
  if not _is_zero(dw):
    parts.append(_of_weights(x, dw))
  y = x @ w
  return y, sum(parts) if parts else jnp.zeros_like(y)


_product.defjvp(_moved, symbolic_zeros=True)


def _is_zero(tangent: Any) -> bool:
  return isinstance(tangent, jax.custom_derivatives.SymbolicZero)


def _of_weights(x: Array, dw: Array) -> Array:
  """x @ dw, written so that what JAX makes of it backwards is the quick way."""
  k, n = dw.shape
  way, rows = _way(x, dw), x.reshape(-1, k)
  if way == 'turned':  # Backwards: (d^T x)^T, d^T as a matrix.
    y = lax.dot_general(_as_it_is(dw.T), rows, (((1,), (1,)), ((), ())))
    y = _as_it_is(y).T
  elif way == 'wide':  # Backwards: the first k rows of [x, 0]^T d.
    zeros = jnp.zeros((len(rows), _MORE), x.dtype)
    wide = _as_it_is(jnp.concatenate([rows, zeros], axis=1))
    y = wide @ jnp.pad(dw, ((0, _MORE), (0, 0)))
  else:  # Traced for a CPU and differentiated for another device.
    y = rows @ dw
  return y.reshape(*x.shape[:-1], n)


def _way(x: Array, w: Array) -> str:
  """How to compute the gradient of w: '' is as everywhere."""
  elsewhere = target.kind() != 'cpu'
  if elsewhere or {x.dtype, w.dtype} != {jnp.dtype('float32')}:
    return ''
  if not all(isinstance(size, int) for size in (*x.shape, *w.shape)):
    return ''  # Exported for any number of rows.
  count, (k, n) = math.prod(x.shape[:-1]), w.shape
  if count * k < _WORTH_IT or n == 1:
    return ''
  if k >= _FEW * n:
    return 'turned'
  return 'wide' if k % _PLACES == 0 and count >= _ROWS else ''


def _as_it_is(x: Array) -> Array:
  """XLA would turn a product of what is turned into the product that was."""
  return lax.optimization_barrier(x)
