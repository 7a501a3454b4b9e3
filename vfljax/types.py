"""The nouns of vertical federated learning, as pytrees and pure functions.

Nothing here computes. A federation is described by a `VFL`, lives in a `State`,
is fed a `Batch` a round and speaks in `Messages`.
"""
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import optax

from vfljax import check

Array = jax.Array
Key = jax.Array
Params = Any
Embeddings = tuple[Array, ...]  # One [batch, ...] array per passive party.
Transforms = Sequence[optax.GradientTransformation]  # One per party.

_JITTED: Any = type(jax.jit(lambda x: x))


class Net(NamedTuple):
  """A network as pure functions; `nets.linen` and `nets.nnx` make one of Flax.

  Attributes:
    init: (key, x [batch, ...]) -> params.
    apply: (params, x) -> y [batch, ...]; the forward pass at inference.
    train: (params, key, x) -> (y, stats); the forward pass in training, for
      networks where it is random (dropout) or returns statistics (BatchNorm).
      `None` where training and inference are the same function.
    absorb: (params, stats) -> params; puts the statistics that `train` returned
      where `apply` finds them.
    pretrained: The weights that `init` starts from, as a
      `nets.pretrained.Pretrained`; `None` for random ones.
  """

  init: Callable[[Key, Any], Params]
  apply: Callable[[Params, Any], Array]
  train: Callable[[Params, Key, Any], tuple[Array, Any]] | None = None
  absorb: Callable[[Params, Any], Params] = lambda params, stats: params
  pretrained: Any = None

  def run(self, params: Params, key: Key, x: Any) -> tuple[Array, Any]:
    """The training pass: (output, statistics to absorb).

    Raises:
      ValueError: if `train` returns anything but such a pair, or statistics
        that the network has no `absorb` for.
    """
    if self.train is None:
      return self.apply(params, x), ()
    train = self.train
    # Which rows are padding is a round's own (`crossing`, `nets.counting`), no
    # argument: a network's own `jit` would keep those of its first round.
    while isinstance(train, _JITTED):
      train = train.__wrapped__
    found = train(params, key, x)
    if not isinstance(found, (tuple, list)) or len(found) != 2:
      raise ValueError(
          'train must return (output, statistics), with () for none, as in '
          f'`return y, ()`; it returned {check.kind(found)}.'
      )
    output, statistics = found
    plain = self._field_defaults['absorb']
    if self.absorb is plain and jax.tree.leaves(statistics):
      raise ValueError(
          'train returns statistics, which nothing puts into the parameters: '
          'give the Net absorb=(params, stats) -> params, or return ().'
      )
    return output, statistics


class VFL(NamedTuple):
  """The federation's networks and loss.

  Party 0 is the active party: it holds the labels and the top network.

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
    """Party k's bottom network.

    Raises:
      ValueError: if it has none.
    """
    net = self.bottoms[k]
    if net is None:
      raise ValueError(f'Party {k} has no bottom network.')
    return net


class Batch(NamedTuple):
  """Aligned samples: row i is the same sample at every party.

  Attributes:
    features: One [batch, ...] array (or pytree of them) per party;
      `features[k]` never leaves party k. `None` at 0 if the active party has no
      features.
    labels: [batch, classes] distributions, known to party 0 alone. A row of
      zeros marks padding: it has no loss, no gradient and no class.
  """

  features: tuple[Any, ...]
  labels: Array


class Messages(NamedTuple):
  """Everything that crosses a party boundary in one round.

  Attributes:
    up: Embeddings [batch, ...] from the passive parties; party k's is at k-1.
    down: Cut-layer gradients, of the batch's mean loss, of the same shapes and
      in the same order, to the passive parties.
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
  """The federation between rounds. Only the simulator sees it whole.

  Attributes:
    parties: One entry per party, the active party's first.
    defense: The defense's memory, never differentiated.
    adversary: The memory of the parties that deviate.
  """

  parties: tuple[PartyState, ...]
  defense: Any
  adversary: Any = ()


class Round(NamedTuple):
  """One round as the simulator sees it, for `fit(watch=...)`.

  Attributes:
    state: The federation before the round's update.
    batch: The round's samples with their true labels; where a defense mixes
      samples (MixUp), the mixed ones, with mixed labels.
    messages: What the parties sent each other.
    loss: The objective's value, a scalar.
    gradients: One entry per passive party: the gradients of its bottom
      network's weights, from the cut-layer gradient that it received.
    added: One entry per passive party: the gradients of the weights that a
      defense gave it.
    read: As `gradients`, but with respect to the weights that the plain network
      computes with inside `Defense.bottom`, where parties read those and not
      the weights they train (`Defense.expose`); () where they are the same.
  """

  state: State
  batch: Batch
  messages: Messages
  loss: Array
  gradients: tuple[Params, ...]
  added: tuple[Params, ...] = ()
  read: tuple[Params, ...] = ()
