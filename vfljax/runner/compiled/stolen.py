"""Attacks after training whose attacker needs nothing but stolen weights.

Most of what is compiled of a training's end is attackers' own trainings, and
most of these begin with a bottom network's weights, as far as a defense lets
them be read, and samples. So they are functions of these: the same for all
defenses whose weights have one structure, which a program can be made of once.
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
  """Those of the attacks after training, by name."""
  return {
      name: attack for name, attack in setting.after_training.items()
      if attack.view in views.OF_ONES_OWN
      and not attack.against and not attack.wants.samples
  }


def without(setting: Setting) -> Setting:
  """With the other attacks after training."""
  own = attacks(setting)
  return setting._replace(after_training={
      name: attack for name, attack in setting.after_training.items()
      if name not in own
  })


def weights(
    setting: Setting, defense: Defense, state: State, keys: Array
) -> dict[str, Any]:
  """What each attacker reads, by party, with a leading axis of [repeats].

  Of [1] where a defense hides nothing: every repeat would read the same, and
  copies of large networks fill the memory.

  Args:
    keys: [repeats], one an attack.
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
  """How well the attacks do, by what results call them.

  Args:
    splits: A seed's samples.
    keys: [repeats], as for `weights`.
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
  """Of which labels are known, of what is seen, and of the attack itself.

  Every attack of a seed knows the same labels: baselines are paired.
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
