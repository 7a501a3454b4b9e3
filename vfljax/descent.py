"""A step of an optimizer, also in a program that forbids implicit casts.

Optax mixes integers and floats (Adam's `decay ** count`, schedules), which JAX
refuses under `jax_numpy_dtype_promotion='strict'`. That setting is about a
user's own code: for Optax's arithmetic alone it is set to the default.
"""
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from vfljax import fusing
from vfljax.check import Misfit
from vfljax.types import Array, Params


# Names of passports, which stand beside weights and are no weights: they have
# no gradient, but a weight decay would shrink them. They are below one of
# `BELOW`, where a defense's are; a user's own network may have such names, too.
FIXED = frozenset({'scale_key', 'bias_key'})
BELOW = frozenset({'defense', 'passports'})


def step(
    tx: optax.GradientTransformation, gradients: Any, opt: Any, params: Params
) -> tuple[Any, Any]:
  """The parameters and the optimizer's state after a step.

  On a GPU one kernel updates all parameters of one shape, of all parties.
  """
  if jax.tree.leaves(opt):  # Without a state each gradient is read only once.
    gradients = jax.tree.map(_apart, gradients)
  gradients, opt = fusing.joined((gradients, opt))
  moves, opt = moves_of(tx, gradients, opt, params)
  return moved(params, moves), opt


def masters(params: Params) -> tuple[Params, Callable[[Params], Params]]:
  """Weights as an optimizer should keep them, and the way back.

  Half precision rounds most steps away, and Adam's epsilon is 0 in float16, so
  that a weight without a gradient becomes NaN.

  Returns:
    The weights, those in half precision as float32; and the function that
    gives such weights their own types again. Without any in half precision,
    the same object and the identity.
  """
  half = lambda x: jnp.issubdtype(x.dtype, jnp.floating) and (
      x.dtype.itemsize < 4
  )
  if not any(map(half, jax.tree.leaves(params))):
    return params, lambda weights: weights
  types = jax.tree.map(lambda x: x.dtype, params)
  wide = jax.tree.map(
      lambda x: x.astype(jnp.float32) if half(x) else x, params
  )
  return wide, lambda weights: jax.tree.map(
      lambda x, dtype: x.astype(dtype), weights, types
  )


def _apart(gradient: Array) -> Array:
  """`fusing.apart`, except for a single row.

  Computing a row twice takes no longer than reading it; and FedPass's passports
  are untrained rows, whose zero gradients would be written out.
  """
  return gradient if gradient.shape[:1] == (1,) else fusing.apart(gradient)


def moves_of(
    tx: optax.GradientTransformation, gradients: Any, opt: Any, params: Params
) -> tuple[Any, Any]:
  """What the optimizer adds to the parameters, and its next state.

  Raises:
    ValueError: if it needs more than gradients and weights, or another state,
      or a weight is no float.
  """
  gradients = jax.tree.map(_uphill, gradients)
  try:
    with jax.numpy_dtype_promotion('standard'):
      return tx.update(gradients, opt, params)
  except jax.errors.JAXTypeError:
    raise
  except (AttributeError, TypeError) as error:
    check_weights(params)  # Of a head, say, that no federation has seen.
    if _is_anothers(tx, opt, params):
      raise ValueError(
          "The optimizer's state is that of another optimizer. For a new one "
          'make a new state, tx.init(params) as PartyState.opt.'
      ) from error
    raise ValueError(_why_not(error)) from error


def check_weights(weights: Any) -> None:
  """Raises ValueError for a weight that is no float, and has no gradient."""
  for path, weight in jax.tree.leaves_with_path(weights):
    if not jnp.issubdtype(jnp.result_type(weight), jnp.inexact):
      name = jax.tree_util.keystr(path) or 'array'
      raise Misfit(
          f'The weight {name} is no float, and has no gradient: an array that '
          'is not trained, such as a table of indices, belongs into `apply`, '
          'not into what `init` returns.'
      )


def _uphill(gradient: Array) -> Array:
  """JAX's gradient of a complex weight is the conjugate of the way up."""
  return gradient.conj() if jnp.iscomplexobj(gradient) else gradient


def _is_anothers(
    tx: optax.GradientTransformation, opt: Any, params: Params
) -> bool:
  """Whether an optimizer would not have made the state that it was given."""
  made = jax.eval_shape(tx.init, params)
  return jax.tree.structure(made) != jax.tree.structure(opt)


def _why_not(error: Exception) -> str:
  """What to do about an optimizer that failed, which Optax's error lacks."""
  return (
      'An optimizer gets gradients, its state and weights, but no loss, '
      'which passive parties do not know: line searches, reduce_on_plateau and '
      'polyak_sgd do not fit, nor does lookahead, which wants weights in '
      f'pairs. Its update failed: {error}.'
  )


def moved(params: Params, moves: Any) -> Any:
  """The parameters after adding an optimizer's updates.

  Passports and BatchNorm's statistics stay: no gradient moves them, but a
  weight decay would, and no round measures statistics that a network fixes.
  """
  with jax.numpy_dtype_promotion('standard'):
    new = optax.apply_updates(params, moves)
  new = jax.tree.map_with_path(
      lambda path, old, new: old if _is_fixed(path) else new, params, new
  )
  return jax.tree.map(_with_statistics, params, new, is_leaf=_has_statistics)


def _has_statistics(tree: Any) -> bool:
  """Whether it is what `nets.linen` and `nets.nnx` make of a BatchNorm."""
  return isinstance(tree, dict) and tree.keys() == {'params', 'batch_stats'}


def _with_statistics(old: Any, new: Any) -> Any:
  """`new`, but for the statistics of `old` if it has some."""
  if not _has_statistics(old):
    return new
  return new | dict(batch_stats=old['batch_stats'])


def _is_fixed(path: tuple[Any, ...]) -> bool:
  names = [getattr(key, 'key', None) for key in path]
  return bool(names) and names[-1] in FIXED and not BELOW.isdisjoint(names)


def least(distances: Array) -> Array:
  """The index of the smallest of `distances` [n], NaN (divergence) left out.

  `argmin` would take NaN for the smallest. If all are NaN, it is the first.
  """
  return jnp.where(jnp.isnan(distances), jnp.inf, distances).argmin()
