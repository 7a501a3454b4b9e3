"""Configurations of earlier versions: fields that did not exist yet.

A work directory keeps its whole configuration. When a later version gives
`Config` another field, the runs of before did what the field's default does;
so they go on, and only what differs from the default is another experiment.
The same holds for NamedTuples among a defense's options (an imagined attacker),
which are lists there.

What was one table of all attacks' options is each attack's own now: `MOVED`.
What changed nothing could be set before and is refused now: a directory that
has it goes on without it.
"""
from collections.abc import Callable
import dataclasses
from itertools import zip_longest
import json
import typing
from typing import Any, TypeVar

from vfljax import attacks
from vfljax.attack import recipe_of
from vfljax.leakage import AttackName
from vfljax.runner.checking import combinations
from vfljax.runner.config import (
    AuxiliaryConfig, Config, DataConfig, ModelConfig,
)

_T = TypeVar('_T')
_COMPLETION = (
    'epochs', 'batch_size', 'stages', 'learning_rate', 'optimizer', 'schedule',
    'bottom_rate', 'weight_decay', 'head', 'tune', 'norm', 'standardize',
)
# Fields that 'attack' had in version 0.1: the names under which attacks have
# them, and what they call them.
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
    saved: What `dataclasses.asdict` made of a `kind`, through JSON.
    now: The configuration with which it is to be compared: says which of its
      lists are NamedTuples, and of which kind.
    kind: The dataclass.

  Returns:
    The same, deeper groups and lists of them included. Entries that `kind` does
    not know stay. Of a `Config`, what changes nothing is at its default.
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
  return _without_idle(found) if kind is Config else found


def _without_idle(found: dict) -> dict:
  """A complete configuration whose idle settings are at their defaults."""
  idle = combinations.idle(
      _known(DataConfig, found['data']), _known(ModelConfig, found['model']),
      _known(AuxiliaryConfig, found['auxiliary']),
  )
  defaults = dataclasses.asdict(Config())
  for one in idle:
    default = _plain(defaults[one.group][one.field])
    found[one.group] = found[one.group] | {one.field: default}
  return found


def _known(kind: Callable[..., _T], group: dict) -> _T:
  """A group of a complete configuration, without what `kind` does not know."""
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

  As `now` has them, where they are the same: it may spell defaults out.
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


def _groups(saved: dict) -> set[str]:
  """Under which names the options are of the attacks that it mentions."""
  asked = saved.get('attacks', '').split(',')
  names = [*asked, *saved.get('listed_attacks', ())]
  bases = {AttackName.parse(name.strip()).base for name in names}
  known = {name: recipe_of(made) for name, made in attacks.REGISTRY.items()}
  # What an attack is measured against runs along, with options of its own.
  bases |= {known[name].score.over for name in bases if name in known}
  return {made.group for name, made in known.items() if name in bases}


def _in_full(own: dict) -> dict:
  """Without what is at its default."""
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
