"""Convolutions of 3x3 by Winograd's algorithm: fewer products, less memory.

Of each 2x2 pixels of the output, 16 products with sums and differences of the
4x4 pixels below them take the place of 36, F(2x2, 3x3) in Lavin and Gray (2016,
https://arxiv.org/abs/1509.09308):

  Y = A^T [(G g G^T) * (B^T d B)] A

is the output of a tile of four pixels, d the 4x4 of the input and g a kernel,
for one channel of either; summed over the input's channels, `*` becomes a
product of matrices at each of 16 places. What of an image goes into products is
four times the image; its windows are nine times. The terms are those of the
convolution in another order, so that float32's last digits differ.

Written so that JAX's way back is as short: see `windows.split`.
"""
from collections.abc import Sequence

import jax
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata
import jax.numpy as jnp
import numpy as np

from vfljax.nets.windows import split
from vfljax.types import Array

# G and A^T of one axis.
_G = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]], 'f')
_A = np.array([[1, 1, 1, 0], [0, 1, -1, -1]], 'f')
# Of both. Places, and an output's pixels, are numbered column by column, the
# kernel's taps row by row.
_PLACES, _TAPS, _PIXELS = 16, 9, 4
_KERNEL = np.einsum('ik,jl->jikl', _G, _G).reshape(_PLACES, _TAPS)
_OUTPUT = np.einsum('ik,jl->jilk', _A, _A).reshape(_PIXELS, _PLACES)

# Where it is quicker on a CPU: see experiments/bench/layers.json.
_SPARED = 0.59  # Of the products at most: a small image's tiles reach outside.
_CHANNELS = 8  # Of the input; with fewer, the output's places are what counts.
_WIDER = 4  # Times as many channels the output has at most.
_TILES = 32  # Of all images; with fewer, the kernel's places are what counts.


def worth_it(
    image: Sequence[int], kernel: Sequence[int], strides: Sequence[int],
    pads: Sequence[tuple[int, int]],
) -> bool:
  """Whether it can be done so and is quicker: see `convolution.quickest`."""
  if tuple(kernel[:2]) != (3, 3) or tuple(strides) != (1, 1):
    return False
  if tuple(pads) != ((1, 1), (1, 1)):
    return False
  images, high, wide, inputs = image
  tiles = -(-high // 2) * -(-wide // 2)
  return (
      _PLACES * tiles <= _SPARED * _TAPS * high * wide
      and inputs >= _CHANNELS and _WIDER * inputs >= kernel[3]
      and images * tiles >= _TILES
  )


def convolve(x: Array, kernel: Array) -> Array:
  """Cross-correlation with one pixel of zeros around the image.

  A function that XLA leaves one: it would write what makes `x`, norms and
  additions before it included, into each place of a tile that reads it.

  Args:
    x: [batch, height, width, c_in].
    kernel: [3, 3, c_in, c_out].

  Returns:
    [batch, height, width, c_out].
  """
  with set_xla_metadata(inlineable='false'):
    return _convolve(x, kernel)


@jax.jit  # Traced once for all layers of a shape.
def _convolve(x, kernel):
  batch, high, wide, _ = x.shape
  x = jnp.pad(x, ((0, 0), (0, high % 2), (0, wide % 2), (0, 0)))
  weights = jnp.asarray(_KERNEL, x.dtype) @ kernel.reshape(_TAPS, -1)
  products = lax.dot_general(
      _tiles(x), weights.reshape(_PLACES, *kernel.shape[2:]),
      (((2,), (1,)), ((0,), (0,))),
  )
  y = jnp.asarray(_OUTPUT, x.dtype) @ products.reshape(_PLACES, -1)
  y = y.reshape(2, 2, batch, x.shape[1] // 2, x.shape[2] // 2, -1)
  y = y.transpose(2, 3, 1, 4, 0, 5).reshape(*x.shape[:3], -1)
  return y[:, :high, :wide]


def _tiles(x: Array) -> Array:
  """B^T d B of all tiles of an image of even sides, [16, batch * tiles, c]."""
  batch, high, wide, c = x.shape
  x = _places(x.reshape(batch, high // 2, 2, wide, c), 1)
  x = _places(x.reshape(4, batch, high // 2, wide // 2, 2, c), 3)
  return x.reshape(_PLACES, -1, c)


def _places(x: Array, axis: int) -> Array:
  """B^T d on the axis of tiles, behind which is that of their two pixels.

  d is these two, the one before and the one after; outside is zero. The four
  places come first.
  """
  second, third = split(x, axis + 1)
  first, fourth = _moved(third, axis, 1), _moved(second, axis, -1)
  return jnp.stack(
      [first - third, second + third, third - second, second - fourth]
  )


def _moved(x: Array, axis: int, by: int) -> Array:
  """Each tile's is another's: of the one before, with `by` 1, or after, -1."""
  edges = [(0, 0, 0)] * x.ndim
  edges[axis] = (by, -by, 0)
  return lax.pad(x, jnp.zeros((), x.dtype), edges)
