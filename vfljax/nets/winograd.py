"""Convolutions of 3x3 by Winograd's algorithm: fewer products, less memory.

An output is divided into tiles. Of one of 2x2 pixels, 16 products with sums of
the 4x4 pixels of the input below it take the place of 36; of one of 4x4, 36
products those of 144: F(2x2, 3x3) and F(4x4, 3x3) in Lavin and Gray (2016,
https://arxiv.org/abs/1509.09308):

  Y = A^T [(G g G^T) * (B^T d B)] A

is a tile of the output, d the input's pixels below it and around, and g a
kernel, for one channel of either; summed over the input's channels, `*` becomes
a product of matrices at each of the places, 16 or 36. What of an image goes
into products is 4 or 2.25 times the image; its windows are nine times. Rows and
columns can have tiles of different sides: one of 4x2 has 24 places, which is 3
times the image.

The terms are those of the convolution in another order, so that float32's last
digits differ. Where a tile's side is 4, they also have rounded factors: A, B
and G interpolate at 0, +-1/sqrt(2), +-sqrt(2) and infinity, which errs half as
much as 0, +-1, +-2 and infinity. Errors in float32 are in
`experiments/bench/layers.json`; for fewer bits it is not made.

Written so that JAX's way back is as short: see `windows.split`. Between the two
axes nothing is reshaped: XLA would compute the first one's places twice.
"""
from collections.abc import Sequence
from functools import partial

import jax
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata
import jax.numpy as jnp
import numpy as np

from vfljax.nets.windows import split
from vfljax.types import Array

_TAPS = 9
_LOW, _HIGH = 0.5**0.5, 2**0.5
# G of one axis, by the side of a tile.
_KERNEL = {
    2: np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]]),
    4: np.array([
        [1, 0, 0], [-2 / 3, -_LOW * 2 / 3, -1 / 3],
        [-2 / 3, _LOW * 2 / 3, -1 / 3], [1 / 6, _HIGH / 6, 1 / 3],
        [1 / 6, -_HIGH / 6, 1 / 3], [0, 0, 1],
    ]),
}
# A^T of one axis.
_OUTPUT = {
    2: np.array([[1, 1, 1, 0], [0, 1, -1, -1]]),
    4: np.array([
        [1, 1, 1, 1, 1, 0], [0, _LOW, -_LOW, _HIGH, -_HIGH, 0],
        [0, 0.5, 0.5, 2, 2, 0],
        [0, _LOW / 2, -_LOW / 2, 2 * _HIGH, -2 * _HIGH, 1],
    ]),
}

# Where it is quicker on a CPU: see experiments/bench/layers.json.
_SPARED = 0.59  # Of the products at most: a small image's tiles reach outside.
_CHANNELS = 8  # Of the input; with fewer, the output's places are what counts.
_WIDER = 4  # Times as many channels the output has at most.
_TILES = 32  # Of all images; with fewer, the kernel's places are what counts.
# For a side of 4: channels of the input at least, since with fewer it saves
# less, nothing on two cores, and takes longer to compile; and how many channels
# there are for each tile at most, since the kernel has more places, too.
_WIDE, _FEWER = 64, 2


def worth_it(
    image: Sequence[int], kernel: Sequence[int], strides: Sequence[int],
    pads: Sequence[tuple[int, int]],
) -> bool:
  """Whether it can be done so and is quicker: see `convolution.quickest`."""
  if tuple(kernel[:2]) != (3, 3) or tuple(strides) != (1, 1):
    return False
  if tuple(pads) != ((1, 1), (1, 1)):
    return False
  _, high, wide, inputs = image
  tiles, places = _counts(image, best(image))
  return (
      places <= _SPARED * _TAPS * high * wide
      and inputs >= _CHANNELS and _WIDER * inputs >= kernel[3]
      and tiles >= _TILES
  )


def best(image: Sequence[int]) -> tuple[int, int]:
  """The tile that [batch, height, width, c_in] gets: (rows, columns)."""
  _, high, wide, inputs = image
  rows, columns = (
      min(_KERNEL, key=lambda side: _places_on(pixels, side))
      for pixels in (high, wide)
  )
  tiles, _ = _counts(image, (rows, columns))
  fits = _WIDE <= inputs <= _FEWER * tiles
  return (rows, columns) if fits else (2, 2)


def _counts(image: Sequence[int], tile: tuple[int, int]) -> tuple[int, int]:
  """(the tiles of all images, the places of all tiles of one image)."""
  sides = list(zip(image[1:3], tile))
  down, right = (-(-pixels // side) for pixels, side in sides)
  high, wide = (_places_on(pixels, side) for pixels, side in sides)
  return image[0] * down * right, high * wide


def _places_on(pixels: int, side: int) -> int:
  """The places on an axis of so many pixels."""
  return -(-pixels // side) * (side + 2)


def convolve(
    x: Array, kernel: Array, tile: tuple[int, int] | None = None
) -> Array:
  """Cross-correlation with one pixel of zeros around the image.

  A function that XLA leaves one: it would write what makes `x`, norms and
  additions before it included, into each place of a tile that reads it.

  Args:
    x: [batch, height, width, c_in].
    kernel: [3, 3, c_in, c_out].
    tile: A tile's pixels, (rows, columns), each 2 or 4; `None` is the `best`.

  Returns:
    [batch, height, width, c_out].
  """
  with set_xla_metadata(inlineable='false'):
    return _convolve(x, kernel, tile or best(x.shape))


@partial(jax.jit, static_argnums=2)  # Traced once for all layers of a shape.
def _convolve(x, kernel, tile):
  batch, high, wide, _ = x.shape
  rows, columns = tile
  x = jnp.pad(x, ((0, 0), (0, -high % rows), (0, -wide % columns), (0, 0)))
  # Places, and an output's pixels, are numbered column by column, the kernel's
  # taps row by row.
  weights = _of_both('ik,jl->jikl', _KERNEL, tile, x.dtype).reshape(-1, _TAPS)
  weights = weights @ kernel.reshape(_TAPS, -1)
  products = lax.dot_general(
      _tiles(x, tile), weights.reshape(-1, *kernel.shape[2:]),
      (((2,), (1,)), ((0,), (0,))),
  )
  pixels = _of_both('ik,jl->jilk', _OUTPUT, tile, x.dtype)
  y = pixels.reshape(rows * columns, -1) @ products.reshape(len(weights), -1)
  y = y.reshape(
      columns, rows, batch, x.shape[1] // rows, x.shape[2] // columns, -1
  )
  y = y.transpose(2, 3, 1, 4, 0, 5).reshape(*x.shape[:3], -1)
  return y[:, :high, :wide]


def _of_both(how: str, matrices: dict, tile: tuple[int, int], dtype) -> Array:
  """A matrix of two axes: of what it is for the rows and for the columns."""
  rows, columns = tile
  return jnp.asarray(np.einsum(how, matrices[rows], matrices[columns]), dtype)


def _tiles(x: Array, tile: tuple[int, int]) -> Array:
  """B^T d B of all tiles of an image, [places, batch * tiles, c]."""
  (batch, high, wide, c), (rows, columns) = x.shape, tile
  x = x.reshape(batch, high // rows, rows, wide // columns, columns, c)
  x = _places(_places(x, 1), 3)
  return x.reshape((rows + 2) * (columns + 2), -1, c)


def _places(x: Array, axis: int) -> Array:
  """B^T d on the axis of tiles, behind which is that of their pixels.

  d is these, the one before and the one after; outside is zero. The places
  come first.
  """
  own = split(x, axis + 1)
  before, after = _moved(own[-1], axis, 1), _moved(own[0], axis, -1)
  sums = _of_two if len(own) == 2 else _of_four
  return jnp.stack(sums([before, *own, after]))


def _of_two(d: list[Array]) -> list[Array]:
  d0, d1, d2, d3 = d
  return [d0 - d2, d1 + d2, d2 - d1, d1 - d3]


def _of_four(d: list[Array]) -> list[Array]:
  d0, d1, d2, d3, d4, d5 = d
  even_low, odd_low = d4 - 2 * d2, _LOW * d3 - _HIGH * d1
  even_high, odd_high = d4 - d2 / 2, _HIGH * d3 - _LOW * d1
  return [
      d0 - 2.5 * d2 + d4, even_low + odd_low, even_low - odd_low,
      even_high + odd_high, even_high - odd_high, d1 - 2.5 * d3 + d5,
  ]


def _moved(x: Array, axis: int, by: int) -> Array:
  """Each tile's is another's: of the one before, with `by` 1, or after, -1."""
  edges = [(0, 0, 0)] * x.ndim
  edges[axis] = (by, -by, 0)
  return lax.pad(x, jnp.zeros((), x.dtype), edges)
