"""The layers that can be masked, as bilinear maps over Z_2^64.

A protocol for products needs three maps and the shapes: y = f(x, w), its
transpose in x (input gradient) and in w (weight gradient). Dense layers and
convolutions differ in nothing else. The maps need 64-bit types on.
"""
from collections.abc import Callable
import functools
import math
from typing import NamedTuple

import jax

from vfljax import check
from vfljax.mpc import conv, kernels

Array = jax.Array
Shape = tuple[int, ...]

_FEW_ROWS = 64


class Bilinear(NamedTuple):
  """A bilinear map and its transposes; hashable: it may be a static argument.

  Attributes:
    x_shape: Shape of the input, batch included.
    w_shape: Shape of the weights.
    y_shape: Shape of the output.
    forward: (x, w) -> y.
    input_gradient: (g, w) -> like x, for g like y.
    weight_gradient: (x, g) -> like w.
  """

  x_shape: Shape
  w_shape: Shape
  y_shape: Shape
  forward: Callable[[Array, Array], Array]
  input_gradient: Callable[[Array, Array], Array]
  weight_gradient: Callable[[Array, Array], Array]


def _dense_weights(x: Array, g: Array) -> Array:
  return kernels.matmul(_rows(x).T, _rows(g))


def _dense_inputs(g: Array, w: Array) -> Array:
  rows = _rows(g)
  if len(rows) < _FEW_ROWS:
    out = kernels.matmul(rows, w.T)
  else:  # The same, transposing the batch and not the weights.
    out = kernels.matmul(w, rows.T).T
  return out.reshape(*g.shape[:-1], len(w))


def _rows(x: Array) -> Array:
  """[..., n] -> [rows, n]; a -1 would be ambiguous for an empty axis."""
  return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _check_sizes(*shapes: Shape) -> None:
  """Passes if these are shapes, of empty arrays perhaps."""
  for size in (size for shape in shapes for size in shape):
    check.count('A size of a shape', size, 0)


@functools.cache
def dense(x_shape: Shape, w_shape: Shape) -> Bilinear:
  """y = x @ w for x [..., n], w [n, m].

  Raises:
    ValueError: if the shapes do not fit, or are none.
  """
  _check_sizes(x_shape, w_shape)
  if len(x_shape) < 2 or len(w_shape) != 2 or x_shape[-1] != w_shape[0]:
    raise ValueError(
        f'dense needs x [..., n] and w [n, m]; got {x_shape} and {w_shape}.'
    )
  y_shape = (*x_shape[:-1], w_shape[1])
  return Bilinear(
      x_shape, w_shape, y_shape, kernels.matmul, _dense_inputs, _dense_weights
  )


@functools.cache
def convolution(
    x_shape: Shape,
    w_shape: Shape,
    strides: int | Shape = 1,
    padding: str | int | tuple[tuple[int, int], ...] = 'SAME',
    dilation: int | Shape = 1,
    groups: int = 1,
) -> Bilinear:
  """y = x * w for x [batch, *space, c], w [*kernel, c/groups, o].

  Arguments after the shapes, and errors: as in `ring.conv`, as tuples.
  """
  _check_sizes(x_shape, w_shape)
  win = conv.window(x_shape, w_shape, strides, padding, dilation, groups)
  kernel = w_shape[:-2]
  places = conv.space(x_shape, kernel, win)

  def forward(x, w):
    return kernels.conv(x, w, win.strides, win.padding, win.dilation, groups)

  def input_gradient(g, w):
    return kernels.conv_input_gradient(g, w, x_shape, win)

  def weight_gradient(x, g):
    return kernels.conv_weight_gradient(x, g, kernel, win)

  y_shape = (x_shape[0], *places, w_shape[-1])
  return Bilinear(
      x_shape, w_shape, y_shape, forward, input_gradient, weight_gradient
  )


def sizes(f: Bilinear) -> tuple[int, int, int]:
  """Elements (X, Y, W) of the input, the output and the weights."""
  x, y, w = map(math.prod, (f.x_shape, f.y_shape, f.w_shape))
  return x, y, w
