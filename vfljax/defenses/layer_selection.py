"""Which layers VMask hides: Algorithm 2, on plain arrays."""
from collections.abc import Callable
from typing import NamedTuple

import jax
from jax import lax
import jax.numpy as jnp

from vfljax import shards
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
  """
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


def greedy(
    key: Key, norms: Array, begin: Array, candidates: Array, budget,
    leak: Callable[[Key, Array], Array],
) -> tuple[Array, Array]:
  """Hides the candidate of the largest norm until the leakage is in budget.

  Arguments and results are those of `choose`, `begin` what is hidden at first.
  """
  class Search(NamedTuple):
    hidden: Array
    leaked: Array
    tries: Array
    done: Array

  def step(now: Search) -> Search:
    leaked = leak(jax.random.fold_in(key, now.tries), now.hidden)
    left = candidates & ~now.hidden
    more = ~(leaked <= budget) & left.any()  # Goes on if `leaked` is NaN.
    largest = jnp.where(left, norms, -jnp.inf).argmax()
    hidden = jnp.where(more, now.hidden.at[largest].set(True), now.hidden)
    return Search(hidden, leaked, now.tries + 1, ~more)

  shape = jax.eval_shape(leak, key, begin)
  start = shards.own(key, Search(
      begin, jnp.zeros((), shape.dtype), jnp.zeros((), jnp.int32),
      jnp.array(False),
  ))
  found = lax.while_loop(lambda now: ~now.done, step, start)
  return found.hidden, found.leaked


def _top(lot: Array, count: Array | int) -> Array:
  """bool [layers]: the `count` largest of `lot`."""
  rank = jnp.argsort(jnp.argsort(-lot))
  return rank < count
