"""What a defense is: hooks on a round, each of them optional.

A hook sees what its owner sees. Passive-side hooks never get labels; the
active-side hooks never get another party's features or weights. Strengths are
factory arguments and may be traced, so that a sweep over them is one `vmap`.
"""
from collections.abc import Callable
import dataclasses
import inspect
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from vfljax.types import VFL, Array, Batch, Embeddings, Key, Net, Params


class Spec(NamedTuple):
  """What a defense may know before training starts.

  Attributes:
    embeddings: Shape and dtype of each passive party's message, batch first.
    classes: Number of classes.
    vfl: Everybody's networks, of which all parties know the structure.
    bottoms: The passive parties' first weights, for where all parties draw
      them from a seed that they share.
    features: Shape and dtype of each passive party's samples, batch first.
    auxiliary: The active party's own samples of all parties' features.
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
    vfl: Everybody's networks, of which all parties know the structure.
    params: Its own weights: 'bottom', 'top' and 'defense'.
    auxiliary: Its own samples of all parties' features, with labels, that
      nobody trains on; `None` without any.
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
      `adapt` and `epoch` carry and nothing differentiates.
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
  """`Slots` with empty passive weights for every party unless given."""
  empty = ((),) * len(spec.embeddings)
  return Slots(active, empty if passive is None else passive, state)


def _identity_bottom(state: Any, k: int, net: Net) -> Net:
  return net


def _identity_top(net: Net) -> Net:
  return net


def _init(key: Key, spec: Spec) -> Slots:
  return slots(spec)


def _send(passive: Params, key: Key, u: Array) -> tuple[Array, Array]:
  return u, jnp.zeros(())


def _receive(active, state, key, up, labels) -> tuple[Embeddings, Array]:
  return up, jnp.zeros(())


class Defense(NamedTuple):
  """Hooks in the order in which a round calls them; the default does nothing.

  Attributes:
    init: (key, spec) -> Slots.
    prepare: (key, features, labels) -> labels; at the active party, once,
      before training, on all of its own training data. Label noise that must
      not be averaged away by redrawing lives here.
    batch: (key, batch) -> batch; a transformation every party applies to its
      own part with shared coins (MixUp). One function stands for all parties:
      no part may look at another.
    bottom: (state, k, net) -> net; at passive party k: the same network with
      other arithmetic.
    top: (net) -> net; at the active party: what it trains in place of its top
      network (GAFM's generator replaces it), always and not by the round.
    send: (passive, key, u) -> (u, penalty); at a passive party, on its message.
      No labels in sight.
    label: (state, key, labels) -> labels; at the active party, as all below.
    adapt: (state, key, predict, up, labels) -> state; own networks with their
      own optimizer. `predict(up)` gives logits.
    receive: (active, state, key, up, labels) -> (up, penalty); labels is `None`
      at inference.
    objective: (state, key, predict, up, labels) -> scalar loss, in place of the
      task loss. At most one in a chain.
    gradient: (state, key, cut, labels) -> cut; on the tuple of cut-layer
      gradients, [batch, ...] each, before they are sent. These labels are the
      batch's own, not what `label` made of them: they decide what is hidden.
    remember: (state, key, cut, labels) -> state; after `gradient`, with the
      same arguments: what is kept of it for the next round.
    share: (key, gradients) -> gradients; at a passive party, on the gradients
      {'bottom', 'defense'} of its own weights, before it uses them.
    epoch: (state, key, holdings) -> state; after every epoch.
    facts: (state) -> {name: scalar}; what the defense knows of itself, recorded
      beside the utility.
    expose: (state, key, k, weights) -> weights; what passive party k can read
      of its own bottom network.
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
  gradient: Callable[..., Embeddings] = lambda state, key, cut, labels: cut
  remember: Callable[..., Any] = lambda state, key, cut, labels: state
  share: Callable[[Key, Params], Params] = lambda key, gradients: gradients
  epoch: Callable[[Any, Key, Holdings], Any] = lambda state, key, has: state
  facts: Callable[[Any], dict[str, Array]] = lambda state: {}
  expose: Callable[..., Params] = lambda state, key, k, weights: weights
  decode: Callable[[Any, Array], Array] = lambda state, logits: logits


@dataclasses.dataclass(frozen=True)
class Method:
  """A defense that goes by a name: call it as its factory.

  Attributes:
    factory: (strength, **options) -> Defense, or (**options) without one.
    strengths: What a sweep tries unless told otherwise; () where there is
      nothing to choose.
    binary: Whether it is for two classes only.
  """

  factory: Callable[..., Defense]
  strengths: tuple[float, ...] = ()
  binary: bool = False

  def __post_init__(self):
    # `inspect.signature` then shows the factory's arguments.
    object.__setattr__(self, '__signature__', inspect.signature(self.factory))

  def __call__(self, *args: Any, **options: Any) -> Defense:
    return self.factory(*args, **options)


def none() -> Defense:
  """The undefended federation."""
  return Defense()


def each(
    fn: Callable[[Key, Array, Array], Array],
) -> Callable[..., Embeddings]:
  """Lifts `fn(key, d, labels) -> d` on one party's gradient to `gradient`.

  `d` arrives as [batch, width], whatever the embedding's shape, and the parties
  get independent keys.
  """

  def gradient(state, key, cut, labels):
    del state
    keys = jax.random.split(key, len(cut))
    flat = lambda d: d.reshape(len(d), -1)
    return tuple(
        fn(k, flat(d), labels).reshape(d.shape) for k, d in zip(keys, cut)
    )

  return gradient


def chain(*defenses: Defense) -> Defense:
  """Applies several defenses; every hook runs in the order given.

  Penalties add. `decode` runs in the reverse order, undoing `label`'s.

  Raises:
    ValueError: if two of them replace the training objective.
  """
  objectives = [(i, d) for i, d in enumerate(defenses) if d.objective]
  if len(objectives) > 1:
    raise ValueError(
        'chain: two defenses replace the training objective; only one can.'
    )

  def split(key):
    return jax.random.split(key, max(len(defenses), 1))

  def init(key, spec):
    parts = [d.init(k, spec) for d, k in zip(defenses, split(key))]
    parties = range(len(spec.embeddings))
    return Slots(
        active=tuple(s.active for s in parts),
        passive=tuple(tuple(s.passive[k] for s in parts) for k in parties),
        state=tuple(s.state for s in parts),
    )

  def prepare(key, features, labels):
    for d, k in zip(defenses, split(key)):
      labels = d.prepare(k, features, labels) if d.prepare else labels
    return labels

  def batch(key, batch):
    for d, k in zip(defenses, split(key)):
      batch = d.batch(k, batch)
    return batch

  def bottom(state, k, net):
    for d, s in zip(defenses, state):
      net = d.bottom(s, k, net)
    return net

  def top(net):
    for d in defenses:
      net = d.top(net)
    return net

  def send(passive, key, u):
    total = jnp.zeros(())
    for d, p, k in zip(defenses, passive, split(key)):
      u, penalty = d.send(p, k, u)
      total = total + penalty
    return u, total

  def label(state, key, labels):
    for d, s, k in zip(defenses, state, split(key)):
      labels = d.label(s, k, labels)
    return labels

  def adapt(state, key, predict, up, labels):
    return tuple(
        d.adapt(s, k, predict, up, labels)
        for d, s, k in zip(defenses, state, split(key))
    )

  def receive(active, state, key, up, labels):
    total = jnp.zeros(())
    for d, a, s, k in zip(defenses, active, state, split(key)):
      up, penalty = d.receive(a, s, k, up, labels)
      total = total + penalty
    return up, total

  def objective(state, key, predict, up, labels):
    i, d = objectives[0]
    assert d.objective is not None
    return d.objective(state[i], key, predict, up, labels)

  def gradient(state, key, cut, labels):
    for d, s, k in zip(defenses, state, split(key)):
      cut = d.gradient(s, k, cut, labels)
    return cut

  def remember(state, key, cut, labels):
    kept = []
    for d, s, k in zip(defenses, state, split(key)):
      kept.append(d.remember(s, k, cut, labels))
      cut = d.gradient(s, k, cut, labels)  # As the next one in turn sees it.
    return tuple(kept)

  def share(key, gradients):
    for d, k in zip(defenses, split(key)):
      gradients = d.share(k, gradients)
    return gradients

  def epoch(state, key, holdings):
    return tuple(
        d.epoch(s, k, holdings) for d, s, k in zip(defenses, state, split(key))
    )

  def facts(state):
    found = {}
    for d, s in zip(defenses, state):
      found |= d.facts(s)
    return found

  def expose(state, key, k, weights):
    for d, s, sub in zip(defenses, state, split(key)):
      weights = d.expose(s, sub, k, weights)
    return weights

  def decode(state, logits):
    for d, s in reversed(list(zip(defenses, state))):
      logits = d.decode(s, logits)
    return logits

  return Defense(
      init=init,
      prepare=prepare if any(d.prepare for d in defenses) else None,
      batch=batch,
      bottom=bottom,
      top=top,
      send=send,
      label=label,
      adapt=adapt,
      receive=receive,
      objective=objective if objectives else None,
      gradient=gradient,
      remember=remember,
      share=share,
      epoch=epoch,
      facts=facts,
      expose=expose,
      decode=decode,
  )
