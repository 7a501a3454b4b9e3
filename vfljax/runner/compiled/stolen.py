"""Attacks after training that need only stolen weights.

Most of what is compiled for the end of a training is attackers' own trainings.
Most of these start from samples and a bottom network's weights, as far as the
defense exposes them. As functions of only these they are the same for all
defenses whose weights have the same structure, so they are compiled once.
"""
import dataclasses
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
  for names in _alike(setting):
    for k in setting.attackers:
      own = stolen[str(k)]

      def one(i, key, names=names, k=k, own=own):
        read = jax.tree.map(lambda x: x[0] if len(x) == 1 else x[i], own)
        return _measured(setting, splits, names, k, key, read)

      each = jax.lax.map(lambda x: one(*x), (jnp.arange(len(keys)), keys))
      means = jax.tree.map(lambda x: x.mean(0), each)
      for i, name in enumerate(names):
        label = measure.label(name, k, setting.attackers)
        found[label] = jax.tree.map(lambda x, i=i: x[i], means)
  return found


def luck(key: Key) -> tuple[Key, Key, Key]:
  """Three keys: for the known labels, for the view and for the attack itself.

  The first does not depend on the attack. So all attacks of a seed know the
  same labels, and can be compared with baselines seed by seed.
  """
  known, view, run = jax.random.split(key, 3)
  return known, view, run


def _alike(setting: Setting) -> list[list[str]]:
  """The attacks' names; together those that one loop can run.

  These differ in nothing but the number of labels that are known.
  """
  found: list[list[str]] = []
  for name in attacks(setting):
    same = (
        names for names in found
        if _but_for_known(setting, names[0]) == _but_for_known(setting, name)
    )
    names = next(same, None)
    if names is None:
      found.append([name])
    else:
      names.append(name)
  return found


def _but_for_known(setting: Setting, name: str) -> Any:
  """All that decides how an attack runs, except the number of known labels."""
  who, own, recipe = attackers.attacker(setting.config, name)
  if not recipe.skips_blank or not who.known:
    return name
  return dataclasses.replace(who, known=0), own, recipe


def _measured(setting, splits, names, k, key, stolen):
  """The metrics of `names`, attacks that are alike: leaves [names, ...]."""
  who, _, recipe = attackers.attacker(setting.config, names[0])
  k_known, _, k_run = luck(key)
  attack = setting.after_training[names[0]]
  measured = recipe.measure or measure.of_completion

  def one(luck, known):
    view = views.OF_ONES_OWN[attack.view](
        views.Own(stolen, k, known, splits.test, splits.train)
    )
    return measured(attack.run(luck, view), splits.test.labels)

  keys = [
      k_run if recipe.one_luck else measure.own_key(k_run, name)
      for name in names
  ]
  counts = [attackers.attacker(setting.config, n).who.known for n in names]
  known = division.known(k_known, splits.train, max(counts))
  if len(names) == 1:
    return jax.tree.map(lambda x: x[None], one(keys[0], known))
  return jax.lax.map(
      lambda x: one(x[0], division.fewer(known, x[1])),
      (jnp.stack(keys), jnp.array(counts)),
  )
