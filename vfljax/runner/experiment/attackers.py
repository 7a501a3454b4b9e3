"""An experiment's attackers: what each knows, its options and its attack."""
from collections.abc import Callable, Sequence
import dataclasses
import difflib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from vfljax import attacks, check, views
from vfljax.attack import (
    REPLAYED, ROUND, STAGES, TRAINED, TRAINING, Attack, Recipe, recipe_of,
)
from vfljax.check import Misfit
from vfljax.leakage import AttackName
from vfljax.telling import is_real
from vfljax.runner.config import (
    AttackConfig, Config, Variant, options, outside, ranges,
)
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import federations
from vfljax.scene import Scene
from vfljax.types import VFL

_COMMON = tuple(
    f.name for f in dataclasses.fields(AttackConfig) if f.name != 'own'
)
# Those that a variant cannot have otherwise, as they are of all attacks.
_OF_ALL = ('party', 'pool', 'when', 'repeats', 'auxiliary')


class Attacker(NamedTuple):
  """An attacker and its attack.

  Attributes:
    who: The options that all attacks have, `--config.attack.<option>`.
    own: The attack's own options.
    recipe: How the attack is made and measured.
  """

  who: AttackConfig
  own: Any
  recipe: Recipe


def recipe(name: str) -> Recipe:
  """The recipe of an attack, or of the attack that a variant is of.

  Raises:
    UserError: if it is not registered.
  """
  base = AttackName.parse(name).base
  if base not in attacks.REGISTRY:
    raise UserError(f'There is no attack {base!r}, see --list attacks.')
  return recipe_of(attacks.REGISTRY[base])


def attacker(config: Config, name: str) -> Attacker:
  """An attack's attacker with its options.

  Raises:
    UserError: for an option that the attack does not have, or a value of the
      wrong type.
  """
  made = recipe(name)
  special = _special(config, name)
  common = {
      k: v for k, v in special.items()
      if k in _COMMON and k not in made.options._fields  # As `cafe.pool`.
  }
  own = config.attack.own.get(made.group, {}) | {
      k: v for k, v in special.items() if k not in common
  }
  who = dataclasses.replace(config.attack, **common)
  ranges.check(who, f'{name}: attack' if common else 'attack')
  return Attacker(
      who, options.typed(made.options, own, f'attack.{made.group}'), made
  )


def scored(
    own: Callable[[Any, Any], Any] | None, usual: Callable[[Any, Any], Any],
    guess: Any, truth: Any,
) -> dict[str, jax.Array]:
  """What a recipe's own measure finds of a guess, or else the usual one.

  Raises:
    ValueError: for anything else, which no row of the results could hold.
  """
  if own is None:
    return usual(guess, truth)
  found = own(guess, truth)
  if not isinstance(found, dict):
    raise Misfit(
        'measure must return numbers by their names, as dict(mine=...); it '
        f'returned {check.kind(found)}.'
    )
  for name, x in found.items():
    number = isinstance(x, (int, float)) or is_real(x)
    if not (isinstance(name, str) and number) or jnp.shape(x):
      what = f'of the shape {jnp.shape(x)}' if number else check.kind(x)
      raise Misfit(
          'measure must return numbers by their names, as dict(mine=x.mean()); '
          f'{name!r} is {what}.'
      )
  return {name: jnp.asarray(x) for name, x in found.items()}


def differs(config: Config, name: str, option: str) -> bool:
  """Whether an attack is a variant with its own value of a common option."""
  return option in _special(config, name)


def ignored(config: Config, variant: Variant) -> list[str]:
  """A variant's options that would be ignored, as they are of all attacks."""
  made = attacks.REGISTRY.get(AttackName.parse(variant.name).base)
  own = recipe_of(made).options._fields if made else ()
  return [
      name for name, value in variant.options.items()
      if name in _OF_ALL and name not in own
      and value != getattr(config.attack, name)
  ]


def baselines(config: Config, name: str, scene: Scene) -> list[str]:
  """The names of the baselines that an attack is compared with.

  A variant that changes what the attacker knows has baselines of its own that
  know the same: 'local_model:80' for 'model_completion:80'.

  Raises:
    UserError: for a baseline that is not registered.
  """
  found, variant = recipe(name).baselines(scene), AttackName.parse(name).variant
  for base in found:
    if base not in attacks.REGISTRY:
      raise UserError(
          f'{name} has the baseline {base!r}, which is not registered. '
          f'Register it with attacks.REGISTRY[{base!r}] = ..., or leave it out '
          "of the recipe's baselines."
      )
  if not set(_COMMON) & set(_special(config, name)):
    return list(found)
  return [AttackName(base, variant).named for base in found]


def _special(config: Config, name: str) -> dict[str, Any]:
  """The options in which a variant, or its baseline, differs."""
  variant = AttackName.parse(name).variant
  for one in config.variants:
    if one.name == name:
      return one.options
  if not variant or not recipe(name).is_baseline:
    return {}
  same = (
      one.options for one in config.variants
      if AttackName.parse(one.name).variant == variant
  )
  return {k: v for k, v in next(same, {}).items() if k in _COMMON}


def known_groups() -> dict[str, Any]:
  """Options' types by group, the name in `--config.attack.<group>.<option>`."""
  recipes = map(recipe_of, attacks.REGISTRY.values())
  return {made.group: made.options for made in recipes if made.options._fields}


def group_options(group: str, given: dict[str, Any]) -> Any:
  """A group's options with the given values.

  Raises:
    UserError: for an unknown group or option, or a value of the wrong type.
  """
  known = known_groups()
  if group not in known:
    close = difflib.get_close_matches(group, known, n=1)
    hint = f' Did you mean {close[0]}?' if close else ''
    raise UserError(
        f'No attack has options under {group!r}; there are '
        f'{", ".join(sorted(known))}.{hint}'
    )
  return options.typed(known[group], given, f'attack.{group}')


def made(
    config: Config, names: Sequence[str], vfl: VFL, classes: int
) -> dict[str, dict[str, Attack]]:
  """The attacks by stage, then by name.

  Attacks that change the training (backdoors) are left out: they are made when
  training starts.

  Raises:
    ValueError: for an attack that cannot work on the federation.
  """
  scene = federations.scene(config, classes)
  found: dict[str, dict[str, Attack]] = {stage: {} for stage in STAGES}
  for name in names:
    who, own, made_by = attacker(config, name)
    reason = made_by.why_not(name, scene)
    if reason:
      raise ValueError(reason)
    stage = made_by.stage
    if stage != TRAINING:
      again = stage == ROUND and who.replay
      with outside.explained(name, not outside.is_ours(made_by)):
        attack = made_by.make(own, scene, vfl)
        _check_made(name, stage, attack)
      found[REPLAYED if again else stage][name] = attack
  return found


def _check_made(name: str, stage: str, attack: Any) -> None:
  """Raises ValueError unless it is an `Attack` with a view of that stage."""
  if not isinstance(attack, Attack):
    raise ValueError(
        f'{name} must make an Attack(view, run); its factory returned '
        f'{check.kind(attack)}.'
    )
  # Looked up at each call: a program may have added views of its own.
  seen: dict[str, set[type]] = {
      ROUND: {*views.OF_A_ROUND}, TRAINED: {*views.OF_A_TRAINED_FEDERATION},
      REPLAYED: {*views.OF_A_ROUND, views.RecordedGradients, views.WhiteBox},
  }
  if attack.view in seen[stage]:
    return
  called = getattr(attack.view, '__name__', repr(attack.view))
  names = {ROUND: 'ROUND', REPLAYED: 'REPLAYED', TRAINED: 'TRAINED'}
  right = next((when for when in seen if attack.view in seen[when]), '')
  known = ', '.join(sorted(view.__name__ for view in seen[stage]))
  raise ValueError(
      f'{name} attacks {stage}, but {called} is '
      + (f'a view of {right}: recipe(stage={names[right]}).' if right
         else f'none of its views: {known}.')
  )


def backdoor(names: Sequence[str]) -> str:
  """The attack that changes how the federation trains; '' if there is none.

  Raises:
    ValueError: if there is more than one.
  """
  found = [name for name in names if recipe(name).stage == TRAINING]
  if len(found) > 1:
    raise ValueError(
        'A backdoor changes how the federation trains. Run them apart, not '
        f'{" and ".join(found)} together.'
    )
  return found[0] if found else ''


def check_apart(names: Sequence[str]) -> None:
  """Raises ValueError if two of the attacks cannot share a federation."""
  bases = {AttackName.parse(name).base for name in names}
  for name in names:
    for other in recipe(name).apart:
      if other in bases:
        raise ValueError(
            f'{AttackName.parse(name).base} changes how its party trains. Run '
            f'it apart from {other}.'
        )


__all__ = [
    'Attacker', 'REPLAYED', 'ROUND', 'TRAINED', 'TRAINING', 'attacker',
    'backdoor', 'baselines', 'check_apart', 'group_options', 'known_groups',
    'made', 'recipe',
]
