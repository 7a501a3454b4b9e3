"""A layer's product x @ w, and on CPUs a faster way to its weights' gradient.

The gradient x^T d reads both matrices along their columns. XLA's fast library
for products on CPUs does not support that, so a slower one computes them
(YNNPACK and Eigen, JAX 0.10). Where d has few columns, it is faster to
transpose d and compute d^T x with the fast one. And where x has a multiple of
256 columns, so that numbers read together map to one cache set, appending eight
columns of zeros helps. Both compute the same terms; sums over many rows may
differ in their last digits.
"""
import math
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp

from vfljax import target
from vfljax.types import Array

_WORTH_IT = 2**14  # Numbers in x; with fewer, copying costs what is gained.
_FEW = 4  # Ratio of x's columns to d's from which those of d are few.
_ROWS = 64  # Rows of x; fewer fit into the cache, however wide.
_PLACES = 256  # Distance in columns at which float32s share a cache set.
_MORE = 8  # Columns of zeros, which move the next row to another cache set.


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
  """x @ dw, written so that its transpose, the gradient, is the fast way."""
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
  """How to compute w's gradient: 'turned', 'wide', or '' for XLA's own way."""
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
  """A barrier, as XLA would otherwise undo the transposition."""
  return lax.optimization_barrier(x)
