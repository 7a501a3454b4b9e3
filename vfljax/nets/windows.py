"""Windows over images: a convolution on a CPU is one product with them."""
from collections.abc import Sequence
from functools import partial

import jax
from jax import lax
import jax.numpy as jnp

from vfljax.types import Array


def windows(
    x: Array, kernel: Sequence[int], strides: Sequence[int],
    pads: Sequence[tuple[int, int]],
) -> Array:
  """The windows over an image, zeros outside it.

  Args:
    x: [batch, height, width, channels].
    kernel: (rows, columns) of the window.
    strides: (down, right), from one window to the next.
    pads: Zeros (before, after) on each of the two axes.

  Returns:
    [batch, high, wide, rows * columns * channels], rows of the window first,
    then columns, then channels.
  """
  x = jnp.pad(x, ((0, 0), *pads, (0, 0)))
  # One axis after the other: rows + columns pieces to join, and to compile,
  # instead of rows * columns.
  for axis in (2, 1):
    side, step = kernel[axis - 1], strides[axis - 1]
    x = _along(x, axis, side) if step == 1 else _every(x, axis, side, step)
  return x


def split(x: Array, axis: int) -> list[Array]:
  """The arrays along an axis, which `jnp.stack` would put together.

  That is what JAX makes of it on the way back: one kernel. Of slices it makes a
  padded array each, and their sum.
  """
  parts = lax.split(x, (1,) * x.shape[axis], axis)
  return [lax.squeeze(part, (axis,)) for part in parts]


def _every(x: Array, axis: int, side: int, step: int) -> Array:
  """As `_along`, of those windows that begin at a multiple of `step`."""
  count = (x.shape[axis] - side) // step + 1
  steps = count + (side - 1) // step
  edges = [(0, 0, 0)] * x.ndim
  edges[axis] = (0, steps * step - x.shape[axis], 0)  # Negative: cut off.
  x = lax.pad(x, jnp.zeros((), x.dtype), edges)
  x = x.reshape(*x.shape[:axis], steps, step, *x.shape[axis + 1 :])
  parts = split(x, axis + 1)
  pieces = [
      lax.slice_in_dim(parts[i % step], i // step, i // step + count, 1, axis)
      for i in range(side)
  ]
  return jnp.concatenate(pieces, axis=-1)


@partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def _along(x: Array, axis: int, side: int) -> Array:
  """[..., n, ..., c] is [..., n', ..., side * c]: windows on one axis."""
  length = x.shape[axis] - side + 1
  pieces = [lax.slice_in_dim(x, i, i + length, 1, axis) for i in range(side)]
  return jnp.concatenate(pieces, axis=-1)


@_along.defjvp
def _moved(axis, side, primals, tangents):
  """The same of dx, written so that its way back is short.

  Of slices JAX makes a padded array each, and the sum of these. Here it makes
  one padded array, and the sum of its slices: half as many kernels to compile.
  The terms and their order are the same.
  """
  (x,), (dx,) = primals, tangents
  zero, channels = jnp.zeros((), dx.dtype), dx.shape[-1]
  placed = []
  for i in range(side):
    edges = [(0, 0, 0)] * dx.ndim
    edges[axis] = (side - 1 - i, i, 0)
    edges[-1] = (i * channels, (side - 1 - i) * channels, 0)
    placed.append(lax.pad(dx, zero, edges))
  whole = sum(placed[1:], placed[0])
  moved = lax.slice_in_dim(whole, side - 1, x.shape[axis], 1, axis)
  return _along(x, axis, side), moved
