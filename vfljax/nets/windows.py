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
    x = _along(x, axis, kernel[axis - 1], strides[axis - 1])
  return x


@partial(jax.custom_jvp, nondiff_argnums=(1, 2, 3))
def _along(x: Array, axis: int, side: int, step: int) -> Array:
  """[..., n, ..., c] is [..., n', ..., side * c]: windows on one axis."""
  length = _length(x, axis, side, step)
  pieces = [
      lax.slice_in_dim(x, i, i + length, step, axis) for i in range(side)
  ]
  return jnp.concatenate(pieces, axis=-1)


@_along.defjvp
def _moved(axis, side, step, primals, tangents):
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
  first, length = side - 1, _length(x, axis, side, step)
  whole = sum(placed[1:], placed[0])
  moved = lax.slice_in_dim(whole, first, first + length, step, axis)
  return _along(x, axis, side, step), moved


def _length(x: Array, axis: int, side: int, step: int) -> int:
  """Pixels from the first of the first window to the first of the last."""
  return (x.shape[axis] - side) // step * step + 1
