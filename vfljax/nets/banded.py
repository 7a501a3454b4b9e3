"""Convolutions as products of an image's rows with a banded matrix.

Where images are narrow and channels few, copying windows costs more than
multiplying them: LeNet5's first layer copies a pixel into 25 windows, for six
channels. Here a window is as wide as the image, [kh, width], and the matrix has
the kernel's taps once for each pixel of an output's row, zeros elsewhere: the
Toeplitz matrix of a convolution on one axis. There are width / kw times as many
products, and nearly kw times fewer numbers to copy.
"""
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from vfljax.nets.product import product
from vfljax.nets.windows import windows
from vfljax.types import Array

# Where it is faster on a CPU: see experiments/bench/layers.json.
_MORE = 50  # Upper bound on width / kw times the output's channels.
_ROWS = 10  # The images' rows must be at least so many times that product.


def worth_it(
    image: Sequence[int], kernel: Sequence[int], strides: Sequence[int],
    pads: Sequence[tuple[int, int]],
) -> bool:
  """Whether it is quicker: see `convolution.quickest`."""
  high, wide, _, outputs = kernel
  down, across = (n + sum(p) for n, p in zip(image[1:3], pads))
  rows = image[0] * ((down - high) // strides[0] + 1)
  more = across * outputs / wide
  return wide > 1 and more <= _MORE and rows >= _ROWS * more


def convolve(
    x: Array, kernel: Array, strides: Sequence[int],
    pads: Sequence[tuple[int, int]],
) -> Array:
  """Cross-correlation, [batch, high, wide, c_out].

  Args: as in `convolution.quickest`.
  """
  taps, side, inputs, outputs = kernel.shape
  rows = windows(x, (taps, 1), (strides[0], 1), pads)
  batch, high, across, _ = rows.shape
  band = _band(across, side, strides[1])
  wide = band.shape[1]
  # [across * wide, kw] times [kw, kh * c_in * c_out]; then rows of pixels, as
  # `windows` lays them out, and columns of pixels and channels.
  matrix = jnp.asarray(band.reshape(-1, side), x.dtype) @ (
      kernel.swapaxes(0, 1).reshape(side, -1)
  )
  matrix = matrix.reshape(across, wide, taps * inputs, outputs).swapaxes(1, 2)
  y = product(
      rows.reshape(batch * high, -1), matrix.reshape(-1, wide * outputs)
  )
  return y.reshape(batch, high, wide, outputs)


def _band(across: int, side: int, step: int) -> np.ndarray:
  """[across, wide, side]: 1 where output `wide`'s tap `side` is that pixel."""
  wide = (across - side) // step + 1
  pixel, output, tap = np.ogrid[:across, :wide, :side]
  return (pixel == output * step + tap).astype('f')
