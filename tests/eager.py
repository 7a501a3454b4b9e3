"""Operations outside of `jit`, by NumPy: JAX compiles a program for each shape.

Half of the programs of the suite were one such operation, of a test's own
numbers, at 15 ms each. Here are those alone of which NumPy's result is XLA's to
the bit: what moves, compares, adds or multiplies. Sums, products of matrices,
functions and whatever is part of a larger program stay with XLA.
"""
import functools
from typing import Any
import weakref

import jax
import numpy as np

try:
  from jax._src import array, config, core, pjit
  from jax._src.interpreters import pxla
  from jax._src.sharding_impls import UNSPECIFIED
except ImportError:  # JAX's own affair, which may be elsewhere one day.
  pjit = None

_KINDS = [
    np.dtype(kind) for kind in 'bool f4 f8 i1 i2 i4 i8 u1 u2 u4 u8'.split()
]
_LARGE = 1_000_000


def _broadcast(x, shape, broadcast_dimensions, **_):
  ones = [1] * len(shape)
  for i, size in zip(broadcast_dimensions, x.shape):
    ones[i] = size
  return np.broadcast_to(x.reshape(ones), shape)


def _dynamic_slice(x, *starts, slice_sizes):
  at = [
      min(max(int(start), 0), size - length)
      for start, size, length in zip(starts, x.shape, slice_sizes)
  ]
  return x[tuple(slice(i, i + n) for i, n in zip(at, slice_sizes))]


def _slice(x, start_indices, limit_indices, strides):
  steps = strides or (1,) * x.ndim
  return x[tuple(map(slice, start_indices, limit_indices, steps))]


def _iota(dtype, shape, dimension, **_):
  ones = [1] * len(shape)
  ones[dimension] = shape[dimension]
  return np.broadcast_to(
      np.arange(shape[dimension]).astype(dtype).reshape(ones), shape
  )


def _rows(x, at, **_):
  return x[np.clip(at[..., 0], 0, len(x) - 1)]


def _takes_rows(eqn) -> bool:
  x, at = (var.aval.shape for var in eqn.invars)
  how, params = eqn.params['dimension_numbers'], eqn.params
  return (
      at[-1:] == (1,) and x[:1] > (0,) and how.start_index_map == (0,)
      and how.collapsed_slice_dims == (0,) and not how.operand_batching_dims
      and how.offset_dims == tuple(range(len(at) - 1, len(at) + len(x) - 2))
      and params['slice_sizes'] == (1, *x[1:])
      and params['mode'].name in ('CLIP', 'PROMISE_IN_BOUNDS')
  )


def _reduced(ufunc):
  return lambda x, axes, **_: ufunc.reduce(x, axis=tuple(axes), dtype=x.dtype)


def _plain(ufunc):
  return lambda *args, **_: ufunc(*args)


_BY_NAME = dict(
    add=_plain(np.add), sub=_plain(np.subtract), mul=_plain(np.multiply),
    neg=_plain(np.negative), abs=_plain(np.abs), square=_plain(np.square),
    integer_pow=_plain(np.square),
    is_finite=_plain(np.isfinite),
    eq=_plain(np.equal), ne=_plain(np.not_equal), lt=_plain(np.less),
    le=_plain(np.less_equal), gt=_plain(np.greater),
    ge=_plain(np.greater_equal),
    **{
        'and': _plain(np.bitwise_and), 'or': _plain(np.bitwise_or),
        'xor': _plain(np.bitwise_xor), 'not': _plain(np.invert),
    },
    select_n=lambda which, no, yes: np.where(which, yes, no),
    reduce_or=_reduced(np.logical_or), reduce_and=_reduced(np.logical_and),
    convert_element_type=lambda x, new_dtype, **_: x.astype(new_dtype),
    broadcast_in_dim=_broadcast, dynamic_slice=_dynamic_slice, slice=_slice,
    iota=_iota, copy=lambda x: x, copy_p=lambda x: x,
    reshape=lambda x, new_sizes, **_: x.reshape(new_sizes),
    squeeze=lambda x, dimensions: x.squeeze(dimensions),
    transpose=lambda x, permutation: x.transpose(permutation),
    rev=lambda x, dimensions: np.flip(x, dimensions),
    concatenate=lambda *xs, dimension: np.concatenate(xs, dimension),
    stack=lambda *xs, axis: np.stack(xs, axis),
    unstack=lambda x, axis: [*np.moveaxis(x, axis, 0)],
    tile=lambda x, reps: np.tile(x, reps), gather=_rows,
    reduce_sum=_reduced(np.add), reduce_max=_reduced(np.maximum),
    reduce_min=_reduced(np.minimum),
    argmax=lambda x, axes, index_dtype: x.argmax(*axes).astype(index_dtype),
)


def _is_float(var) -> bool:
  return var.aval.dtype.kind == 'f'


_ROUND = 'add', 'sub', 'mul', 'square', 'integer_pow'
# Where NumPy's result is another one in general.
_ONLY_IF = dict(
    integer_pow=lambda eqn: eqn.params['y'] == 2,
    select_n=lambda eqn: len(eqn.invars) == 3 and (
        eqn.invars[0].aval.dtype == bool
    ),
    reduce_or=lambda eqn: eqn.invars[0].aval.dtype == bool,
    reduce_and=lambda eqn: eqn.invars[0].aval.dtype == bool,
    # Of floats the order counts, or which zero it is.
    **{
        f'reduce_{name}': lambda eqn: not _is_float(eqn.invars[0])
        for name in ('sum', 'max', 'min')
    },
    argmax=lambda eqn: len(eqn.params['axes']) == 1,
    gather=_takes_rows,
    # Beyond an integer's range XLA takes the nearest, NumPy anything.
    convert_element_type=lambda eqn: not _is_float(eqn.invars[0]) or (
        eqn.params['new_dtype'].kind in 'fb'
    ),
    reshape=lambda eqn: eqn.params['dimensions'] is None,
)


def _small(var) -> bool:
  aval = var.aval
  return (
      type(aval) is core.ShapedArray and aval.dtype in _KINDS
      and all(type(n) is int for n in aval.shape) and aval.size <= _LARGE
  )


def _equations(jaxpr):
  for eqn in jaxpr.eqns:
    if eqn.primitive.name == 'jit' and not eqn.params['jaxpr'].consts:
      yield from _equations(eqn.params['jaxpr'].jaxpr)
    else:
      yield eqn


def _known(eqn) -> bool:
  name = eqn.primitive.name
  return name in _BY_NAME and all(map(_small, eqn.outvars)) and (
      name not in _ONLY_IF or _ONLY_IF[name](eqn)
  )


def _can(jaxpr) -> bool:
  """Whether all of a program is NumPy's to compute."""
  found = list(_equations(jaxpr))
  rounded = [
      eqn for eqn in found
      if eqn.primitive.name in _ROUND and _is_float(eqn.outvars[0])
  ]
  # XLA may round two operations once, or do them in another order.
  return len(rounded) <= 1 and not jaxpr.effects and (
      all(map(_small, jaxpr.invars)) and all(map(_known, found))
  )


def _computed(jaxpr, args) -> list[Any]:
  known = dict(zip(jaxpr.invars, args))
  read = lambda x: np.asarray(
      x.val, x.aval.dtype
  ) if isinstance(x, core.Literal) else known[x]
  for eqn in jaxpr.eqns:
    args = [read(x) for x in eqn.invars]
    if eqn.primitive.name == 'jit':
      outs = _computed(eqn.params['jaxpr'].jaxpr, args)
    else:
      outs = _BY_NAME[eqn.primitive.name](*args, **eqn.params)
      outs = outs if eqn.primitive.multiple_results else [outs]
    known.update(zip(eqn.outvars, outs))
  return [read(x) for x in jaxpr.outvars]


def _is_here(x) -> bool:
  """Numbers on no device in particular."""
  if isinstance(x, array.ArrayImpl):
    return not x._committed and x.is_fully_addressable and (
        len(x.sharding.device_set) == 1
    )
  return isinstance(x, np.ndarray | np.generic | bool | int | float)


@functools.cache
def _first():
  return jax.local_devices()[0]


def _on_device(x, aval):
  # Its own: what is a view of an argument would go with it.
  x = np.array(x, order='C')
  assert (x.shape, x.dtype) == (aval.shape, aval.dtype)
  device = config.default_device.value or _first()
  # As it is, whatever mode for 64 bits the caller is in.
  return pxla.batched_device_put(
      aval, jax.sharding.SingleDeviceSharding(device), [x], [device],
      committed=False, enable_x64=True,
  )


def _as_ever(args, how) -> bool:
  """Whether a call asks for no more than its numbers."""
  return (
      all(map(_is_here, args)) and how['ctx_mesh'].empty
      and not any(how['donated_invars']) and not how['compiler_options_kvs']
      and not any((*how['in_layouts'], *how['out_layouts']))
      and all(s is UNSPECIFIED for s in how['in_shardings'])
      and all(s is UNSPECIFIED for s in how['out_shardings'])
      and not config.debug_nans.value and not config.debug_infs.value
      # What a guard is to refuse, it has to see.
      and config.transfer_guard_host_to_device.value in (None, 'allow')
      and config.transfer_guard_device_to_host.value in (None, 'allow')
  )


def by_numpy() -> None:
  """From now on, in this process; an accelerator is to do all itself."""
  if not hasattr(pjit, '_pjit_call_impl_python') or (
      _first().platform != 'cpu'
  ):
    return
  compiled, known = pjit._pjit_call_impl_python, weakref.WeakKeyDictionary()

  def call(*args, jaxpr, **how):
    inner = jaxpr.jaxpr
    if inner not in known:
      known[inner] = not jaxpr.consts and _can(inner)
    if not known[inner] or not _as_ever(args, how):
      return compiled(*args, jaxpr=jaxpr, **how)
    args = [np.asarray(x, v.aval.dtype) for x, v in zip(args, inner.invars)]
    with np.errstate(all='ignore'):
      outs = _computed(inner, args)
    outs = [_on_device(x, v.aval) for x, v in zip(outs, inner.outvars)]
    return outs, None, None, []

  pjit._pjit_call_impl_python = call
