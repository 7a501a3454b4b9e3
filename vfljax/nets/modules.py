"""Makes `Net`s of Linen modules."""
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
import inspect
from typing import Any

from flax import linen as nn
import jax
import jax.numpy as jnp

from vfljax.check import Misfit
from vfljax.nets.once import once
from vfljax.types import VFL, Array, Key, Net, Params

# Arguments that tell a module whether it trains, with their value if it does.
MODES = dict(train=True, training=True, deterministic=False)
KEPT = {'params', 'batch_stats'}
# For each `counting_rows` around a network: which of the rows count.
_REAL: ContextVar[tuple[Array, ...]] = ContextVar('real', default=())


def linen(module: nn.Module, trains: bool = True) -> Net:
  """Wraps a Linen module as a `Net`, which is traced once (`once`).

  So what its `__call__` reads besides its fields, its arguments and `crossing`,
  such as a global that changes, is read once for each shape of its input.

  If the module's `__call__` takes `train`, `training` or `deterministic`, it is
  set, and in training the module gets a 'dropout' key. With a 'batch_stats'
  collection (BatchNorm) the parameters are {'params', 'batch_stats'}, otherwise
  the bare weights.

  Args:
    module: On an input x [batch, ...].
    trains: False for a module that, with its settings, computes the same in
      training as at inference.

  Raises:
    ValueError: if it is no Linen module or needs more arguments than its input;
      on `init`, if it keeps other collections.
  """
  _check(module)

  def train(params: Params, key: Key, x: Any) -> tuple[Array, Any]:
    return _train(module, params, key, x, _REAL.get())

  def absorb(params: Params, stats: Any) -> Params:
    return dict(params, batch_stats=stats) if stats else params

  return Net(
      partial(_init, module), partial(_apply, module),
      train if trains and _mode(module, True) else None, absorb,
  )


@once
def _init(module: nn.Module, key: Key, x: Any) -> Params:
  variables = module.init(key, x, **_mode(module, False))
  if others := sorted({*variables} - KEPT):
    raise ValueError(
        f'linen: {type(module).__name__} keeps {", ".join(others)}; a Net '
        "carries its 'params' and, from round to round, 'batch_stats': "
        "self.variable('batch_stats', ...) for what is measured in training, "
        'a field of the module for numbers that stay.'
    )
  if 'batch_stats' in variables:
    return variables
  return variables.get('params', {})  # A module may have no weights.


@once
def _apply(module: nn.Module, params: Params, x: Any) -> Array:
  return _alone(
      module, module.apply(_variables(params), x, **_mode(module, False))
  )


def _alone(module: nn.Module, y: Any) -> Array:
  if isinstance(y, tuple):
    raise Misfit(
        f'linen: {type(module).__name__} returns a tuple; a Net returns one '
        'array, the embedding. Wrap it in a module that returns that alone.'
    )
  return y


@contextmanager
def _counted(real: tuple[Array, ...]) -> Iterator[None]:
  """Has `_count` read these."""
  before = _REAL.set(real)
  try:
    yield
  finally:
    _REAL.reset(before)


def _count(following, args, kwargs, context):
  """Leaves rows that are not `_REAL` out of a BatchNorm's statistics."""
  ours = isinstance(context.module, nn.BatchNorm)
  if ours and context.method_name == '__call__':
    for real in _REAL.get():
      mask = _mask(context.module, real, *args, **kwargs)
      kwargs = dict(kwargs, mask=mask)
  return following(*args, **kwargs)


@partial(once, despite=_count)
def _train(
    module: nn.Module, params: Params, key: Key, x: Any,
    real: tuple[Array, ...],
) -> tuple[Array, Any]:
  with _counted(real):  # `_count` must find this trace's own arrays.
    y, changed = module.apply(
        _variables(params), x, rngs={'dropout': key}, mutable=['batch_stats'],
        **_mode(module, True),
    )
  return _alone(module, y), changed.get('batch_stats', ())


def _parameters(module: nn.Module) -> dict[str, inspect.Parameter]:
  return dict(inspect.signature(type(module).__call__).parameters)


def _mode(module: nn.Module, trains: bool) -> dict[str, Any]:
  """The arguments that tell the module whether it trains, if it has any."""
  return told(type(module), trains)


def told(kind: type, trains: bool) -> dict[str, Any]:
  """`MODES` that the `__call__` of a class of modules takes, all of them."""
  takes = inspect.signature(kind.__call__).parameters
  return {name: MODES[name] == trains for name in MODES if name in takes}


def _check(module: Any) -> None:
  """Raises ValueError for what cannot be a `Net`, before Flax fails on it."""
  if not isinstance(module, nn.Module):
    raise ValueError(
        f'linen: it must be a Linen module; got {module!r}. Make an instance '
        'of a class first; an NNX module is made a Net by nets.nnx.'
    )
  more = [*_parameters(module).items()][2:]  # After the module and its input.
  needed = [
      name for name, p in more
      if p.default is p.empty and name not in MODES
      and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
  ]
  if needed:
    raise ValueError(
        f'linen: {type(module).__name__} needs {", ".join(needed)}; a Net gets '
        f'an input, and is told whether it trains as one of {", ".join(MODES)}.'
        ' Give the others a default.'
    )


def counting(vfl: VFL, real: Array) -> VFL:
  """The networks, whose BatchNorm leaves padding out of its statistics.

  Neither the statistics that normalize a batch nor the running ones then
  include padding. If all rows are padding, all are included, as in
  `crossing.mask`.

  Args:
    vfl: The networks.
    real: bool [batch], false where a row is padding. Where a network folds an
      axis into the rows, [batch, n, ...] to [batch * n, ...], each stands for
      n rows.

  Raises:
    ValueError: in training, where the number of rows that BatchNorm sees is not
      a multiple of the batch.
  """
  bottoms = tuple(net and counting_rows(net, real) for net in vfl.bottoms)
  return vfl._replace(bottoms=bottoms, top=counting_rows(vfl.top, real))


def counting_rows(net: Net, real: Array) -> Net:
  """`counting` for one network."""
  if net.train is None:
    return net
  real = real | ~real.any()  # Without a row the statistics would be NaN.

  def train(params, key, x):
    with _counted((*_REAL.get(), real)), nn.intercept_methods(_count):
      return net.run(params, key, x)

  return net._replace(train=train)


def _mask(
    norm: nn.BatchNorm, real: Array, x: Array, use_running_average=None,
    mask: Array | None = None, **others: Any,
) -> Array | None:
  """The `mask` argument for a BatchNorm that is called with these arguments.

  Args:
    mask: The module's own mask; the result is the conjunction of both.
  """
  del others  # Further arguments of a subclass.
  if norm.use_running_average or use_running_average:
    return mask  # Nothing is measured.
  each, rest = divmod(len(x), len(real))
  if rest or not each:
    name = '/'.join(norm.path) or type(norm).__name__
    raise ValueError(
        f'linen: {name} (BatchNorm) sees {len(x)} rows in a batch of '
        f'{len(real)}, so it is unknown which are padding. Fold other '
        'axes into the rows after the batch, [batch, n, ...] to [batch * n, '
        '...], or normalize [batch, n, ...] as it is.'
    )
  rows = real if each == 1 else jnp.repeat(real, each)
  rows = rows.reshape(-1, *[1] * (x.ndim - 1))
  return rows if mask is None else rows & jnp.asarray(mask, bool)


def _variables(params: Params) -> dict:
  if 'batch_stats' not in params:
    return {'params': params}
  # Statistics are measured, not learned: no gradient moves them.
  fixed = jax.lax.stop_gradient(params['batch_stats'])
  return dict(params, batch_stats=fixed)
