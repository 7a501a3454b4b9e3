"""Which layers VMask hides: Algorithm 2, on plain arrays."""
from collections.abc import Callable
from typing import NamedTuple

import jax
from jax import lax
from jax.core import Tracer
import jax.numpy as jnp
import numpy as np

from vfljax import check, shards
from vfljax.types import Array, Key

SELECTIONS = 'critical', 'accumulative', 'random'


def choose(
    key: Key, selection: Array | str, norms: Array, masked: Array,
    candidates: Array, budget, leak: Callable[[Key, Array], Array],
    least: int = 0,
) -> tuple[Array, Array]:
  """The layers to hide in the next epoch: Algorithm 2.

  Args:
    key: Seeds the simulated attacks and the choice of 'random'.
    selection: One of `SELECTIONS`, see `vmask`, or its index there, which may
      be traced.
    norms: [layers] by which layers are ranked, the largest first.
    masked: bool [layers], the layers hidden now.
    candidates: bool [layers], the layers that may be hidden.
    budget: Score that an attacker may reach; may be traced.
    leak: (key, hidden) -> score of the simulated attacker, a scalar. NaN counts
      as over the budget.
    least: Number of layers to hide at least, those of the largest norms.

  Returns:
    bool [layers], the layers to hide, and the simulated attacker's score
    against them. For 'random' it is the score against as many critical layers.

  Raises:
    ValueError: if the selection is none of these; another index would be taken
      for 'critical'.
  """
  if not isinstance(selection, Tracer):
    known = (*SELECTIONS, *range(len(SELECTIONS)))
    check.one_of('selection', np.asarray(selection).item(), known)
  if isinstance(selection, str):
    selection = jnp.asarray(SELECTIONS.index(selection))
  _, accumulative, random = (selection == i for i in range(len(SELECTIONS)))
  k_greedy, k_random = jax.random.split(key)
  begin = masked & accumulative
  if least:
    first = _top(jnp.where(candidates, norms, -jnp.inf), least)
    begin = begin | (first & candidates)
  chosen, leaked = greedy(k_greedy, norms, begin, candidates, budget, leak)
  lot = jax.random.uniform(k_random, norms.shape, jnp.float32)
  others = _top(jnp.where(candidates, lot, -1.0), chosen.sum())
  return jnp.where(random, others, chosen), leaked


class _Search(NamedTuple):
  """Where `greedy` is.

  Attributes:
    hidden: bool [layers], the set to attack next; if `done`, the result.
    leaked: The attacker's score against the set attacked last.
    tries: Number of sets attacked, a scalar.
    done: bool, a scalar.
  """

  hidden: Array
  leaked: Array
  tries: Array
  done: Array


def greedy(
    key: Key, norms: Array, begin: Array, candidates: Array, budget,
    leak: Callable[[Key, Array], Array],
) -> tuple[Array, Array]:
  """Hides one more layer after another until the leakage is in the budget.

  The next is the candidate of the largest norm. Without a candidate left the
  search ends above the budget.

  Args:
    key, norms, candidates, budget, leak: As in `choose`.
    begin: bool [layers], what is hidden at first.

  Returns:
    As `choose`.
  """
  def attack(search: _Search) -> _Search:
    """Attacks the set; hides another layer if the set is not the result."""
    leaked = leak(jax.random.fold_in(key, search.tries), search.hidden)
    left = candidates & ~search.hidden
    more = ~(leaked <= budget) & left.any()  # NaN is not within the budget.
    largest = jnp.where(left, norms, -jnp.inf).argmax()
    wider = search.hidden.at[largest].set(True)
    hidden = jnp.where(more, wider, search.hidden)
    return _Search(hidden, leaked, search.tries + 1, done=~more)

  score = jax.eval_shape(leak, key, begin)
  start = shards.own(key, _Search(
      begin, leaked=jnp.zeros((), score.dtype), tries=jnp.zeros((), jnp.int32),
      done=jnp.array(False),
  ))
  found = lax.while_loop(lambda search: ~search.done, attack, start)
  return found.hidden, found.leaked


def _top(values: Array, count: Array | int) -> Array:
  """bool [layers]: the `count` largest of `values`; `count` may be traced."""
  rank = jnp.argsort(jnp.argsort(-values))  # 0 for the largest.
  return rank < count
