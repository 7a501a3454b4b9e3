"""Passive parties that deviate from the protocol (backdoors, for instance).

The hooks get the colluding parties' own features and messages and nothing else;
`protocol.play_round` selects them and puts the results back.
"""
from collections.abc import Callable
from typing import Any, NamedTuple


class Adversary(NamedTuple):
  """Hooks on the attackers' own features, messages and memory.

  `own` is a tuple with one array per party of `parties`, in that order.

  Attributes:
    parties: The colluding passive parties, 1..K; () for none.
    init: (key, own features) -> state.
    rows: (key, indices) -> indices, [batch] each, of a round's samples in
      `fit`. Parties agree on them before each round, so an attacker can change
      them.
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


def pick(everyone: tuple, indices: tuple[int, ...]) -> tuple:
  """The entries of `everyone` at `indices`."""
  return tuple(everyone[i] for i in indices)


def put(everyone: tuple, indices: tuple[int, ...], own: tuple) -> tuple:
  """`everyone` with the entries at `indices` replaced by `own`."""
  replaced = dict(zip(indices, own))
  return tuple(replaced.get(i, x) for i, x in enumerate(everyone))
