"""Convolutions, then linear layers, of any number and size.

(8, 16) channels of 3x3 are the "2 Conv" bottoms of Kang et al. (2022), Table 9,
whose sizes they do not give.
"""
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp

from vfljax import check
from vfljax.nets import base, images
from vfljax.nets.convolution import max_pool, patches
from vfljax.nets.dense import fan_in_uniform
from vfljax.numerics import along_last
from vfljax.types import Net


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
    activation: A name of `base.ACTIVATIONS`.
    final: After the last linear layer.
    same: Images keep their size in a convolution, as zeros surround them; else
      they lose kernel - 1 rows and columns.

  Raises:
    ValueError: without channels, for an even kernel or too many pools; by
      `init` for a table, and for images of which nothing would be left.
  """
  check.sizes('convolutional', channels=channels, kernel=kernel)
  if not channels or kernel % 2 == 0:
    raise ValueError(
        'convolutional: needs channels and an odd kernel; got '
        f'{tuple(channels)} and {kernel}.'
    )
  check.count('convolutional: pools', pools, 0, len(channels))
  act = base.ACTIVATIONS[activation]
  dense = base.mlp(*widths, activation=activation, final=final) if widths else (
      Net(lambda key, x: (), lambda params, x: x.reshape(len(x), -1))
  )

  def convolve(layers, x):
    for i, layer in enumerate(layers):
      x = patches(x, kernel, same) @ layer['kernel']
      x = act(x + along_last(layer['bias'], x))
      x = max_pool(x) if i < pools else x
    return x

  def init(key, x):
    _check_size(x, len(channels), 1 if same else kernel, pools)
    if not jnp.issubdtype(x.dtype, jnp.floating):  # Weights are no integers.
      x = x.astype(jnp.float32)
    keys = jax.random.split(key, 2 * len(channels) + 1)
    layers = []
    for i, (into, out) in enumerate(pairwise([x.shape[-1], *channels])):
      fan_in = kernel * kernel * into
      draw = fan_in_uniform(fan_in)
      layers.append(dict(
          kernel=draw(keys[2 * i], (fan_in, out), x.dtype),
          bias=draw(keys[2 * i + 1], (out,), x.dtype),
      ))
    return dict(conv=layers, dense=dense.init(keys[-1], convolve(layers, x)))

  def apply(params, x):
    return dense.apply(params['dense'], convolve(params['conv'], x))

  return images.blockwise(Net(init, apply))


def _check_size(x: Any, layers: int, side: int, pools: int) -> None:
  """Refuses images that are used up before the last layer, and tables.

  Args:
    side: Of a window that must lie inside the image; 1 for any image.
  """
  images.check_images('convolutional', x)
  left = list(x.shape[1:3])
  for i in range(layers):
    left = [pixels - side + 1 for pixels in left]
    if i < pools:  # One row or column is none after pooling.
      left = [pixels // 2 for pixels in left]
    if min(left) < 1:
      high, wide = x.shape[1:3]
      raise ValueError(
          f'convolutional: images of {high} x {wide} pixels are too small for '
          f'{layers} convolutions, {pools} of them pooled'
          f'{", without padding" if side > 1 else ""}: nothing is left of them '
          f'after convolution {i + 1}. Take fewer convolutions or pools, or a '
          'split that leaves each party a larger image.'
      )


def conv2(
    width: int = 128, channels: tuple[int, ...] = (8, 16), pools: int = 1,
    activation: str = 'relu',
) -> Net:
  """Two convolutions of 3x3 and a linear layer (Kang et al., Table 9)."""
  return convolutional(
      channels, width, pools=pools, activation=activation
  )


def conv3(
    width: int = 40, channels: tuple[int, ...] = (6, 16, 32),
    hidden: tuple[int, ...] = (120, 84), activation: str = 'relu',
) -> Net:
  """Three pooled convolutions and three linear layers (GAFM, for ISIC)."""
  return convolutional(
      channels, *hidden, width, pools=len(channels), activation=activation,
      same=False,
  )
