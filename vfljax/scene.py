"""What an attack's factory gets: the kind of federation and of its samples.

All of it is public or given to the attacker; nothing here is a view.
"""
from collections.abc import Callable
from typing import Any, NamedTuple

from vfljax import algorithms
from vfljax.types import Array, Key, Net


class Scene(NamedTuple):
  """The kind of federation that an attack meets, known before its samples.

  Attributes:
    classes: Number of classes.
    linear: Whether bottoms are linear and their sum is the logits (VLR).
    trainable_top: Whether the top has weights.
    aggregation: How embeddings are aggregated, a name in
      `algorithms.AGGREGATIONS`.
    network: Name of the passive parties' network; '' if it has no name.
    width: Width of the named network's embedding; 0 is its default.
    options: The named network's options.
    channels, widths, activation, final: Of a network without a name.
    own: (widths, norm) -> a network of the attacker's own, from raw features:
      the bottoms' layers, then layers of `widths`.
    numbered: Whether bottoms read numbers of categories or words, which have no
      mixtures.
    skips_blank: Whether a passive party's network is trained on some of its
      samples as without the others, if these are left out of the loss: it draws
      nothing, and what it measures is left to BatchNorm (Linen's).
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
  numbered: bool = False
  skips_blank: bool = False

  @property
  def summed(self) -> bool:
    """Whether the aggregate is linear in the embeddings (or concatenates)."""
    return self.linear or self.aggregation in algorithms.ADDED

  @property
  def open_top(self) -> bool:
    """Whether trained layers are between embeddings and logits."""
    return not self.linear and self.trainable_top


class Amounts(NamedTuple):
  """How many samples an attack has, and of what kind.

  Attributes:
    train, test, auxiliary: Numbers of samples; the last are the attackers' own.
    batch: Samples a round.
    least: Training samples of the rarest class, at least, whatever the split.
    scale: How features are scaled: 'standard', 'minmax' or 'none'.
    shape: Shape of one sample's features at passive party 1.
  """

  train: int
  test: int
  auxiliary: int
  batch: int
  least: int
  scale: str
  shape: tuple[int, ...]


class Ground(NamedTuple):
  """What attackers have to plant a backdoor in one training.

  Attributes:
    key: Seeds what is drawn for it.
    parties: Who attacks, 1..K.
    features: One entry per attacker: the features of all its training samples.
    labels: [samples, classes] of the training samples; attackers use only those
      that their recipe lets them know.
    batch: Samples a round.
  """

  key: Key
  parties: tuple[int, ...]
  features: tuple[Array, ...]
  labels: Array
  batch: int


class Pace(NamedTuple):
  """How a federation trains, for an attacker's own optimizer.

  Attributes:
    optimizer: 'sgd', 'momentum' (0.9), 'adam' or 'adamw'.
    learning_rate: The initial one.
    constant: Whether the rate is constant and there is no weight decay.
  """

  optimizer: str
  learning_rate: float
  constant: bool


def two_classes(scene: Scene) -> str:
  """A need: two classes, as the attack ranks samples."""
  if scene.classes == 2:
    return ''
  return (
      f'ranks samples of two classes; this data set has {scene.classes}. '
      'gradient_clustering and model_completion are for any number.'
  )


def summed(scene: Scene) -> str:
  """A need: the aggregate is linear in the embeddings."""
  if scene.summed:
    return ''
  return (
      'needs embeddings that are added up: use '
      '--config.model.aggregation=sum.'
  )
