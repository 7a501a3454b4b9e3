"""Makes `Net`s of NNX modules.

An NNX module holds its weights and its random state, where a `Net` is given
both. So the module is made anew in every call and filled with the weights; XLA
does not compile the first weights that nothing needs.
"""
from collections.abc import Callable
from functools import partial
import inspect
from typing import TYPE_CHECKING, Any

import jax

from vfljax import check
from vfljax.nets.modules import told
from vfljax.types import Array, Key, Net, Params

if TYPE_CHECKING:  # Else 0.4 s for who uses no such module.
  from flax import nnx as flax_nnx


def nnx(
    make: 'Callable[[tuple[int, ...], flax_nnx.Rngs], flax_nnx.Module]',
    trains: bool = True,
) -> Net:
  """Wraps an NNX module as a `Net`.

  The parameters are {'params', 'batch_stats'} if the module has statistics
  (`nnx.BatchNorm`), otherwise the bare weights. What it draws in training comes
  from the round's key, whatever `nnx.Rngs` it was made with.

  Args:
    make: (shape, rngs) -> module, where `shape` is that of one sample: (15,)
      for a party with 15 columns. The module is called with x [batch, *shape].
    trains: False for a module that computes the same in training as at
      inference: without dropout and BatchNorm. Otherwise `module.train()` sets
      these for training, also where the module fixed them
      (`deterministic=True`, `use_running_average=True`), and an argument
      `train`, `training` or `deterministic` of its `__call__` is set.

  Raises:
    ValueError: if `make` is a module, or does not take (shape, rngs); on
      `init`, if it makes something else, or a module with other variables than
      weights, statistics and random state.
  """
  if not callable(make) or _is_module(make) or not _takes_two(make):
    got = getattr(make, '__name__', check.kind(make))
    raise ValueError(
        'nnx: give a function (shape, rngs) -> module, as in nets.nnx(lambda '
        f'shape, rngs: Own(shape[-1], 8, rngs=rngs)); got {got}.'
    )

  def init(key: Key, x: Any) -> Params:
    module = _made(make, key, x)
    _check(module)
    weights, stats = _state(module)
    return dict(params=weights, batch_stats=stats) if stats else weights

  def apply(params: Params, x: Any) -> Array:
    key = jax.random.key(0)  # Nothing is drawn.
    module = _set(_filled(_made(make, key, x), params), False)
    return module(x, **told(type(module), False))

  def train(params: Params, key: Key, x: Any) -> tuple[Array, Any]:
    module = _set(_filled(_made(make, key, x), params), True)
    _seed(module, key)
    y = module(x, **told(type(module), True))
    return y, _state(module)[1]

  def absorb(params: Params, stats: Any) -> Params:
    return dict(params, batch_stats=stats) if stats else params

  return Net(init, apply, train if trains else None, absorb)


def _takes_two(make: Callable[..., Any]) -> bool:
  """Whether it can be called as (shape, rngs), as far as Python can tell."""
  # The class of NNX's modules takes whatever their own `__init__` refuses.
  own = partial(make.__init__, None) if isinstance(make, type) else make
  try:
    inspect.signature(own).bind((), None)
  except TypeError:
    return False
  except ValueError:  # Functions of C may not tell.
    pass
  return True


def _made(make: Callable[..., Any], key: Key, x: Any) -> Any:
  from flax import nnx as flax_nnx
  if not hasattr(x, 'shape'):
    raise ValueError(
        'nnx: the function gets the shape of one sample, so the features must '
        f'be one array; got {check.kind(x)} of them.'
    )
  module = make(x.shape[1:], flax_nnx.Rngs(key))
  if not _is_module(module):
    raise ValueError(
        'nnx: the function must return an nnx.Module; it returned '
        f'{check.kind(module)}.'
    )
  return module


def _set(module: Any, trains: bool) -> Any:
  """The module, told whether it trains."""
  tell = module.train if trains else module.eval
  tell()
  return module


def _seed(module: Any, key: Key) -> None:
  """Has all its random draws come from `key`.

  A module can be made with random numbers of its own, such as `nnx.Rngs(0)`,
  and would then drop the same units in every round.
  """
  from flax import nnx as flax_nnx
  streams, structure = jax.tree.flatten(
      flax_nnx.state(module, flax_nnx.RngKey)
  )
  fresh = [
      jax.random.split(jax.random.fold_in(key, i), stream.shape)
      for i, stream in enumerate(streams)
  ]
  flax_nnx.update(module, jax.tree.unflatten(structure, fresh))


def _is_module(value: Any) -> bool:
  from flax import nnx as flax_nnx
  return isinstance(value, flax_nnx.Module)


def _state(module: Any) -> tuple[dict, dict]:
  """(weights, statistics), nested dicts of arrays."""
  from flax import nnx as flax_nnx
  weights, stats = (
      flax_nnx.to_pure_dict(flax_nnx.state(module, kind))
      for kind in (flax_nnx.Param, flax_nnx.BatchStat)
  )
  return weights, stats


def _filled(module: Any, params: Params) -> Any:
  from flax import nnx as flax_nnx
  weights, stats = params, {}
  # Measured, not learned: no gradient moves them.
  if params.keys() == {'params', 'batch_stats'}:
    weights = params['params']
    stats = jax.lax.stop_gradient(params['batch_stats'])
  for kind, own in ((flax_nnx.Param, weights), (flax_nnx.BatchStat, stats)):
    state = flax_nnx.state(module, kind)
    flax_nnx.replace_by_pure_dict(state, own)
    flax_nnx.update(module, state)
  return module


def _check(module: Any) -> None:
  """Refuses variables that a round could not carry to the next one."""
  from flax import nnx as flax_nnx
  known = flax_nnx.Param, flax_nnx.BatchStat, flax_nnx.RngState
  found = flax_nnx.state(module, flax_nnx.Not(flax_nnx.Any(*known)))
  kinds = {
      type(variable).__name__ for variable in jax.tree.leaves(
          found, is_leaf=lambda v: isinstance(v, flax_nnx.Variable)
      )
  }
  if kinds:
    raise ValueError(
        f'nnx: {type(module).__name__} keeps {", ".join(sorted(kinds))}; a Net '
        'carries nnx.Param and, from round to round, nnx.BatchStat. Numbers '
        'that stay can be a tuple in a field of the module, or an array that '
        'its class finds outside of it: NNX takes an array in a field for '
        'state.'
    )
