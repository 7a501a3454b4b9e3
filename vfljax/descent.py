"""A step of an optimizer, also in a program that forbids implicit casts.

Optax mixes integers and floats (Adam's `decay ** count`, schedules), which JAX
refuses under `jax_numpy_dtype_promotion='strict'`. That rule is about a user's
own code: around Optax's arithmetic, and nothing else, the usual one holds.
"""
from typing import Any

import jax
import jax.numpy as jnp
import optax

from vfljax import fusing
from vfljax.types import Array, Params


def step(
    tx: optax.GradientTransformation, gradients: Any, opt: Any, params: Params
) -> tuple[Any, Any]:
  """The parameters and the optimizer's state after a step.

  On a GPU all parameters of one shape are one kernel's, all parties' together.
  """
  if jax.tree.leaves(opt):  # Else each gradient is read but once.
    gradients = jax.tree.map(_apart, gradients)
  gradients, opt = fusing.joined((gradients, opt))
  moves, opt = moves_of(tx, gradients, opt, params)
  return moved(params, moves), opt


def _apart(gradient: Array) -> Array:
  """Set apart, but for a single row.

  To compute a row twice takes no longer than to read it; and FedPass's
  passports are rows that do not learn, whose zeros would be written out.
  """
  return gradient if gradient.shape[:1] == (1,) else fusing.apart(gradient)


def moves_of(
    tx: optax.GradientTransformation, gradients: Any, opt: Any, params: Params
) -> tuple[Any, Any]:
  """What the optimizer adds to the parameters, and its next state.

  Raises:
    ValueError: if it cannot step by gradients alone, or not these parameters.
  """
  try:
    with jax.numpy_dtype_promotion('standard'):
      return tx.update(gradients, opt, params)
  except jax.errors.JAXTypeError:
    raise
  except (AttributeError, TypeError) as error:
    raise ValueError(_why_not(gradients, error)) from error


def _why_not(gradients: Any, error: Exception) -> str:
  """What to do about an optimizer that failed; Optax's words do not say."""
  for path, slope in jax.tree.leaves_with_path(gradients):
    if slope.dtype == jax.dtypes.float0:
      return (
          f'The weight {jax.tree_util.keystr(path)} is no float, and has no '
          'gradient: what is not learned, such as a table of indices, belongs '
          'into `apply`, not into what `init` returns.'
      )
  return (
      'An optimizer is given gradients, its state and weights, and no loss, '
      'which passive parties do not know: line searches, reduce_on_plateau and '
      'polyak_sgd do not fit, nor does lookahead, which wants weights in '
      f'pairs. Its update failed: {error}.'
  )


def moved(params: Params, moves: Any) -> Any:
  """The parameters with what an optimizer adds to them."""
  with jax.numpy_dtype_promotion('standard'):
    return optax.apply_updates(params, moves)


def least(distances: Array) -> Array:
  """Which of several searches, [n], has come nearest; none that diverged.

  `argmin` takes NaN for the least. If all have diverged it is the first.
  """
  return jnp.where(jnp.isnan(distances), jnp.inf, distances).argmin()
