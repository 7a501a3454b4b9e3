"""Convolutions mod 2^64, channels last, for any number of spatial axes.

All reduce to a matrix product of patches. Patches are cut after the split into
digits, from int8 where the scheme has int8 digits (8 times less to move), and
images are taken in blocks of about 1000 output positions, which keeps patches
and digit products in the cache. Everything here needs 64-bit types on.
"""
from collections.abc import Sequence
import itertools
import math
from typing import Any, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from vfljax import check
from vfljax.mpc import outer_conv, schemes
from vfljax.mpc.schemes import Scheme

Array = jax.Array
Padding = str | int | Sequence[tuple[int, int]]


class Window(NamedTuple):
  """How a kernel moves; one entry per spatial axis.

  Attributes:
    strides: Step between output positions, >= 1.
    padding: (low, high) zeros around the input.
    dilation: Step between kernel taps, >= 1.
    groups: Channel groups that do not mix, >= 1.
  """

  strides: tuple[int, ...]
  padding: tuple[tuple[int, int], ...]
  dilation: tuple[int, ...]
  groups: int


def _per_axis(value: int | Sequence[int], axes: int, name: str):
  several = isinstance(value, Sequence)
  out = tuple(value) if several else (value,) * axes
  if len(out) != axes:
    raise ValueError(
        f'{name} must be a positive int or {axes} of them, not {value}.'
    )
  check.sizes('conv', **{name: out})
  return out


def _whole(side: Any) -> bool:
  return isinstance(side, int | np.integer) and not isinstance(side, bool)


def _pads(
    space: tuple[int, ...], reach: Sequence[int], strides: tuple[int, ...],
    padding: Any,
) -> tuple[tuple[int, int], ...]:
  """(low, high) for each axis; negative padding crops."""
  if isinstance(padding, str):
    check.one_of('padding', padding, ('SAME', 'VALID'))
    pads = lax.padtype_to_pads(space, reach, strides, padding)
    return tuple((int(low), int(high)) for low, high in pads)
  if _whole(padding):
    width = int(padding)
    return ((width, width),) * len(space)
  pads = np.asarray(padding, object)
  whole = all(map(_whole, pads.flat))
  if pads.shape != (len(space), 2) or not whole:  # 1.5 would be 1.
    raise ValueError(
        f'padding must be SAME, VALID, an integer or {len(space)} pairs (low, '
        f'high) of them; got {padding!r}.'
    )
  return tuple((int(low), int(high)) for low, high in pads)


def window(
    x_shape: tuple[int, ...],
    w_shape: tuple[int, ...],
    strides: int | Sequence[int] = 1,
    padding: Padding = 'SAME',
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Window:
  """Checks shapes x [batch, *space, c], w [*kernel, c/groups, out].

  Raises:
    ValueError: if shapes, channels, groups or the window do not fit together.
  """
  axes = len(x_shape) - 2
  if axes < 1 or len(w_shape) != axes + 2:
    raise ValueError(
        f'conv needs x [batch, *space, channels] and w [*kernel, channels / '
        f'groups, out]; got {x_shape} and {w_shape}.'
    )
  if groups < 1 or x_shape[-1] != w_shape[-2] * groups or w_shape[-1] % groups:
    raise ValueError(
        f'{groups} groups of {w_shape[-2]} input channels do not fit x with '
        f'{x_shape[-1]} channels and {w_shape[-1]} outputs.'
    )
  check.sizes('conv', kernel=w_shape[:axes], groups=groups)
  strides = _per_axis(strides, axes, 'strides')
  dilation = _per_axis(dilation, axes, 'dilation')
  reach = [(k - 1) * d + 1 for k, d in zip(w_shape[:axes], dilation)]
  pads = _pads(x_shape[1:-1], reach, strides, padding)
  for n, (low, high), r in zip(x_shape[1:-1], pads, reach):
    if n + low + high < r:
      raise ValueError(
          f'a kernel reaching over {r} positions does not fit an axis of {n} '
          f'padded by {(low, high)}.'
      )
  return Window(strides, pads, dilation, groups)


def _pad(x: Array, pads, interior=None) -> Array:
  interior = interior or (0,) * len(pads)
  inner = [(low, high, i) for (low, high), i in zip(pads, interior)]
  return lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), *inner, (0, 0, 0)])


def space(
    x_shape: tuple[int, ...], kernel: tuple[int, ...], win: Window
) -> tuple[int, ...]:
  """Output positions along each axis for an input [batch, *space, c]."""
  return tuple(
      (n + low + high - (k - 1) * d - 1) // s + 1
      for n, (low, high), k, s, d in zip(
          x_shape[1:-1], win.padding, kernel, win.strides, win.dilation
      )
  )


def check_gradient(
    g: Array, x_shape: tuple[int, ...], w_shape: tuple[int, ...], win: Window
) -> None:
  """Passes if `g` is shaped as the output of a convolution of these shapes.

  Raises:
    ValueError: if not: what is too much or too little would be cut or padded.
  """
  window(x_shape, w_shape, *win)
  places = space(x_shape, w_shape[:-2], win)
  if g.shape != (x_shape[0], *places, w_shape[-1]):
    raise ValueError(
        f'g must be shaped as the output of x {x_shape} and w {w_shape}, '
        f'{(x_shape[0], *places, w_shape[-1])}; it is {g.shape}.'
    )


def patches(
    x: Array, kernel: tuple[int, ...], places: tuple[int, ...], win: Window
) -> Array:
  """Padded x [n, *space, c] -> [n, *places, taps * c], any dtype."""
  parts = []
  for tap in itertools.product(*map(range, kernel)):
    start = [t * d for t, d in zip(tap, win.dilation)]
    stop = [b + (o - 1) * s + 1 for b, o, s in zip(start, places, win.strides)]
    parts.append(lax.slice(
        x, (0, *start, 0), (len(x), *stop, x.shape[-1]), (1, *win.strides, 1)
    ))
  return jnp.concatenate(parts, -1)


def _images(scheme: Scheme, places: tuple[int, ...]) -> int:
  """How many images make a block of about `scheme.positions` rows."""
  return max(1, scheme.positions // max(1, math.prod(places)))


def _ungrouped(
    scheme: Scheme, x: Array, w: Array, places: tuple[int, ...], win: Window
) -> Array:
  """Padded x [n, *space, c], w [*kernel, c, o] -> [n, *places, o]."""
  kernel, (c, o) = w.shape[:-2], w.shape[-2:]
  if not (x.size and w.size):  # An empty sum.
    return jnp.zeros((len(x), *places, o), jnp.int64)
  right = scheme.split(w.reshape(-1, o))

  def block(images):
    if scheme.name == 'outer':
      return outer_conv.product(images, w, places, win.strides, win.dilation)
    left = scheme.split(images)
    d, n = left.shape[:2]
    left = patches(left.reshape(d * n, *left.shape[2:]), kernel, places, win)
    left = left.reshape(d, n * math.prod(places), math.prod(kernel) * c)
    return schemes.multiply(scheme, left, right).reshape(n, *places, o)

  return schemes.in_blocks(block, x, _images(scheme, places))


def _naive(x: Array, w: Array, win: Window) -> Array:
  letters = 'XYZUV'[: x.ndim - 2]
  names = (f'N{letters}C', f'{letters}IO', f'N{letters}C')
  return lax.conv_general_dilated(
      x, w, win.strides, win.padding, rhs_dilation=win.dilation,
      dimension_numbers=names, feature_group_count=win.groups,
  )


def _grouped(x: Array, groups: int) -> Array:
  """[..., groups * c] -> [groups, ..., c]."""
  x = x.reshape(*x.shape[:-1], groups, x.shape[-1] // groups)
  return jnp.moveaxis(x, -2, 0)


def _merged(x: Array) -> Array:
  """[groups, ..., c] -> [..., groups * c]."""
  x = jnp.moveaxis(x, 0, -2)
  return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])


def forward(scheme: Scheme, x: Array, w: Array, win: Window) -> Array:
  """x [n, *space, c], w [*kernel, c/groups, o] -> [n, *positions, o]."""
  if scheme.name == 'naive':
    return _naive(x, w, win)
  places = space(x.shape, w.shape[:-2], win)
  x = _pad(x, win.padding)
  if win.groups == 1:
    return _ungrouped(scheme, x, w, places, win)
  parts = jax.vmap(lambda x, w: _ungrouped(scheme, x, w, places, win))
  return _merged(parts(_grouped(x, win.groups), _grouped(w, win.groups)))


def input_gradient(
    scheme: Scheme, g: Array, w: Array, x_shape: tuple[int, ...], win: Window
) -> Array:
  """The transpose of `forward` in x: g [n, *positions, o] -> x_shape.

  A convolution of g, spread out by the strides, with the flipped kernel.
  """
  axes = g.ndim - 2
  pads = []
  for n, o, k, s, d, (low, _) in zip(
      x_shape[1:-1], g.shape[1:-1], w.shape, win.strides, win.dilation,
      win.padding,
  ):
    reach = (k - 1) * d
    left = reach - low
    pads.append((left, n + reach - left - (o - 1) * s - 1))
  g = _pad(g, pads, tuple(s - 1 for s in win.strides))
  w = _grouped(jnp.flip(w, tuple(range(axes))), win.groups)
  w = _merged(jnp.swapaxes(w, -1, -2))
  ones = (1,) * axes
  back = Window(ones, ((0, 0),) * axes, win.dilation, win.groups)
  return forward(scheme, g, w, back)


def weight_gradient(
    scheme: Scheme, x: Array, g: Array, kernel: tuple[int, ...], win: Window
) -> Array:
  """The transpose of `forward` in w: -> [*kernel, c/groups, o].

  Patches of x, transposed, times g; summed over blocks of images.
  """
  if not (x.size and g.size):
    shape = *kernel, x.shape[-1] // win.groups, g.shape[-1]
    return jnp.zeros(shape, jnp.int64)
  x = _pad(x, win.padding)

  def one(x, g):
    size = _images(scheme, g.shape[1:-1])
    count = -(-len(x) // size)
    size = -(-len(x) // count)
    fill = [(0, count * size - len(x))] + [(0, 0)] * (x.ndim - 1)
    parts = [
        jnp.pad(v, fill).reshape(count, size, *v.shape[1:]) for v in (x, g)
    ]

    def add(total, part):
      images, grads = part
      left = patches(images, kernel, grads.shape[1:-1], win)
      left = left.reshape(-1, left.shape[-1]).T
      right = grads.reshape(-1, grads.shape[-1])
      return total + schemes.matmul(scheme, left, right), None

    taps = math.prod(kernel) * x.shape[-1]
    zero = jnp.zeros((taps, g.shape[-1]), jnp.int64)
    total = lax.scan(add, zero, tuple(parts))[0]
    return total.reshape(*kernel, x.shape[-1], -1)

  out = jax.vmap(one)(_grouped(x, win.groups), _grouped(g, win.groups))
  return _merged(out)
