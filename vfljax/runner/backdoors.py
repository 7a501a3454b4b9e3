"""Backdoors in an experiment: what attackers know, and what they achieve."""
import math

import jax
import jax.numpy as jnp

from vfljax.runner.config import AttackConfig, Config, attacker, base
from vfljax.runner.samples import Splits
from vfljax import attacks
from vfljax.backdoor import Backdoor
from vfljax.types import Array, Key


def named(names: list[str]) -> str:
  """The backdoor among the attacks, or ''.

  Raises:
    ValueError: if there are several; each changes the training.
  """
  found = [name for name in names if base(name) in attacks.BACKDOORS]
  if len(found) > 1:
    raise ValueError(
        'A backdoor changes how the federation trains: run them apart, not '
        f'{" and ".join(found)} together.'
    )
  return found[0] if found else ''


def check(config: Config, name: str, train: int, labels: Array) -> None:
  """Raises ValueError if a backdoor cannot be planted.

  Args:
    train: Number of training samples.
    labels: [samples, classes] of all samples.
  """
  who = attacker(config, name)
  if base(name) != 'label_replacement':
    return
  share = train / len(labels)
  most = max(1, int(labels.sum(0).min() * share * 0.8))
  if not 1 <= who.targets <= most:
    raise ValueError(
        f'attack.targets must be between 1 and {most} known samples of the '
        f'target class; got {who.targets}.'
    )
  if not 0 < who.triggered < 1 or _rows(who, config) >= config.train.batch_size:
    raise ValueError(
        'attack.triggered is a share of each round, inside (0, 1), that leaves '
        f'some of its {config.train.batch_size} samples; got {who.triggered}.'
    )


def make(
    config: Config, name: str, parties: tuple[int, ...], splits: Splits,
    key: Key,
) -> Backdoor:
  """The backdoor of one cell.

  Args:
    parties: Who attacks.
    splits: Of whose training samples the attackers know their own features and,
      for label replacement, which few are of the target class.
    key: Of the target, the samples known and those to trigger.
  """
  who, own = attacker(config, name), [splits.train.features[k] for k in parties]
  low = jnp.stack([x.min() for x in own]).min()
  high = jnp.stack([x.max() for x in own]).max()
  if base(name) == 'noisy_sample':
    return attacks.noisy_sample(
        who.noisy, who.noise, (low, high), parties=parties
    )
  if base(name) == 'missing_features':
    return attacks.missing_features(who.missing, parties=parties)
  k_target, k_known, k_poison = jax.random.split(key, 3)
  labels = splits.train.labels
  target = jax.random.randint(k_target, (), 0, labels.shape[-1])
  is_target = jnp.take(labels, target, axis=-1) > 0
  count = math.ceil(who.triggered * len(labels))
  poisons = _some(k_poison, ~is_target, count)
  return attacks.label_replacement(
      target, _some(k_known, is_target, who.targets), [x[poisons] for x in own],
      parties=parties, per_round=_rows(who, config), amplify=who.amplify,
      value=high,
  )


def _some(key: Key, eligible: Array, count: int) -> Array:
  """Numbers of `count` random samples among those eligible."""
  lot = jax.random.uniform(key, eligible.shape)
  return jax.lax.top_k(jnp.where(eligible, lot, -1.0), count)[1]


def _rows(who: AttackConfig, config: Config) -> int:
  """How many of a round's rows carry a trigger."""
  return max(1, round(who.triggered * config.train.batch_size))
