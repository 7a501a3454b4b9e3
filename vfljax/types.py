"""The nouns of vertical federated learning, as pytrees and pure functions.

Nothing here computes. A federation is described by a `VFL`, lives in a `State`,
is fed a `Batch` a round and speaks in `Messages`.
"""
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import optax

Array = jax.Array
Key = jax.Array
Params = Any
Embeddings = tuple[Array, ...]  # One [batch, ...] array per passive party.
Transforms = Sequence[optax.GradientTransformation]  # One per party.


class Net(NamedTuple):
  """A network as pure functions; Flax is one way to make one (`nets.linen`).

  Attributes:
    init: (key, x) -> params.
    apply: (params, x) -> y; inference.
    train: (params, key, x) -> (y, stats); training, for networks whose training
      pass is random (dropout) or leaves statistics behind (BatchNorm). `None`
      where training and inference are the same function.
    absorb: (params, stats) -> params; puts the statistics that `train` returned
      where `apply` finds them.
    pretrained: What `init` starts from, a `nets.pretrained.Pretrained`; `None`
      where that is random.
  """

  init: Callable[[Key, Any], Params]
  apply: Callable[[Params, Any], Array]
  train: Callable[[Params, Key, Any], tuple[Array, Any]] | None = None
  absorb: Callable[[Params, Any], Params] = lambda params, stats: params
  pretrained: Any = None

  def run(self, params: Params, key: Key, x: Any) -> tuple[Array, Any]:
    """A training pass: (output, statistics to absorb).

    Raises:
      ValueError: if `train` returns something else than these two.
    """
    if self.train is None:
      return self.apply(params, x), ()
    found = self.train(params, key, x)
    if not isinstance(found, (tuple, list)) or len(found) != 2:
      raise ValueError(
          'train must return (output, statistics), with () for none, as in '
          f'`return y, ()`; it returned a {type(found).__name__}.'
      )
    output, statistics = found
    return output, statistics


class VFL(NamedTuple):
  """Who computes what. Party 0 is active: it holds the labels and the top.

  Attributes:
    bottoms: One network per party; `None` at 0 if the active party has no
      features of its own (VSNN).
    top: Maps the tuple of embeddings, the active party's first (`None` where it
      has none), to logits [batch, classes].
    loss: Maps logits and label distributions, both [batch, classes], to one
      loss per example, [batch].
  """

  bottoms: tuple[Net | None, ...]
  top: Net
  loss: Callable[[Array, Array], Array]

  def bottom(self, k: int) -> Net:
    """Party k's bottom network, which it must have."""
    net = self.bottoms[k]
    if net is None:
      raise ValueError(f'Party {k} has no bottom network.')
    return net


class Batch(NamedTuple):
  """Aligned samples: row i is the same person at every party.

  Attributes:
    features: `features[k]` never leaves party k; `None` where it has none.
    labels: [batch, classes] distributions, known to party 0 alone. A row of
      zeros marks padding: it has no loss, no gradient and no class.
  """

  features: tuple[Any, ...]
  labels: Array


class Messages(NamedTuple):
  """Everything that crosses a party boundary in one round.

  Attributes:
    up: Embeddings, passive party k+1 -> active party at index k.
    down: Cut-layer gradients of the batch's mean loss, the other way.
  """

  up: Embeddings
  down: Embeddings


class PartyState(NamedTuple):
  """What one party owns between rounds: its weights and its optimizer's state.

  `params` is {'bottom', 'defense'} and, at party 0, also 'top'.
  """

  params: dict[str, Params]
  opt: Any


class State(NamedTuple):
  """The federation between rounds. Only the simulator sees it whole."""

  parties: tuple[PartyState, ...]
  defense: Any  # The defender's own memory: never differentiated.
  adversary: Any = ()


class Round(NamedTuple):
  """One round as the simulator sees it, for `fit(watch=...)`.

  Attributes:
    state: The federation before the round's update.
    batch: The round's samples with their true labels; where a defense mixes
      samples (MixUp), the mixed ones, with mixed labels.
    messages: What was said.
    loss: The objective's value, a scalar.
    gradients: Of each passive party's bottom network, from what it was sent.
    added: Of the weights that a defense gave each passive party.
    read: As `gradients`, but with respect to the weights that the plain network
      computes with in the end, for parties that read those and not the weights
      they train (`Defense.expose`); () where what is read is what is trained.
  """

  state: State
  batch: Batch
  messages: Messages
  loss: Array
  gradients: tuple[Params, ...]
  added: tuple[Params, ...] = ()
  read: tuple[Params, ...] = ()
