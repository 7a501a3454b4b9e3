"""Matrix products and convolutions mod 2^64 inside a 64-bit program.

The same arithmetic as `ring` without its switch: for code whose outermost `jit`
already runs under `jax.enable_x64(True)`, and for the masked layers. Called
with 64-bit types off they raise TypeError.
"""
from collections.abc import Sequence
import math

import jax
import jax.numpy as jnp
import numpy as np

from vfljax.mpc import dispatch, schemes
from vfljax.mpc import conv as convolution
from vfljax.mpc.conv import Padding, Window
from vfljax.mpc.schemes import SCHEMES, Scheme
from vfljax.mpc.x64 import check_on, ring_array

Array = jax.Array


def _check_switch() -> None:
  check_on('vfljax.mpc.kernels (not vfljax.mpc.ring)')


def named(scheme: str) -> Scheme:
  """The scheme of that name.

  Raises:
    ValueError: if there is none; the message lists them.
  """
  if scheme not in SCHEMES:
    raise ValueError(f'no scheme {scheme!r}; there are {", ".join(SCHEMES)}.')
  return SCHEMES[scheme]


def matmul(
    a: Array, b: Array, scheme: str | None = None, platform: str = ''
) -> Array:
  """a [..., m, k] @ b [..., k, n] mod 2^64; see `ring.matmul`."""
  _check_switch()
  ring_array(a, 'a', 2)
  ring_array(b, 'b', 2)
  m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
  if b.shape[-2] != k:
    raise ValueError(f'matmul: {a.shape} @ {b.shape} do not fit.')
  if b.ndim == 2:  # One right side: the batch is more rows.
    m = math.prod(a.shape[:-1])
  where = platform or dispatch.platform_of(a, b)
  chosen = named(scheme) if scheme else dispatch.for_matmul(where, m, k, n)
  if b.ndim == 2:
    out = schemes.matmul(chosen, a.reshape(m, k), b)
    return out.reshape(*a.shape[:-1], n)
  try:
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
  except ValueError:
    raise ValueError(f'matmul: {a.shape} @ {b.shape} do not fit.') from None
  count = math.prod(batch)  # Not -1, which is anything beside an empty axis.
  a = jnp.broadcast_to(a, (*batch, m, k)).reshape(count, m, k)
  b = jnp.broadcast_to(b, (*batch, k, n)).reshape(count, k, n)
  out = jax.vmap(lambda a, b: schemes.matmul(chosen, a, b))(a, b)
  return out.reshape(*batch, m, n)


def _conv_scheme(
    x: Array,
    w_shape: tuple[int, ...],
    positions: int,
    groups: int,
    scheme: str | None,
    platform: str,
) -> Scheme:
  if scheme:
    return named(scheme)
  where = platform or dispatch.platform_of(x)
  taps, (c, o) = math.prod(w_shape[:-2]), w_shape[-2:]
  return dispatch.for_conv(where, positions, taps, c, o // groups)


def _positions(x_shape, kernel, win: Window) -> int:
  return x_shape[0] * math.prod(convolution.space(x_shape, kernel, win))


def conv(
    x: Array,
    w: Array,
    strides: int | Sequence[int] = 1,
    padding: Padding = 'SAME',
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    scheme: str | None = None,
    platform: str = '',
) -> Array:
  """Convolution mod 2^64; see `ring.conv`."""
  _check_switch()
  ring_array(x, 'x', 3)
  ring_array(w, 'w', 3)
  win = convolution.window(x.shape, w.shape, strides, padding, dilation, groups)
  rows = _positions(x.shape, w.shape[:-2], win)
  chosen = _conv_scheme(x, w.shape, rows, groups, scheme, platform)
  return convolution.forward(chosen, x, w, win)


def conv_input_gradient(
    g: Array,
    w: Array,
    x_shape: tuple[int, ...],
    win: Window,
    scheme: str | None = None,
    platform: str = '',
) -> Array:
  """The transpose of the convolution in its input, mod 2^64.

  Args:
    g: int64 [batch, *positions, out].
    w: int64 [*kernel, channels / groups, out].
    x_shape: Shape of the convolution's input.
    win: Its window, from `conv.window`.
    scheme: As in `ring.conv`.
    platform: Likewise.

  Returns:
    int64 of shape `x_shape`.

  Raises:
    TypeError: if an operand is not int64.
    ValueError: if g's shape is not that of the convolution.
  """
  _check_switch()
  ring_array(g, 'g', 3)
  ring_array(w, 'w', 3)
  convolution.check_gradient(g, x_shape, w.shape, win)
  groups = win.groups
  swapped = (*w.shape[:-2], w.shape[-1] // groups, x_shape[-1])
  rows = math.prod(x_shape[:-1])
  chosen = _conv_scheme(g, swapped, rows, groups, scheme, platform)
  return convolution.input_gradient(chosen, g, w, x_shape, win)


def conv_weight_gradient(
    x: Array,
    g: Array,
    kernel: tuple[int, ...],
    win: Window,
    scheme: str | None = None,
    platform: str = '',
) -> Array:
  """The transpose of the convolution in its kernel, mod 2^64.

  Args:
    x: int64 [batch, *space, channels].
    g: int64 [batch, *positions, out].
    kernel: The kernel's extent along each spatial axis.
    win: Its window, from `conv.window`.
    scheme: As in `ring.conv`.
    platform: Likewise.

  Returns:
    int64 [*kernel, channels / groups, out].

  Raises:
    TypeError: if an operand is not int64.
    ValueError: if g's shape is not that of the convolution.
  """
  _check_switch()
  ring_array(x, 'x', 3)
  ring_array(g, 'g', 3)
  w_shape = *kernel, x.shape[-1] // win.groups, g.shape[-1]
  convolution.check_gradient(g, x.shape, w_shape, win)
  m = math.prod(kernel) * x.shape[-1] // win.groups
  k, n = math.prod(g.shape[:-1]), g.shape[-1] // win.groups
  where = platform or dispatch.platform_of(x, g)
  chosen = named(scheme) if scheme else dispatch.for_matmul(where, m, k, n)
  return convolution.weight_gradient(chosen, x, g, kernel, win)
