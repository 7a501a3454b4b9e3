"""Repeats of attacks on stolen weights, in programs that all families share.

Where a defense hides layers, an attacker reads other weights in each repeat:
leaves [cells, repeats, ...]. Else all repeats read the same, [cells, 1, ...].
A program takes one set of weights, and the numbers of the repeats that read it;
it returns zeros for the others. So it is the same for both: one is played in as
many calls as there are repeats, the other in a single one.
"""
from collections.abc import Callable, Iterable
import functools
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import shards
from vfljax.types import Array, Key

_FIRST, _COUNT = 'first', 'count'


def shapes(weights: Any, cells: int, repeats: int) -> dict[str, Any]:
  """Shapes of what a program takes beside seeds; `weights` are all repeats'."""
  one = lambda s: (cells, 1, *s.shape[2:]) if repeats > 1 else (
      cells, *s.shape[1:]
  )
  whole = jax.ShapeDtypeStruct((cells,), np.int32)
  found: dict[str, Any] = dict(weights=jax.tree.map(
      lambda s: jax.ShapeDtypeStruct(one(s), s.dtype), weights
  ))
  if repeats > 1:
    found['played'] = {_FIRST: whole, _COUNT: whole}
  return found


def arguments(weights: Any, cells: int, repeats: int) -> list[dict[str, Any]]:
  """The same for each call, with values.

  Args:
    weights: Leaves [trainings, 1 or repeats, ...].
    cells: The number of those trainings.
    repeats: How often each attack is repeated.
  """
  if repeats == 1:
    return [dict(weights=weights)]
  weights = jax.tree.map(np.asarray, weights)
  sets = jax.tree.leaves(weights)[0].shape[1]
  count = np.full(cells, repeats if sets == 1 else 1, np.int32)
  return [
      dict(
          weights=jax.tree.map(lambda x, i=i: x[:, i : i + 1], weights),
          played={_FIRST: np.full(cells, i, np.int32), _COUNT: count},
      ) for i in range(sets)
  ]


def over_repeats(
    one: Callable[[Key, Any], Any], keys: Array, stolen: Any,
    played: dict[str, Array] | None,
) -> Any:
  """`one` for the repeats of a cell.

  Args:
    one: (key, weights) -> metrics.
    keys: One for each repeat, [repeats].
    stolen: Weights, leaves [1 or repeats, ...].
    played: The first repeat to be played and the number of them; all if `None`.

  Returns:
    The metrics' means; with `played` each repeat's, [repeats, ...], of which
    those not played are 0.
  """
  def of(i, key):
    read = jax.tree.map(lambda x: x[0] if len(x) == 1 else x[i], stolen)
    return one(key, read)

  if played is None:
    each = jax.lax.map(lambda x: of(*x), (jnp.arange(len(keys)), keys))
    return jax.tree.map(lambda x: x.mean(0), each)
  rows = jax.eval_shape(of, 0, keys[0])
  zeros = shards.own(keys[0], jax.tree.map(
      lambda s: jnp.zeros((len(keys), *s.shape), s.dtype), rows
  ))

  def attempt(i, found):
    return jax.tree.map(
        lambda all_, x: all_.at[i].set(x), found, of(i, keys[i])
    )

  first = played[_FIRST]
  return jax.lax.fori_loop(first, first + played[_COUNT], attempt, zeros)


def mean(found: Iterable[Any], repeats: int) -> Any:
  """The mean over repeats of what the calls of `arguments` return."""
  if repeats == 1:
    found, = found
    return found
  # The sum is exact: where one is not 0, all others are.
  return _mean(functools.reduce(partial(jax.tree.map, np.add), found))


@jax.jit
def _mean(each: Any) -> Any:
  return jax.tree.map(lambda x: x.mean(1), each)
