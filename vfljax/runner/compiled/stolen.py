"""Attacks after training that need only stolen weights.

Most of what is compiled for the end of a training is attackers' own trainings.
Most of these start from samples and a bottom network's weights, as far as the
defense exposes them. As functions of only these they are the same for all
defenses whose weights have the same structure, so they are compiled once.
"""
from collections.abc import Iterable
import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from vfljax import measure, views
from vfljax.attack import Attack
from vfljax.defense import Defense
from vfljax.runner.compiled import attempts
from vfljax.runner.experiment import attackers, division, federations
from vfljax.runner.experiment.division import Splits
from vfljax.runner.experiment.setting import Setting
from vfljax.types import Array, Batch, Key, State

# Known labels of a class, up to which attacks share a program: who knows fewer
# computes blank samples in it, which must not take long.
_FEW = 7
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
    setting: Setting, splits: Splits, keys: Array, stolen: dict[str, Any],
    played: dict[str, Array] | None = None,
) -> dict[str, Any]:
  """The attacks' metrics, means over repeats, by the attacks' names in results.

  Args:
    setting: The experiment.
    splits: A seed's samples.
    keys: The same as for `weights`, [repeats].
    stolen: What `weights` returned.
    played: As in `attempts.over_repeats`.
  """
  found = {}
  for names in _alike(setting):
    for k in setting.attackers:
      means = attempts.over_repeats(
          partial(_measured, setting, splits, names, k), keys, stolen[str(k)],
          played,
      )
      for i, name in enumerate(names):
        label = measure.label(name, k, setting.attackers)
        own = i if played is None else (slice(None), i)  # Of each repeat.
        found[label] = jax.tree.map(lambda x, own=own: x[own], means)
  return found


def measured_of_one(
    setting: Setting, splits: Splits, keys: Array, stolen: dict[str, Any],
    which: Array, played: dict[str, Array] | None = None,
) -> dict[str, Any]:
  """Like `measured` for one of the attacks, by the attacker's party.

  Args:
    setting: The experiment, with attacks of one group of `by_start`.
    which: The attack's number among `setting.after_training`.
  """
  return {
      str(k): attempts.over_repeats(
          partial(_measured_of_one, setting, splits, which, k), keys,
          stolen[str(k)], played,
      ) for k in setting.attackers
  }


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


def by_start(settings: Iterable[Setting]) -> list[list[str]]:
  """Names of attacks after training that differ in their start alone, or also
  in how few labels they know.

  Args:
    settings: One experiment's, which differ in the attacks that they have.

  Returns:
    Lists of two or more.
  """
  found: list[tuple[Any, list[str]]] = []
  everything = {
      name: setting for setting in settings for name in attacks(setting)
  }
  for name, setting in everything.items():
    rest = _rest(setting, name)
    names = next((n for other, n in found if rest and other == rest), None)
    if names is None:
      found.append((rest, [name]))
    else:
      names.append(name)
  return [names for _, names in found if len(names) > 1]


def _rest(setting: Setting, name: str) -> Any:
  """All that decides what an attack does after its start; `None`: its own."""
  who, own, recipe = attackers.attacker(setting.config, name)
  scene = federations.scene(setting.config, setting.classes)
  kind, attack = recipe.rest(own, scene), setting.after_training[name]
  if not kind or not attack.halves:
    return None
  few = recipe.rest_skips_blank(own, scene) and 1 <= who.known <= _FEW
  if few:
    who = dataclasses.replace(who, known=1)
  return kind, who, own, recipe.measure, attack.view, few


def _measured_of_one(setting, splits, which, k, key, stolen):
  """The metrics of attack number `which`."""
  names, made = zip(*setting.after_training.items())
  recipe = attackers.attacker(setting.config, names[0]).recipe
  k_known, _, run = luck(key)
  counts, known = _known(setting, splits, names, k_known)
  if len({*counts}) > 1:
    known = division.fewer(known, jnp.array(counts)[which])
  view = _view(made[0], splits, k, known, stolen)
  lucks = jnp.stack([_own_luck(setting, name, run) for name in names])
  # Under `jit` what is traced for the shapes is not traced again.
  starts = [jax.jit(attack.halves.start) for attack in made]
  shapes = [jax.eval_shape(start, lucks[0], view) for start in starts]
  if all(shape == shapes[0] for shape in shapes):
    begun = jax.lax.switch(which, starts, lucks[which], view)
    guess = made[0].halves.rest(begun, view)
  else:  # A defense shows weights of another type than a network starts with.
    guess = jax.lax.switch(
        which, [attack.run for attack in made], lucks[which], view
    )
  return attackers.scored(
      recipe.measure, measure.of_completion, guess, splits.test.labels
  )


def _known(
    setting: Setting, splits: Splits, names: Iterable[str], key: Key
) -> tuple[list[int], Batch]:
  """How many labels of each class each knows, and the samples of the one who
  knows most."""
  counts = [attackers.attacker(setting.config, n).who.known for n in names]
  return counts, division.known(key, splits.train, max(counts))


def _view(
    attack: Attack, splits: Splits, k: int, known: Batch, stolen: Any
) -> Any:
  own = views.Own(stolen, k, known, splits.test, splits.train)
  return views.OF_ONES_OWN[attack.view](own)


def _own_luck(setting: Setting, name: str, run: Key) -> Key:
  recipe = attackers.attacker(setting.config, name).recipe
  return run if recipe.one_luck else measure.own_key(run, name)


def _measured(setting, splits, names, k, key, stolen):
  """The metrics of `names`, attacks that are alike: leaves [names, ...]."""
  who, _, recipe = attackers.attacker(setting.config, names[0])
  k_known, _, k_run = luck(key)
  attack = setting.after_training[names[0]]

  def one(luck, known):
    view = _view(attack, splits, k, known, stolen)
    guess = attack.run(luck, view)
    return attackers.scored(
        recipe.measure, measure.of_completion, guess, splits.test.labels
    )

  keys = [_own_luck(setting, name, k_run) for name in names]
  counts, known = _known(setting, splits, names, k_known)
  if len(names) == 1:
    return jax.tree.map(lambda x: x[None], one(keys[0], known))
  return jax.lax.map(
      lambda x: one(x[0], division.fewer(known, x[1])),
      (jnp.stack(keys), jnp.array(counts)),
  )
