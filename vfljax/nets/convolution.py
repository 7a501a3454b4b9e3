"""Convolutions and pooling, channels last, for all networks on images.

XLA's convolutions are slow inside a scan on a CPU. There `convolve` makes
patches of an image, [batch, height, width, taps], and one matrix product of a
convolution, which is fast everywhere, also under `vmap`. Two other ways to
matrix products are faster for many layers (`winograd`, `banded`).

A convolution is one module, `Conv`, as `nn.Dense` is for a linear layer, with a
kernel and a bias. `flax.linen.intercept_methods` can therefore replace the
arithmetic of both from outside: the secret-shared layers of VMask are these
layers, computed otherwise.
"""
from collections.abc import Sequence
import math
from typing import Any

from flax import linen as nn
from flax.linen import dtypes
from jax import lax
import jax.numpy as jnp

from vfljax import target
from vfljax.nets import banded, winograd
from vfljax.nets.dense import Read, fan_in_uniform
from vfljax.nets.product import product
from vfljax.nets.windows import split, windows
from vfljax.numerics import along_last
from vfljax.types import Array

Padding = str | int | Sequence[tuple[int, int]]
METHODS = ('', 'patches', 'conv')


class Conv(Read, nn.Module):
  """A convolution of images [batch, height, width, c_in].

  Its parameters are 'kernel' [kh, kw, c_in, channels] and, with `use_bias`,
  'bias' [channels], both uniform in +-1/sqrt(kh * kw * c_in) at the start.

  Attributes:
    channels: Of the output.
    kernel: (kh, kw).
    strides: (down, right), each 1 or more.
    padding: Zeros around the image: 'SAME' and 'VALID' as XLA defines them, a
      number for all four sides, or (low, high) for each of the two axes.
    use_bias: Whether there is a bias.
    dtype: Of the arithmetic, such as bfloat16; by default that of `x` and the
      weights.
    how: One of `METHODS`, see `convolve`.
    pooled: Whether the output is the largest of every 2x2 pixels, by `pool`.
      The bias is added afterwards, which gives the same numbers in less time.
  """

  channels: int
  kernel: tuple[int, int] = (3, 3)
  strides: tuple[int, int] = (1, 1)
  padding: Padding = 'SAME'
  use_bias: bool = True
  dtype: Any = None
  how: str = ''
  pooled: bool = False

  @nn.compact
  def __call__(self, x):
    shape = (*self.kernel, x.shape[-1], self.channels)
    start = fan_in_uniform(math.prod(shape[:3]))
    kernel = self.param('kernel', start, shape)
    bias = self.param('bias', start, shape[3:]) if self.use_bias else None
    x, kernel, bias = dtypes.promote_dtype(x, kernel, bias, dtype=self.dtype)
    y = convolve(x, kernel, self.strides, self.padding, self.how)
    y = pool(y) if self.pooled else y
    return y if bias is None else y + along_last(bias, y)


def convolve(
    x: Array, kernel: Array, strides: tuple[int, int] = (1, 1),
    padding: Padding = 'SAME', how: str = '',
) -> Array:
  """Cross-correlation, as networks call convolution.

  Args:
    x: [batch, height, width, c_in].
    kernel: [kh, kw, c_in, c_out], of the same dtype.
    strides: (down, right).
    padding: As in `Conv`.
    how: 'patches' is one matrix product of the image's patches; 'conv' is XLA's
      convolution. They differ in speed and last digits only: on a CPU inside a
      scan the former is 10 to 100 times as fast. '' is what `quickest` chooses
      on a CPU, and 'conv' on other devices.

  Returns:
    [batch, high, wide, c_out].

  Raises:
    ValueError: for another `how` or a kernel larger than the padded image.
  """
  if how not in METHODS:
    raise ValueError(f'how must be one of {METHODS}; got {how!r}.')
  window = kernel.shape[:2]
  pads = edges(padding, x.shape[1:3], window, strides)
  sizes = [n + sum(p) for n, p in zip(x.shape[1:3], pads)]
  if any(n < k for n, k in zip(sizes, window)):
    raise ValueError(
        f'A window of {window} does not fit an image of {tuple(sizes)} pixels, '
        'padding included: the image is too small for this network.'
    )
  if not how:
    on_cpu = target.kind() == 'cpu'
    how = quickest(x, kernel, strides, pads) if on_cpu else 'conv'
  if how == 'conv':
    return lax.conv_general_dilated(
        x, kernel, strides, pads, dimension_numbers=('NHWC', 'HWIO', 'NHWC')
    )
  if how == 'banded':
    return banded.convolve(x, kernel, strides, pads)
  if how == 'winograd':
    return winograd.convolve(x, kernel)
  taps = windows(x, window, strides, pads)
  return product(taps, kernel.reshape(-1, kernel.shape[-1]))


def quickest(
    x: Array, kernel: Array, strides: Sequence[int],
    pads: Sequence[tuple[int, int]],
) -> str:
  """The fastest way to compute a convolution on a CPU.

  Args:
    x: [batch, height, width, c_in].
    kernel: [kh, kw, c_in, c_out].
    strides: (down, right).
    pads: Zeros (before, after) on each of the two axes.

  Returns:
    'banded', 'winograd' or 'patches', by the times in
    `experiments/bench/layers.json`. 'patches' for other dtypes than float32,
    and if a size is unknown, as in programs exported for any number of images.
  """
  known = all(isinstance(size, int) for size in x.shape)
  if not known or {x.dtype, kernel.dtype} != {jnp.dtype('float32')}:
    return 'patches'
  if banded.worth_it(x.shape, kernel.shape, strides, pads):
    return 'banded'
  if winograd.worth_it(x.shape, kernel.shape, strides, pads):
    return 'winograd'
  return 'patches'


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


def edges(
    padding: Padding, size: Sequence[int], window: Sequence[int],
    strides: Sequence[int],
) -> tuple[tuple[int, int], ...]:
  """The zeros (low, high) around each of two axes of `size` pixels."""
  if isinstance(padding, str):
    pads = lax.padtype_to_pads(size, window, strides, padding)
    return tuple((int(low), int(high)) for low, high in pads)
  if isinstance(padding, int):
    return ((padding, padding),) * 2
  return tuple((int(low), int(high)) for low, high in padding)


def pool(x: Array, how: str = 'max', whole: bool = True) -> Array:
  """2x2 pooling with stride 2, [batch, height / 2, width / 2, c].

  A side of one pixel stays as it is; pooling would leave nothing of it.

  Args:
    x: [batch, height, width, c].
    how: 'max' or 'mean'.
    whole: Whether to drop a last odd row or column; else it is pooled alone.

  Raises:
    ValueError: for another `how`.
  """
  if how not in ('max', 'mean'):
    raise ValueError(f"pool must be 'max' or 'mean'; got {how!r}.")
  for axis in (1, 2):
    size = x.shape[axis]
    if size == 1:
      continue
    if size % 2 and not whole:  # Duplicated, so that max and mean keep it.
      last = lax.slice_in_dim(x, size - 1, size, axis=axis)
      x, size = jnp.concatenate([x, last], axis), size + 1
    half = size // 2
    x = lax.slice_in_dim(x, 0, 2 * half, axis=axis)
    pairs = x.reshape(*x.shape[:axis], half, 2, *x.shape[axis + 1 :])
    a, b = split(pairs, axis + 1)
    x = jnp.maximum(a, b) if how == 'max' else (a + b) / 2
  return x


def max_pool(x: Array) -> Array:
  """The largest of every 2x2 pixels, [batch, height / 2, width / 2, c]."""
  high, wide = x.shape[1] // 2, x.shape[2] // 2
  x = x[:, : 2 * high, : 2 * wide]
  corners = [x[:, i::2, j::2] for i in range(2) for j in range(2)]
  a, b, c, d = corners
  return jnp.maximum(jnp.maximum(a, b), jnp.maximum(c, d))
