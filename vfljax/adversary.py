"""Passive parties that deviate from the protocol (backdoors, for instance).

The hooks get the colluding parties' own features and messages and nothing else;
`protocol.play_round` selects them and puts the results back.
"""
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vfljax.check import Misfit, kind


class Adversary(NamedTuple):
  """Hooks on the attackers' own features, messages and memory.

  `own` is a tuple with one array per party of `parties`, in that order.

  Attributes:
    parties: The colluding passive parties, 1..K; () for none.
    init: (key, own features) -> state.
    rows: (key, indices) -> indices, [batch] each, of a round's samples in
      `fit`. Parties agree on them before each round, so an attacker can change
      them. There are n samples, 0..n-1, and with `remainder='pad'` n is
      padding. Others are refused or, where they are traced, make all numbers
      of the round NaN, the weights' too.
    features: (state, key, own features) -> own features.
    send: (state, key, own embeddings) -> own embeddings.
    receive: (state, key, own cut-layer gradients) -> own cut-layer gradients.
    update: (state, key, own embeddings sent, own gradients received) -> state.
  """

  parties: tuple[int, ...] = ()
  init: Callable[..., Any] = lambda key, own: ()
  rows: Callable[..., Any] = lambda key, numbers: numbers
  features: Callable[..., tuple] = lambda state, key, own: own
  send: Callable[..., tuple] = lambda state, key, own: own
  receive: Callable[..., tuple] = lambda state, key, own: own
  update: Callable[..., Any] = lambda state, key, sent, received: state


HONEST = Adversary()


def check(adversary: Adversary) -> None:
  """Raises ValueError for parties that are none, or hooks of nobody.

  Of a party that is there twice one answer would be dropped. And hooks without
  a party get nothing, so that all would stay honest, without a word.
  """
  if not isinstance(adversary, Adversary):
    raise ValueError(
        f'adversary must be an Adversary; got {kind(adversary)}. Leave it out '
        'if all are honest.'
    )
  parties = adversary.parties
  listed = isinstance(parties, (tuple, list))
  whole = listed and all(
      isinstance(k, int | np.integer) and not isinstance(k, bool)
      for k in parties
  )
  if not whole or len({*parties}) < len(parties):
    raise ValueError(
        'Adversary.parties must be a tuple of passive parties, 1 to the last '
        f'one, each once, as (1,); got {parties!r}.'
    )
  # By their code, as a copy of HONEST (in another process) has other functions.
  code = lambda hook: getattr(hook, '__code__', hook)
  if not parties and [*map(code, adversary[1:])] != [*map(code, HONEST[1:])]:
    raise ValueError(
        'An adversary with hooks needs the parties that deviate, as '
        'Adversary(parties=(1,), ...); it has none.'
    )


def pick(everyone: tuple, indices: tuple[int, ...]) -> tuple:
  """The entries of `everyone` at `indices`.

  Raises:
    ValueError: if there is none at one of them.
  """
  if any(not 0 <= i < len(everyone) for i in indices):
    raise ValueError(
        'Adversary.parties must be a tuple of passive parties, 1 to the last '
        'one, as (1,); nobody is at one of them.'
    )
  return tuple(everyone[i] for i in indices)


def put(
    everyone: tuple, indices: tuple[int, ...], own: tuple, hook: str
) -> tuple:
  """`everyone` with the entries at `indices` replaced by `own`.

  Args:
    hook: Which one has made them.

  Raises:
    ValueError: if `own` has not one entry for each, of its shapes: others would
      be left out in silence, or stretched.
  """
  before = pick(everyone, indices)
  whole = isinstance(own, (tuple, list)) and len(own) == len(before)
  if not whole or _shapes(tuple(own)) != _shapes(before):
    raise Misfit(
        f"The adversary's {hook} must return a tuple of arrays in the shapes "
        f'that it gets, one for each of its parties, {_shapes(before)}; it '
        f'returned {_shapes(own)}. Of a single party: (array,).'
    )
  if hook != 'features' and _floats(before) and not _floats(own):
    raise Misfit(  # What passes is differentiated.
        f"The adversary's {hook} must return floats; it returned {_kinds(own)}."
    )
  if hook != 'features' and _kinds(own) != _kinds(before):
    raise Misfit(
        f"The adversary's {hook} must return floats of the precision that it "
        f'gets, {_kinds(before)}; it returned {_kinds(own)}.'
    )
  replaced = dict(zip(indices, own))
  return tuple(replaced.get(i, x) for i, x in enumerate(everyone))


def _shapes(tree: Any) -> Any:
  """Of its leaves, in its structure."""
  return jax.tree.map(jnp.shape, tree)


def _kinds(own: Any) -> str:
  return ', '.join(str(jnp.result_type(x)) for x in own)


def _floats(own: Any) -> bool:
  return all(jnp.issubdtype(jnp.result_type(x), jnp.floating) for x in own)
