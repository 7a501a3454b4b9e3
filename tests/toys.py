"""An attack, a defense and a network of somebody else's, as one would write."""
from typing import NamedTuple

import jax
import jax.numpy as jnp

from vfljax import nets
from vfljax.attack import TRAINED, Attack, recipe
from vfljax.defense import Defense, each
from vfljax.scene import Amounts, Scene, two_classes
from vfljax.types import Net
from vfljax.views import CutGradients, TrainedBottom


class Options(NamedTuple):
  """See `toy_scoring`."""

  power: float = 1.0
  columns: tuple[int, ...] = (0,)


def check(options: Options, scene: Scene, samples: Amounts) -> None:
  """Raises ValueError for a power of no use."""
  del scene
  if not options.power > 0 or samples.batch < 2:
    raise ValueError(
        f'attack.toy_scoring.power must be above 0; got {options.power}.'
    )


@recipe(options=Options, needs=(two_classes,), check=check)
def toy_scoring(power: float = 1.0, columns: tuple[int, ...] = (0,)) -> Attack:
  """Scores: [batch], a power of some columns of the gradient, summed."""

  def run(key, view: CutGradients):
    del key
    flat = view.received.reshape(len(view.received), -1)
    return (jnp.abs(flat[:, jnp.array(columns)]) ** power).sum(-1)

  return Attack(CutGradients, run)


class Lucky(NamedTuple):
  """Options that change nothing."""

  name: int = 0


def _by_lot(name: int = 0) -> Attack:
  """Guesses: [1, samples, 2], by lot."""
  del name

  def run(key, view: TrainedBottom):
    return jax.random.normal(key, (1, len(view.features), 2))

  return Attack(TrainedBottom, run)


@recipe(stage=TRAINED, options=Lucky)
def toy_lot(name: int = 0) -> Attack:
  """Guesses by lot, each variant by its own."""
  return _by_lot(name)


@recipe(stage=TRAINED, options=Lucky, one_luck=True)
def toy_same_lot(name: int = 0) -> Attack:
  """Guesses by lot, all variants by the same."""
  return _by_lot(name)


def toy_rounding(step) -> Defense:
  """Cut-layer gradients, rounded at random to a multiple of `step` > 0."""

  def rounded(key, d, labels):
    del labels
    low = jnp.floor(d / step)
    up = jax.random.bernoulli(key, d / step - low)
    return (low + up) * step

  return Defense(gradient=each(rounded))


def toy_net(width: int = 8, hidden: int = 4) -> Net:
  """Two linear layers."""
  return nets.mlp(hidden, width)
