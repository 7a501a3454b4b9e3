"""What a defense is: hooks on a round, each of them optional.

A hook sees what its owner sees. Passive-side hooks never get labels; the
active-side hooks never get another party's features or weights. Strengths are
factory arguments and may be traced, so that a sweep over them is one `vmap`.
"""
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from vfljax.types import VFL, Array, Batch, Embeddings, Key, Net, Params


class Spec(NamedTuple):
  """What a defense may know before training starts.

  Attributes:
    embeddings: Shape and dtype of each passive party's message, batch first.
    classes: Number of classes.
    vfl: The networks of all parties, whose structure all parties know.
    bottoms: The passive parties' initial weights, for defenses where all
      parties draw them from a shared seed.
    features: Shape and dtype of each passive party's samples, batch first.
    auxiliary: The active party's own labeled samples, with the features of all
      parties; `None` without any.
  """

  embeddings: tuple[jax.ShapeDtypeStruct, ...]
  classes: int
  vfl: VFL | None = None
  bottoms: tuple[Params, ...] = ()
  features: tuple[jax.ShapeDtypeStruct, ...] = ()
  auxiliary: Batch | None = None


class Holdings(NamedTuple):
  """What the active party has between two epochs.

  Attributes:
    vfl: The networks of all parties, whose structure all parties know.
    params: The active party's weights: 'bottom', 'top' and 'defense'.
    auxiliary: Its own labeled samples, with the features of all parties, which
      are not trained on; `None` without any.
  """

  vfl: VFL
  params: dict[str, Params]
  auxiliary: Batch | None


class Slots(NamedTuple):
  """What a defense adds to the federation.

  Attributes:
    active: Weights the active party trains together with its top network.
    passive: Weights passive party k trains together with its bottom network.
    state: Memory (noise scales, auxiliary networks, optimizer states) that
      `adapt`, `gradient` and `epoch` carry and nothing differentiates.

  Weights called `scale_key` or `bias_key` are passports, which no optimizer
  changes.
  """

  active: Params
  passive: tuple[Params, ...]
  state: Any


def slots(
    spec: Spec,
    active: Params = (),
    passive: tuple[Params, ...] | None = None,
    state: Any = (),
) -> Slots:
  """`Slots`; what is not given is empty, at every passive party."""
  empty = ((),) * len(spec.embeddings)
  return Slots(active, empty if passive is None else passive, state)


def _identity_bottom(state: Any, k: int, net: Net) -> Net:
  return net


def _identity_top(net: Net) -> Net:
  return net


def _init(key: Key, spec: Spec) -> Slots:
  return slots(spec)


def _send(passive: Params, key: Key, u: Array) -> tuple[Array, Array]:
  return u, jnp.zeros((), jnp.float32)


def _receive(active, state, key, up, labels) -> tuple[Embeddings, Array]:
  return up, jnp.zeros((), jnp.float32)


def _gradient(state, key, cut, labels) -> tuple[Embeddings, Any]:
  return cut, state


class Defense(NamedTuple):
  """Hooks in the order in which a round calls them; the default does nothing.

  Attributes:
    init: (key, spec) -> Slots.
    prepare: (key, features, labels) -> labels; at the active party, once,
      before training, on all of its own training data. Label noise that must
      not be averaged away by redrawing lives here. A row of zeros stays one,
      and no other becomes one: all parties know which rows are samples.
    batch: (key, batch) -> batch; a transformation every party applies to its
      own part with shared coins (MixUp). One function stands for all parties:
      no part may look at another.
    bottom: (state, k, net) -> net; at passive party k: the network that it
      computes with in place of `net`, from the same parameters.
    top: (net) -> net; at the active party: the network that it trains in place
      of its top (GAFM's generator), the same in all rounds.
    send: (passive, key, u) -> (u, penalty); at a passive party, on its message
      u [batch, ...], whose shape stays: another width is for `bottom`. The
      scalar penalty is added to the party's loss. It gets no labels.
    label: (state, key, labels) -> labels; at the active party, as are all hooks
      from here to `gradient`.
    adapt: (state, key, predict, up, labels) -> state; trains the defense's own
      networks with their own optimizers. `predict(up)` gives logits.
    receive: (active, state, key, up, labels) -> (up, penalty); on the tuple of
      embeddings received. `labels` is `None` at inference.
    objective: (state, key, predict, up, labels) -> scalar loss, in place of the
      task loss. At most one in a chain.
    gradient: (state, key, cut, labels) -> (cut, state); on the tuple of
      cut-layer gradients, [batch, ...] each, before they are sent; the state is
      kept for the next round. Its labels are the batch's own, not those that
      `label` returned, as they decide what has to be hidden.
    share: (key, gradients) -> gradients; at a passive party, on the gradients
      {'bottom', 'defense'} of its own weights, before it uses them.
    epoch: (state, key, holdings) -> state; at the active party, after every
      epoch.
    lent: (state, k) -> the part of the state that passive party k, too, uses in
      `bottom`, or that `expose` tells it of: its own secrets, or numbers in
      secret shares, which it cannot read. All else is the active party's alone,
      as `vfljax.audit` proves.
    facts: (state) -> {name: scalar}; numbers about the defense itself, recorded
      beside the utility, and so by other names than 'accuracy', 'auc', 'loss'.
    expose: (state, key, k, weights) -> weights; what passive party k can read
      of the weights that its plain network computes with inside `bottom`, with
      made-up numbers for what it cannot read. Every view of weights, or of
      their gradients, is of these. Where the party reads all that it trains,
      `weights` is returned, the same object.
    decode: (state, logits) -> logits; at inference.
  """

  init: Callable[[Key, Spec], Slots] = _init
  prepare: Callable[[Key, Array | None, Array], Array] | None = None
  batch: Callable[[Key, Batch], Batch] = lambda key, batch: batch
  bottom: Callable[[Any, int, Net], Net] = _identity_bottom
  top: Callable[[Net], Net] = _identity_top
  send: Callable[[Params, Key, Array], tuple[Array, Array]] = _send
  label: Callable[..., Array] = lambda state, key, labels: labels
  adapt: Callable[..., Any] = lambda state, key, predict, up, labels: state
  receive: Callable[..., tuple[Embeddings, Array]] = _receive
  objective: Callable[..., Array] | None = None
  gradient: Callable[..., tuple[Embeddings, Any]] = _gradient
  share: Callable[[Key, Params], Params] = lambda key, gradients: gradients
  epoch: Callable[[Any, Key, Holdings], Any] = lambda state, key, has: state
  lent: Callable[[Any, int], Any] = lambda state, k: ()
  facts: Callable[[Any], dict[str, Array]] = lambda state: {}
  expose: Callable[..., Params] = lambda state, key, k, weights: weights
  decode: Callable[[Any, Array], Array] = lambda state, logits: logits


def exposes(defense: Defense, memory: Any, k: int, weights: Params) -> bool:
  """Whether passive party k reads other weights than those that it trains.

  Nothing is computed: what the defense makes up would be drawn in each round.
  """
  found = []

  def read():  # Nothing is an argument: what is no array may decide.
    seen = defense.expose(memory, jax.random.key(0), k, weights)
    found.append(seen is not weights)

  jax.eval_shape(read)
  return found[0]


def borrowers(defense: Defense, memory: Any, passive: int) -> list[set[int]]:
  """Which passive parties each leaf of a defense's memory is lent to.

  Args:
    defense: Whose `lent` is asked.
    memory: The defense's state.
    passive: The number of passive parties, which are 1..passive.

  Returns:
    A set of parties for each leaf, in the order of `jax.tree.leaves`.
  """
  leaves, tree = jax.tree.flatten(memory)
  numbered = jax.tree.unflatten(tree, range(len(leaves)))
  found: list[set[int]] = [set() for _ in leaves]
  for k in range(1, passive + 1):
    for i in jax.tree.leaves(defense.lent(numbered, k)):
      found[i].add(k)
  return found
