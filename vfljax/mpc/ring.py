"""Arithmetic in Z_2^64, held in int64: what secret sharing computes with.

Additive shares live in the integers mod 2^64 because two's complement already
is that ring. Sums wrap by themselves; products do too, but no CPU or GPU
library multiplies int64 matrices fast, so they run as one of several exact
schemes (`schemes`, `dispatch`), chosen by backend and shape and checked before
use.

Takes NumPy or JAX int64 and gives JAX int64, also when the caller's program has
64-bit types off (`x64` says how far that reaches). Nothing is ever rounded:
every result is the integers' result mod 2^64, bit for bit.
"""
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vfljax.mpc import dispatch, kernels
from vfljax.mpc.conv import Padding, Window
from vfljax.mpc.x64 import Array, Ring, entry, ring_array

_add = jax.jit(jnp.add)
_sub = jax.jit(jnp.subtract)
_neg = jax.jit(jnp.negative)
_matmul = jax.jit(kernels.matmul, static_argnums=(2, 3))
_conv = jax.jit(kernels.conv, static_argnums=(2, 3, 4, 5, 6, 7))
_input_gradient = jax.jit(
    kernels.conv_input_gradient, static_argnums=(2, 3, 4, 5)
)
_weight_gradient = jax.jit(
    kernels.conv_weight_gradient, static_argnums=(2, 3, 4, 5)
)


def _both(name: str, a: Ring, b: Ring) -> tuple[Ring, Ring]:
  """Both, int64 arrays that broadcast; ValueError if they do not."""
  a, b = ring_array(a, 'a'), ring_array(b, 'b')
  try:
    np.broadcast_shapes(a.shape, b.shape)
  except ValueError:
    raise ValueError(f'{name}: {a.shape} and {b.shape} do not fit.') from None
  return a, b


@entry
def add(a: Ring, b: Ring) -> Array:
  """a + b mod 2^64, int64 arrays that broadcast (ValueError if not)."""
  return _add(*_both('add', a, b))


@entry
def sub(a: Ring, b: Ring) -> Array:
  """a - b mod 2^64, int64 arrays that broadcast (ValueError if not)."""
  return _sub(*_both('sub', a, b))


@entry
def neg(a: Ring) -> Array:
  """-a mod 2^64, int64; the negative of -2^63 is itself."""
  return _neg(ring_array(a, 'a'))


@entry
def matmul(a: Ring, b: Ring, scheme: str | None = None) -> Array:
  """a @ b mod 2^64.

  Args:
    a: int64 [..., m, k].
    b: int64 [..., k, n]; leading axes broadcast against a's.
    scheme: One of `schemes.SCHEMES` instead of the dispatcher's choice; all
      give the same result.

  Returns:
    int64 [..., m, n].

  Raises:
    TypeError: if an operand is not int64.
    ValueError: if shapes do not fit or the scheme does not exist.
  """
  a, b = ring_array(a, 'a', 2), ring_array(b, 'b', 2)
  return _matmul(a, b, scheme, dispatch.platform_of(a, b))


def _frozen(value: Any) -> Any:
  """Lists and arrays as tuples, so that a window is a static argument."""
  value = value.tolist() if isinstance(value, np.ndarray) else value
  if isinstance(value, Sequence) and not isinstance(value, str):
    return tuple(_frozen(v) for v in value)
  return value


@entry
def conv(
    x: Ring,
    w: Ring,
    strides: int | Sequence[int] = 1,
    padding: Padding = 'SAME',
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    scheme: str | None = None,
) -> Array:
  """Convolution mod 2^64 (cross-correlation, as in neural networks).

  Args:
    x: int64 [batch, *space, channels]; any number of spatial axes from 1.
    w: int64 [*kernel, channels / groups, out].
    strides: >= 1, one or one per spatial axis.
    padding: 'SAME', 'VALID', one width for all sides, or (low, high) per axis.
    dilation: Step between kernel taps, >= 1, one or one per axis.
    groups: Channel groups that do not mix; divides channels and out.
    scheme: One of `schemes.SCHEMES` instead of the dispatcher's choice.

  Returns:
    int64 [batch, *positions, out].

  Raises:
    TypeError: if an operand is not int64.
    ValueError: if shapes, groups or the window do not fit together.
  """
  x, w = ring_array(x, 'x', 3), ring_array(w, 'w', 3)
  return _conv(x, w, *map(_frozen, (strides, padding, dilation, groups)),
               scheme, dispatch.platform_of(x, w))


@entry
def conv_input_gradient(
    g: Ring,
    w: Ring,
    x_shape: tuple[int, ...],
    win: Window,
    scheme: str | None = None,
) -> Array:
  """`kernels.conv_input_gradient` for callers of any precision."""
  g, w = ring_array(g, 'g', 3), ring_array(w, 'w', 3)
  return _input_gradient(
      g, w, tuple(x_shape), win, scheme, dispatch.platform_of(g, w)
  )


@entry
def conv_weight_gradient(
    x: Ring,
    g: Ring,
    kernel: tuple[int, ...],
    win: Window,
    scheme: str | None = None,
) -> Array:
  """`kernels.conv_weight_gradient` for callers of any precision."""
  x, g = ring_array(x, 'x', 3), ring_array(g, 'g', 3)
  return _weight_gradient(
      x, g, tuple(kernel), win, scheme, dispatch.platform_of(x, g)
  )


