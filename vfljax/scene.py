"""What an attack is made for: the kind of federation, its samples, its ground.

All of it is public or said to the attacker; nothing here is a view.
"""
from collections.abc import Callable
from typing import Any, NamedTuple

from vfljax import algorithms
from vfljax.types import Array, Key, Net


class Scene(NamedTuple):
  """What kind of federation an attack meets: known before there are samples.

  Attributes:
    classes: How many.
    linear: Whether bottoms are linear and their sum the logits (VLR).
    trainable_top: Whether the top has weights.
    aggregation: How embeddings are put together, of `algorithms.AGGREGATIONS`.
    network: Name of the passive parties' network; '' if it has none ...
    width: ... of its embedding, 0 being its own ...
    options: ... and its options.
    channels, widths, activation, final: Of a network without a name.
    own: (widths, norm) -> a network of the attacker's own, from raw features:
      the bottoms' layers, then layers of `widths`.
  """

  classes: int
  linear: bool = False
  trainable_top: bool = True
  aggregation: str = 'concat'
  network: str = ''
  width: int = 0
  options: dict[str, Any] = {}
  channels: tuple[int, ...] = ()
  widths: tuple[int, ...] = ()
  activation: str = 'relu'
  final: str = 'linear'
  own: Callable[[tuple[int, ...], str], Net] | None = None

  @property
  def summed(self) -> bool:
    """Whether embeddings are added up, if only beside each other."""
    return self.linear or self.aggregation in algorithms.ADDED

  @property
  def open_top(self) -> bool:
    """Whether there is something to learn between embeddings and logits."""
    return not self.linear and self.trainable_top


class Amounts(NamedTuple):
  """What an attack has to do with.

  Attributes:
    train, test, auxiliary: How many samples are for what; the last are the
      attackers' own.
    batch: Samples a round.
    least: Training samples of the rarest class that any split surely has.
    scale: How features are scaled: 'standard', 'minmax' or 'none'.
    shape: Of one sample's features at passive party 1.
  """

  train: int
  test: int
  auxiliary: int
  batch: int
  least: int
  scale: str
  shape: tuple[int, ...]


class Ground(NamedTuple):
  """What a backdoor is planted in, by attackers in one training.

  Attributes:
    key: Of what is drawn for it.
    parties: Who attacks, 1..K.
    features: Of each attacker, all its training samples.
    labels: [samples, classes] of the training samples, of which attackers know
      what their recipe says.
    batch: Samples a round.
  """

  key: Key
  parties: tuple[int, ...]
  features: tuple[Array, ...]
  labels: Array
  batch: int


class Pace(NamedTuple):
  """How a federation trains: what an attacker's own optimizer starts from.

  Attributes:
    optimizer: 'sgd', 'momentum' (0.9), 'adam' or 'adamw'.
    learning_rate: At the start.
    constant: Whether it stays so, without weight decay.
  """

  optimizer: str
  learning_rate: float
  constant: bool


def two_classes(scene: Scene) -> str:
  """A need: the attack ranks samples of two classes."""
  if scene.classes == 2:
    return ''
  return (
      f'ranks samples of two classes; this data set has {scene.classes}. '
      'model_completion is for any number.'
  )


def summed(scene: Scene) -> str:
  """A need: embeddings are added up."""
  if scene.summed:
    return ''
  return (
      'needs embeddings that are added up: use '
      '--config.model.aggregation=sum.'
  )
