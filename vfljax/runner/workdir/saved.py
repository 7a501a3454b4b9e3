"""Completes configurations that earlier versions saved.

A work directory keeps its whole configuration. If a later version adds a field
to `Config`, earlier runs did what the field's default does. So they can be
continued; only another value than the default makes a different experiment. The
same holds for NamedTuples among a defense's options (a simulated attacker),
which are lists in JSON.

Attacks' options, once in one table, are now each attack's own: `MOVED`.
Settings without any effect, once allowed, are now refused; they are removed
from a saved configuration. The number of rounds that are played again means
nothing where no attack needs any: it was 1 unless set, and is 0 now.
"""
from collections.abc import Callable, Mapping
import dataclasses
from itertools import zip_longest
import json
import typing
from typing import Any, TypeVar

from vfljax import attacks
from vfljax.attack import REPLAYED, ROUND, TRAINING, recipe_of
from vfljax.leakage import AttackName
from vfljax.runner.checking import combinations
from vfljax.runner.config import (
    OR, AuxiliaryConfig, Config, DataConfig, ModelConfig,
)
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import choosing

_T = TypeVar('_T')
_COMPLETION = (
    'epochs', 'batch_size', 'stages', 'learning_rate', 'optimizer', 'schedule',
    'bottom_rate', 'weight_decay', 'head', 'tune', 'norm', 'standardize',
)
# Field of 'attack' in version 0.1 -> (group, option) that it is now, for each
# group of attacks that has it.
MOVED: dict[str, tuple[tuple[str, str], ...]] = {
    name: (('completion', name),) for name in _COMPLETION
} | {
    name: (('completion', name), ('mixmatch', name))
    for name in ('epochs', 'stages', 'tune')
} | dict(
    median=(('median_scoring', 'center'),),
    iterations=(('mixmatch', 'iterations'),),
    inversion_steps=(('gradient_inversion', 'steps'),),
    inversion_restarts=(('gradient_inversion', 'restarts'),),
    triggered=(('label_replacement', 'triggered'),),
    targets=(('label_replacement', 'targets'),),
    amplify=(('label_replacement', 'amplify'),),
    noisy=(('noisy_sample', 'rate'),),
    noise=(('noisy_sample', 'std'),),
    missing=(('missing_features', 'rate'),),
    cafe_pool=(('cafe', 'pool'),),
    cafe_batch=(('cafe', 'batch'),),
    cafe_steps=(('cafe', 'steps'),),
    cafe_restarts=(('cafe', 'restarts'),),
    shadow=(('model_inversion', 'shadow'),),
    shadow_steps=(('model_inversion', 'shadow_steps'),),
    inverted=(('model_inversion', 'samples'),),
    variation=(('model_inversion', 'variation'),),
)


def completed(saved: dict, now: Any = None, kind: Any = Config) -> dict:
  """A saved configuration with defaults for the fields that it lacks.

  Args:
    saved: What `dataclasses.asdict` made of a `kind`, after JSON.
    now: The configuration to compare it with. It shows which lists are
      NamedTuples, and of which type.
    kind: The dataclass.

  Returns:
    The completed configuration, with its groups and lists of groups completed
    too. Entries that `kind` does not know stay. In a `Config`, settings without
    any effect are at their defaults, and rounds that no attack needs are as
    many as in `now`.
  """
  types = typing.get_type_hints(kind)
  found = dict(saved)
  if kind is Config and isinstance(saved.get('attack'), dict):
    found['attack'] = saved['attack'] | {'own': _own(saved, now)}
    for old in MOVED:
      found['attack'].pop(old, None)
    saved = found
  for f in dataclasses.fields(kind):
    if f.name in saved:
      here = getattr(now, f.name, None)
      found[f.name] = _deeper(saved[f.name], here, types[f.name])
    elif f.default is not dataclasses.MISSING:
      found[f.name] = _plain(f.default)
    elif f.default_factory is not dataclasses.MISSING:
      found[f.name] = _plain(f.default_factory())
  return _without_idle(found, now) if kind is Config else found


def continued(saved: dict, now: Config, classes: int) -> dict:
  """`completed`, with the listed attacks of `now` if the same ones are run.

  A list that names alternatives today named one attack of them before.
  """
  found = completed(saved, now)
  then = dataclasses.replace(
      now, attacks=found['attacks'],
      listed_attacks=tuple(found['listed_attacks']),
  )
  try:
    ran = choosing.attack_names(then, classes)
  except UserError:  # An attack that there is not any more.
    return found
  if ran == choosing.attack_names(now, classes):
    found['listed_attacks'] = [*now.listed_attacks]
  return found


def _without_idle(found: dict, now: Config | None) -> dict:
  """A complete configuration with settings of no effect at their defaults."""
  idle = combinations.idle(
      _known(DataConfig, found['data']), _known(ModelConfig, found['model']),
      _known(AuxiliaryConfig, found['auxiliary']),
  )
  defaults = dataclasses.asdict(Config())
  for one in idle:
    default = _plain(defaults[one.group][one.field])
    found[one.group] = found[one.group] | {one.field: default}
  if not replays(found):
    rounds = (now or Config()).attack.replay_rounds
    found['attack'] = found['attack'] | dict(replay_rounds=rounds)
  return found


def replays(found: Mapping[str, Any]) -> bool:
  """Whether an attack of the configuration may attack rounds played again."""
  known = {name: recipe_of(made) for name, made in attacks.REGISTRY.items()}
  return found['attack'].get('replay') or any(
      base not in known or known[base].stage == REPLAYED
      for base in _bases(found)
  )


def knows(found: Mapping[str, Any]) -> bool:
  """Whether an attack asked for may know as many labels as `attack.known`.

  An attack on a round that is played, or on training itself, is told none; a
  variant may say itself how many it knows.
  """
  known = {name: recipe_of(made) for name, made in attacks.REGISTRY.items()}
  asked = found.get('attacks', '').strip(' ,')
  names = _names(dict(attacks=asked) if asked else found) - {
      variant['name'] for variant in found.get('variants', ())
      if 'known' in variant['options']
  }
  return any(
      base not in known or known[base].stage not in (ROUND, TRAINING)
      for base in (AttackName.parse(name).base for name in names)
  )


def _known(kind: Callable[..., _T], group: dict) -> _T:
  """A group of a complete configuration as a `kind`, without other entries."""
  names = [f.name for f in dataclasses.fields(typing.cast(Any, kind))]
  return kind(**{name: group[name] for name in names})


def _deeper(value: Any, now: Any, kind: Any = None) -> Any:
  if dataclasses.is_dataclass(kind) and isinstance(value, dict):
    return completed(value, now, kind)
  if isinstance(value, dict):
    known = now if isinstance(now, dict) else {}
    return {k: _deeper(v, known.get(k)) for k, v in value.items()}
  if not isinstance(value, list):
    return value
  if hasattr(now, '_fields'):  # A NamedTuple: fields are added at its end.
    added = now._fields[len(value):]
    new = [_plain(now._field_defaults.get(name)) for name in added]
    return [_deeper(v, n) for v, n in zip(value, now)] + new
  inner = (*typing.get_args(kind), None)[0]
  others = now if isinstance(now, (list, tuple)) else ()
  pairs = zip_longest(value, others[: len(value)])
  return [_deeper(v, n, inner) for v, n in pairs]


def _plain(value: Any) -> Any:
  if dataclasses.is_dataclass(value) and not isinstance(value, type):
    return dataclasses.asdict(value)
  return json.loads(json.dumps(value))


def _own(saved: dict, now: Any) -> dict:
  """The attacks' own options of a saved configuration.

  If those of `now` mean the same, they are returned in its form, which may
  spell out defaults.
  """
  attack, used = saved['attack'], _groups(saved)
  own = {k: dict(v) for k, v in attack.get('own', {}).items()}
  for old, places in MOVED.items():
    for group, option in places:
      if old in attack and group in used:
        own.setdefault(group, {})[option] = attack[old]
  theirs = _plain(now.attack.own) if now else {}
  same = _in_full(own) == _in_full(theirs)
  return theirs if same else own


def _bases(saved: Mapping[str, Any]) -> set[str]:
  """The attacks that a configuration names, without their variants."""
  return {AttackName.parse(name).base for name in _names(saved)}


def _names(saved: Mapping[str, Any]) -> set[str]:
  """The attacks and variants that a configuration names."""
  asked = [a for a in saved.get('attacks', '').split(',') if a.strip()]
  listed = (text.split(OR) for text in saved.get('listed_attacks', ()))
  names = [*asked, *(name for options in listed for name in options)]
  return {name.strip() for name in names}


def _groups(saved: dict) -> set[str]:
  """The groups of options of the attacks that a configuration names."""
  bases = _bases(saved)
  known = {name: recipe_of(made) for name, made in attacks.REGISTRY.items()}
  # An attack's baseline runs too, and has its own options.
  bases |= {known[name].score.over for name in bases if name in known}
  return {made.group for name, made in known.items() if name in bases}


def _in_full(own: dict) -> dict:
  """The options that are not at their defaults."""
  known = {
      made.group: made.options()._asdict()
      for made in map(recipe_of, attacks.REGISTRY.values())
  }
  full = {
      group: {
          k: v for k, v in given.items()
          if v != _plain(known.get(group, {}).get(k))
      }
      for group, given in own.items()
  }
  return {group: given for group, given in full.items() if given}
