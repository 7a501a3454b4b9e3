"""Convolutional networks without Flax, as patches times a matrix.

XLA's convolutions are slow inside a scan on a CPU. Here an image becomes its
patches, [batch, height, width, taps], and a convolution one matrix product,
which is fast everywhere, under `vmap` too. (8, 16) channels of 3x3 are the "2
Conv" bottoms of Kang et al. (2022), Table 9, whose sizes they do not give.
"""
from collections.abc import Sequence

import jax
from jax import lax
import jax.numpy as jnp

from vfljax import nets
from vfljax.types import Array, Net


def convolutional(
    channels: Sequence[int], *widths: int, kernel: int = 3, pools: int = 1,
    activation: str = 'relu', final: str | None = None, same: bool = True,
) -> Net:
  """Convolutions, then linear layers: [batch, height, width, c] to [batch, w].

  Args:
    channels: Of each convolution, one or more, each followed by the activation.
    widths: Of the linear layers after them; without any, the output is the
      last convolution's, flattened.
    kernel: Side of every convolution's window, odd.
    pools: The first so many convolutions are followed by 2x2 max pooling, which
      drops a last odd row or column.
    activation: A name of `nets.ACTIVATIONS`.
    final: After the last linear layer.
    same: Images keep their size in a convolution, as zeros surround them; else
      they lose kernel - 1 rows and columns.

  Raises:
    ValueError: without channels, for an even kernel or too many pools.
  """
  if not channels or min(channels) < 1 or kernel % 2 == 0:
    raise ValueError(
        'convolutional: needs positive channels and an odd kernel; got '
        f'{tuple(channels)} and {kernel}.'
    )
  if not 0 <= pools <= len(channels):
    raise ValueError(
        f'convolutional: pools must be 0..{len(channels)}; got {pools}.'
    )
  act = nets.ACTIVATIONS[activation]
  dense = nets.mlp(*widths, activation=activation, final=final) if widths else (
      Net(lambda key, x: (), lambda params, x: x.reshape(len(x), -1))
  )

  def convolve(layers, x):
    for i, layer in enumerate(layers):
      x = act(patches(x, kernel, same) @ layer['kernel'] + layer['bias'])
      x = max_pool(x) if i < pools else x
    return x

  def init(key, x):
    keys = jax.random.split(key, 2 * len(channels) + 1)
    layers, into = [], x.shape[-1]
    for i, out in enumerate(channels):
      fan_in = kernel * kernel * into
      draw = nets.fan_in_uniform(fan_in)
      layers.append(dict(
          kernel=draw(keys[2 * i], (fan_in, out), x.dtype),
          bias=draw(keys[2 * i + 1], (out,), x.dtype),
      ))
      into = out
    return dict(conv=layers, dense=dense.init(keys[-1], convolve(layers, x)))

  def apply(params, x):
    return dense.apply(params['dense'], convolve(params['conv'], x))

  return Net(init, apply)


def patches(x: Array, kernel: int, same: bool = True) -> Array:
  """The window around each pixel, zeros outside the image.

  Args:
    x: [batch, height, width, channels].
    kernel: The window's side, odd.
    same: Around every pixel; else only where the window is inside the image.

  Returns:
    [batch, height, width, kernel * kernel * channels]: rows of the window, then
    columns, then channels. Without `same`, height and width are kernel - 1
    less.
  """
  edge = kernel // 2 if same else 0
  return windows(x, (kernel, kernel), (1, 1), ((edge, edge),) * 2)


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
    [batch, high, wide, rows * columns * channels], laid out as in `patches`.
  """
  x = jnp.pad(x, ((0, 0), *pads, (0, 0)))
  # One axis after the other: rows + columns pieces to join, and to compile,
  # instead of rows * columns.
  for axis in (2, 1):
    side, step = kernel[axis - 1], strides[axis - 1]
    length = (x.shape[axis] - side) // step * step + 1
    pieces = [
        lax.slice_in_dim(x, i, i + length, step, axis) for i in range(side)
    ]
    x = jnp.concatenate(pieces, axis=-1)
  return x


def max_pool(x: Array) -> Array:
  """The largest of every 2x2 pixels, [batch, height / 2, width / 2, c]."""
  high, wide = x.shape[1] // 2, x.shape[2] // 2
  x = x[:, : 2 * high, : 2 * wide]
  corners = [x[:, i::2, j::2] for i in range(2) for j in range(2)]
  a, b, c, d = corners
  return jnp.maximum(jnp.maximum(a, b), jnp.maximum(c, d))
