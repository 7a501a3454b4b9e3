"""Convolution as a sum of outer products, one tap and 16 channels a step.

The int64 scan of `outer` with its left operand read in place: a step takes the
window of one kernel tap out of the padded image, so no patches are ever stored
(they would be `taps` times the image, and 8 bytes each). Strides are turned
into phases first: every tap is then a contiguous window of one phase. Kernels
with few channels use columns of patches instead, which are small there.
"""
import itertools
import math

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from vfljax.mpc import blocks, outer

Array = jax.Array

TILE = 128  # Columns of a tile; a step's rows of patches are long already.


def _phases(x: Array, strides: tuple[int, ...]) -> Array:
  """[n, *space, c] -> [c, *strides, n, *space / strides], zeros at the end."""
  axes = len(strides)
  fill = [(0, -size % s) for size, s in zip(x.shape[1:-1], strides)]
  x = jnp.pad(x, [(0, 0), *fill, (0, 0)])
  split = [(size // s, s) for size, s in zip(x.shape[1:-1], strides)]
  x = x.reshape(x.shape[0], *itertools.chain(*split), x.shape[-1])
  place = range(1, 1 + 2 * axes, 2)
  return x.transpose(
      x.ndim - 1, *(i + 1 for i in place), 0, *(i for i in place)
  )


def _starts(
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilation: tuple[int, ...],
    chunks: int,
) -> np.ndarray:
  """Where each step's window starts in the phases: [steps, 2 + 2 axes]."""
  rows = []
  for tap in itertools.product(*map(range, kernel)):
    places = [divmod(t * d, s) for t, d, s in zip(tap, dilation, strides)]
    phase, offset = [r for _, r in places], [q for q, _ in places]
    rows += [(i * outer.STEP, *phase, 0, *offset) for i in range(chunks)]
  return np.asarray(rows, np.int32)


def windows(
    x: Array,
    w: Array,
    space: tuple[int, ...],
    strides: tuple[int, ...],
    dilation: tuple[int, ...],
) -> Array:
  """Padded x [n, *p, c], w [*kernel, c, o] -> [n, *space, o], c >= 16 best."""
  kernel, (c, o), n = w.shape[:-2], w.shape[-2:], x.shape[0]
  chunks = -(-c // outer.STEP)
  tiles, width = outer.tiling(o, TILE)
  x = blocks.pad_to(_phases(x, strides), 0, chunks * outer.STEP)
  w = blocks.pad_to(w, -2, chunks * outer.STEP)
  w = blocks.pad_to(w, -1, tiles * width)
  w = w.reshape(-1, outer.STEP, tiles, width)
  size = (outer.STEP, *(1 for _ in strides), n, *space)

  def add(total, step):
    start, y = step
    part = lax.dynamic_slice(x, tuple(start), size)
    part = part.reshape(outer.STEP, 1, n, *space, 1)
    for k in range(outer.STEP):
      row = y[k].reshape(tiles, *(1 for _ in (n, *space)), width)
      total = total + part[k] * row
    return total, None

  starts = jnp.asarray(_starts(kernel, strides, dilation, chunks))
  zero = jnp.zeros((tiles, n, *space, width), jnp.int64)
  total = lax.scan(add, zero, (starts, w))[0]
  return jnp.moveaxis(total, 0, -2).reshape(n, *space, -1)[..., :o]


def columns(
    x: Array,
    w: Array,
    space: tuple[int, ...],
    strides: tuple[int, ...],
    dilation: tuple[int, ...],
) -> Array:
  """The same from patches laid out as [taps * c, positions]; for small c."""
  kernel, o, n = w.shape[:-2], w.shape[-1], x.shape[0]
  x = jnp.moveaxis(x, -1, 0)
  parts = []
  for tap in itertools.product(*map(range, kernel)):
    start = [t * d for t, d in zip(tap, dilation)]
    stop = [b + (q - 1) * s + 1 for b, q, s in zip(start, space, strides)]
    parts.append(lax.slice(
        x, (0, 0, *start), (*x.shape[:2], *stop), (1, 1, *strides)
    ))
  left = jnp.concatenate(parts).reshape(-1, n * math.prod(space))
  out = outer.product(w.reshape(-1, o).T, left).T
  return out.reshape(n, *space, o)


def product(
    x: Array,
    w: Array,
    space: tuple[int, ...],
    strides: tuple[int, ...],
    dilation: tuple[int, ...],
) -> Array:
  """Padded x [n, *p, c], w [*kernel, c, o] -> [n, *space, o] mod 2^64."""
  wide = min(w.shape[-2:]) >= outer.STEP
  return (windows if wide else columns)(x, w, space, strides, dilation)
