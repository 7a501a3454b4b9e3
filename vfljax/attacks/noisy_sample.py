"""Noisy-sample backdoor (Zou et al. 2023, after Liu et al. 2021).

Passive parties add noise to a few of their samples in training, and to those
that they attack at inference, so that the federation misclassifies them. The
paper draws the noise from N(0, 2), which its code takes for a deviation of 2,
and keeps pixels in [0, 1]. Its noisy training samples are one fixed set; here a
random share of each round is noisy, with new noise each time.
"""
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.core import Tracer

from vfljax import check
from vfljax.adversary import Adversary
from vfljax.attack import TRAINING, recipe
from vfljax.backdoor import Backdoor, some, value_range
from vfljax.leakage import DROP
from vfljax.scene import Ground, Scene


class Options(NamedTuple):
  """See `noisy_sample`."""

  rate: float = 0.01  # share of a round that is disturbed
  std: float = 2.0  # the noise's deviation, in the features' unit


def _plant(options: Options, ground: Ground) -> Backdoor:
  bounds = value_range(ground.features)
  return noisy_sample(
      options.rate, options.std, bounds, parties=ground.parties
  )


def _numbers(scene: Scene) -> str:
  if not scene.numbered:
    return ''
  return (
      'adds noise to features, and next to the number of a category or word is '
      'any other one. missing_features is for these, too.'
  )


@recipe(
    stage=TRAINING, options=Options, plant=_plant, needs=(_numbers,),
    score=DROP,
)
def noisy_sample(
    rate=0.01, std=2.0, bounds: tuple | None = (0.0, 1.0), *,
    parties: tuple[int, ...] = (1,),
) -> Backdoor:
  """Adds noise to a share of the attackers' samples.

  Args:
    rate: Share of a round's samples, in [0, 1]; may be traced. At inference all
      samples given are noisy.
    std: The noise's deviation, in the features' unit, 0 or more; may be traced.
    bounds: (low, high) to which noisy features are clipped; may be traced;
      `None` does not clip.
    parties: Who attacks, 1..K, each with the same samples.

  Raises:
    ValueError: if an argument is out of its range, or there are no parties.
  """
  check.inside('noisy_sample: rate', rate, 0, 1)
  check.at_least('noisy_sample: std', std, 0, many=True)
  some('noisy_sample', parties)
  rate = jnp.asarray(rate, jnp.float32)  # Of an integer nothing is drawn.
  if bounds is not None:
    low, high = bounds
    if not isinstance(low, Tracer) and not isinstance(high, Tracer):
      check.at_least('noisy_sample: the upper bound', high, low, many=True)

  def noisy(key, x):
    if not jnp.issubdtype(x.dtype, jnp.floating):
      raise check.Misfit(
          f'noisy_sample adds noise to floats; these features are {x.dtype}: '
          'x.astype(jnp.float32) makes them so.'
      )
    like = lambda number: jnp.asarray(number).astype(x.dtype)
    made = x + like(std) * jax.random.normal(key, x.shape, x.dtype)
    return made if bounds is None else made.clip(*map(like, bounds))

  def strike(state, key, own):
    del state
    keys = jax.random.split(key, len(own))
    return tuple(noisy(k, x) for k, x in zip(keys, own))

  def features(state, key, own):
    k_lot, k_noise = jax.random.split(key)
    hit = jax.random.bernoulli(k_lot, rate, (len(own[0]),))
    return tuple(
        jnp.where(hit.reshape(-1, *[1] * (x.ndim - 1)), made, x)
        for x, made in zip(own, strike(state, k_noise, own))
    )

  return Backdoor(
      Adversary(parties, features=features),
      Adversary(parties, features=strike),
  )
