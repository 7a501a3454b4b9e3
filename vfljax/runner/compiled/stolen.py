"""Attacks after training that need only stolen weights.

Most of what is compiled for the end of a training is attackers' own trainings.
Most of these start from samples and a bottom network's weights, as far as the
defense exposes them. As functions of only these they are the same for all
defenses whose weights have the same structure, so they are compiled once.
"""
from typing import Any

import jax
import jax.numpy as jnp

from vfljax import measure, views
from vfljax.attack import Attack
from vfljax.defense import Defense
from vfljax.runner.experiment import attackers, division
from vfljax.runner.experiment.division import Splits
from vfljax.runner.experiment.setting import Setting
from vfljax.types import Array, Key, State

_NOTHING_HIDDEN = Defense._field_defaults['expose']


def attacks(setting: Setting) -> dict[str, Attack]:
  """The attacks after training that need only stolen weights, by name."""
  return {
      name: attack for name, attack in setting.after_training.items()
      if attack.view in views.OF_ONES_OWN
      and not attack.against and not attack.wants.samples
  }


def without(setting: Setting) -> Setting:
  """The setting with only the other attacks after training."""
  own = attacks(setting)
  return setting._replace(after_training={
      name: attack for name, attack in setting.after_training.items()
      if name not in own
  })


def weights(
    setting: Setting, defense: Defense, state: State, keys: Array
) -> dict[str, Any]:
  """The weights that each attacker reads, by party: leaves [repeats, ...].

  The leading axis is 1 if the defense hides nothing: every repeat would read
  the same, and copies of large networks fill the memory.

  Args:
    setting: The experiment.
    defense: Decides what attackers can read.
    state: The trained federation.
    keys: One for each repeat, [repeats].
  """
  if defense.expose is _NOTHING_HIDDEN:
    keys = keys[:1]
  return {
      str(k): jax.lax.map(
          lambda key, k=k: views.own_weights(luck(key)[1], k, defense, state),
          keys,
      )
      for k in setting.attackers
  }


def measured(
    setting: Setting, splits: Splits, keys: Array, stolen: dict[str, Any]
) -> dict[str, Any]:
  """The attacks' metrics, means over repeats, by the attacks' names in results.

  Args:
    setting: The experiment.
    splits: A seed's samples.
    keys: The same as for `weights`, [repeats].
    stolen: What `weights` returned.
  """
  found = {}
  for name, attack in attacks(setting).items():
    for k in setting.attackers:
      own = stolen[str(k)]

      def one(i, key, name=name, attack=attack, k=k, own=own):
        read = jax.tree.map(lambda x: x[0] if len(x) == 1 else x[i], own)
        return _measured(setting, splits, name, attack, k, key, read)

      each = jax.lax.map(lambda x: one(*x), (jnp.arange(len(keys)), keys))
      label = measure.label(name, k, setting.attackers)
      found[label] = jax.tree.map(lambda x: x.mean(0), each)
  return found


def luck(key: Key) -> tuple[Key, Key, Key]:
  """Three keys: for the known labels, for the view and for the attack itself.

  The first does not depend on the attack. So all attacks of a seed know the
  same labels, and can be compared with baselines seed by seed.
  """
  known, view, run = jax.random.split(key, 3)
  return known, view, run


def _measured(setting, splits, name, attack, k, key, stolen):
  who, _, recipe = attackers.attacker(setting.config, name)
  k_known, _, k_run = luck(key)
  known = division.known(k_known, splits.train, who.known)
  view = views.OF_ONES_OWN[attack.view](
      views.Own(stolen, k, known, splits.test, splits.train)
  )
  key = k_run if recipe.one_luck else measure.own_key(k_run, name)
  guess = attack.run(key, view)
  return (recipe.measure or measure.of_completion)(guess, splits.test.labels)
