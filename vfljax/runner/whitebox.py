"""CAFE in an experiment: where it starts, its pool of samples, its measure."""
from typing import Any

import jax

from vfljax.runner import options
from vfljax.runner.config import AttackConfig, Config, ModelConfig, attacker
from vfljax import attacks, measure, metrics
from vfljax.attack import Attack
from vfljax.attacks.cafe import Layer, Recovery
from vfljax.defenses import mid
from vfljax.nets import cafe
from vfljax.types import VFL, Array, Key, Params


def attack(who: AttackConfig, model: ModelConfig, vfl: VFL) -> Attack:
  """The attack on a bottom network that is CAFE's."""
  given = options.parse(model.options, 'model.options', 'dtype=bfloat16')
  width = dict(width=model.width) if model.width else {}
  middle = cafe.middle(**width, **given)
  how = Recovery(who.cafe_steps, who.cafe_restarts)
  return attacks.cafe(first_linear(middle, vfl), how)


def first_linear(middle: Any, vfl: VFL) -> Layer:
  """The layer where the attack starts: MID's linear decoder behind the network
  if a passive party has one, else the network's first linear layer."""

  def around(weights: Params, x: Array):
    if not _has_mid(weights):
      return middle(weights['bottom'], x)
    own = weights['defense']
    u = vfl.bottom(1).apply(weights['bottom'], x)
    encoder, decoder = mid.bottleneck(u.shape[-1], hidden=0)
    # Without noise: what the rounds drew is not for the attacker to see.
    mean, _ = mid.encode(encoder, own['encoder'], u, 0.5)
    return mean, decoder.apply(own['decoder'], mean)

  def gradient(gradients: Params):
    part = gradients['bottom']['fc1']
    if _has_mid(gradients):
      part = gradients['defense']['decoder']
    bias, kernel = sorted(jax.tree.leaves(part), key=lambda x: x.ndim)
    return kernel, bias

  return Layer(around, gradient)


def _has_mid(weights: Params) -> bool:
  own = weights['defense']
  return isinstance(own, dict) and set(own) == {'encoder', 'decoder'}


def check(config: Config, name: str, train: int) -> None:
  """Raises ValueError if there are too few samples for the attack's pool."""
  who = attacker(config, name)
  if not 1 <= who.cafe_pool <= train:
    raise ValueError(
        f'attack.cafe_pool must be between 1 and the {train} training samples; '
        f'got {who.cafe_pool}.'
    )
  if not 1 <= who.cafe_batch <= who.cafe_pool:
    raise ValueError(
        f'attack.cafe_batch must be between 1 and the {who.cafe_pool} samples '
        f'of the pool; got {who.cafe_batch}.'
    )
  if config.data.scale != 'none':
    raise ValueError(
        'cafe looks for pixels between 0 and 1: set --config.data.scale=none.'
    )


def rounds(key: Key, who: AttackConfig) -> Array:
  """[replay_rounds, cafe_batch] which of the pool's samples are in each."""
  keys = jax.random.split(key, who.replay_rounds)
  draw = lambda k: jax.random.permutation(k, who.cafe_pool)[: who.cafe_batch]
  return jax.vmap(draw)(keys)


def measured(guess: Array, truth: Array) -> measure.Metrics:
  """Mean 'psnr', that of an attacker who knows the mean image alone and, for
  images of 7 pixels or more, 'ssim'."""
  mean = truth.mean(0, keepdims=True) + 0 * truth
  found = dict(
      psnr=metrics.psnr(guess, truth).mean(),
      mean_image_psnr=metrics.psnr(mean, truth).mean(),
  )
  if min(truth.shape[1:3]) >= 7:
    found['ssim'] = metrics.ssim(guess, truth).mean()
  return found


