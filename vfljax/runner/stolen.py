"""Attacks after training whose attacker needs nothing but stolen weights.

Most of what is compiled of a training's end is attackers' own trainings, and
most of these begin with a bottom network's weights, as far as a defense lets
them be read, and samples. So they are functions of these: the same for all
defenses whose weights have one structure, which a program can be made of once.

A baseline that is one of them from other weights is *paired* with it: the same
training begins once with each, so that it is compiled once.
"""
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from vfljax import measure, views
from vfljax.attack import Attack
from vfljax.defense import Defense
from vfljax.leakage import AttackName
from vfljax.runner import attackers, division
from vfljax.runner.division import Splits
from vfljax.runner.setting import Setting
from vfljax.types import Array, Key, State

_NOTHING_HIDDEN = Defense._field_defaults['expose']


def attacks(setting: Setting) -> dict[str, Attack]:
  """Those of the attacks after training, by name."""
  return {
      name: attack for name, attack in setting.after_training.items()
      if attack.view in views.OF_ONES_OWN
      and not attack.against and not attack.wants.samples
  }


def paired(setting: Setting) -> dict[str, str]:
  """The attacks among them that have a baseline which is they anew: whose."""
  own, found = attacks(setting), {}
  for baseline in own:
    about = attackers.recipe(baseline)
    parsed = AttackName.parse(baseline)
    name = AttackName(about.anew, parsed.variant).named if about.anew else ''
    if name in own and _alike(setting, name, baseline):
      found[name] = baseline
  return found


def _alike(setting: Setting, name: str, other: str) -> bool:
  """Whether two attackers know as much, do the same and are measured alike."""
  one, two = (attackers.attacker(setting.config, n) for n in (name, other))
  same = lambda attacker: (
      attacker.who, attacker.own, attacker.recipe.measure,
      attacker.recipe.one_luck,
  )
  return same(one) == same(two)


def shared(setting: Setting, baselines: Setting) -> tuple[Setting, Setting]:
  """Those that are paired go from the baselines to what they are paired with.

  Args:
    setting: With attacks, no baselines.
    baselines: With these alone.
  """
  everything = setting.after_training | baselines.after_training
  both = setting._replace(after_training=everything)
  pairs = set(paired(both).values())
  some = lambda names: {n: a for n, a in everything.items() if n in names}
  return (
      setting._replace(after_training=some({*setting.after_training, *pairs})),
      baselines._replace(
          after_training=some(set(baselines.after_training) - pairs)
      ),
  )


def asked(setting: Setting, found: dict[str, Any]) -> dict[str, Any]:
  """What was found by attacks of this setting, without those of others."""
  names = {
      measure.label(name, k, setting.attackers)
      for name in setting.after_training for k in setting.attackers
  }
  return {name: values for name, values in found.items() if name in names}


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
    setting: Setting, splits: Splits, keys: Array, stolen: dict[str, Any],
    pairs: Any = True,
) -> dict[str, Any]:
  """How well the attacks do, by what results call them.

  Args:
    splits: A seed's samples.
    keys: [repeats], as for `weights`.
    stolen: What `weights` returned.
    pairs: Whether to play what is `paired`, too; may be traced. What is not
      played has zeros.
  """
  found, baselines = {}, paired(setting)
  repeats = len(keys)
  for name in attacks(setting):
    if name in baselines.values():
      continue
    names = [name, *([baselines[name]] if name in baselines else [])]
    for k in setting.attackers:
      one = partial(_one, setting, splits, names, k, keys, stolen[str(k)])
      each = _some(one, len(names) * repeats, repeats, pairs)
      for i, own in enumerate(names):
        label = measure.label(own, k, setting.attackers)
        mine = slice(i * repeats, (i + 1) * repeats)
        found[label] = jax.tree.map(lambda x, of=mine: x[of].mean(0), each)
  return found


def _some(one: Callable[[Array], Any], most: int, least: int, more: Any) -> Any:
  """`one` of 0, 1, ... stacked: of `most`, or, if not `more`, of `least`."""
  if more is True or most == least:
    return jax.lax.map(one, jnp.arange(most))
  one = jax.jit(one)  # Whose shapes are then known from one trace.
  row = jax.eval_shape(one, jnp.int32(0))
  none = jax.tree.map(lambda s: jnp.zeros((most, *s.shape), s.dtype), row)

  def body(i, rows):
    return jax.tree.map(lambda x, new: x.at[i].set(new), rows, one(i))

  return jax.lax.fori_loop(0, jnp.where(more, most, least), body, none)


def _one(setting, splits, names, k, keys, stolen, i):
  """The i-th try of party k: of the first attack's, then of its baseline's."""
  which = i % len(keys)
  key = keys[which]
  read = jax.tree.map(lambda x: x[0] if len(x) == 1 else x[which], stolen)
  who, _, recipe = attackers.attacker(setting.config, names[0])
  k_known, _, k_run = luck(key)
  known = division.known(k_known, splits.train, who.known)
  attack, *others = (attacks(setting)[name] for name in names)
  view = views.OF_ONES_OWN[attack.view](
      views.Own(read, k, known, splits.test, splits.train)
  )
  lucks = [
      k_run if recipe.one_luck else measure.own_key(k_run, name)
      for name in names
  ]
  key = lucks[0]
  for other, own in zip(others, lucks[1:]):
    anew = i >= len(keys)
    key = jnp.where(anew, own, key)
    view = jax.tree.map(
        lambda new, old, anew=anew: jnp.where(anew, new, old),
        other.anew(key, view), view,  # pyright: ignore
    )
  guess = attack.run(key, view)
  return (recipe.measure or measure.of_completion)(guess, splits.test.labels)


def luck(key: Key) -> tuple[Key, Key, Key]:
  """Of which labels are known, of what is seen, and of the attack itself.

  Every attack of a seed knows the same labels, its baselines too.
  """
  known, view, run = jax.random.split(key, 3)
  return known, view, run
