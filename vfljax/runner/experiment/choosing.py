"""Which defenses and attacks an experiment has: listed or asked for by name."""
from collections.abc import Mapping, Sequence
import dataclasses
import difflib
import math
import re

from vfljax import attacks, defenses
from vfljax.runner.config import OR, Config, Entry, default_entry
from vfljax.runner.config.ranges import shown
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import attackers, federations
from vfljax.scene import Scene

# 'marvell(3, 6)' or 'iso', between commas.
_CHOSEN = re.compile(r'\s*([^,()]*?)\s*(?:\(([^()]*)\)\s*)?(?:,|$)')


def entries(config: Config, classes: int = 2) -> list[Entry]:
  """The defenses to run, the undefended federation first.

  With more than two classes, listed defenses for two classes are left out.
  Defenses asked for by name are kept, and `checks.make` refuses them.

  Raises:
    UserError: for a name that is not a defense, or invalid strengths.
  """
  listed = {entry.name: entry for entry in config.listed}
  if len(listed) < len(config.listed):
    names = [entry.name for entry in config.listed]
    twice = next(name for name in names if names.count(name) > 1)
    raise UserError(
        f'Two listed defenses have the same name, {shown(twice)}; give one a '
        'label.'
    )
  for entry in config.listed:
    _refuse_unknown('defense', [entry.defense], list(defenses.REGISTRY))
  asked = _with_strengths(config.defenses)
  names = list(asked)
  known = [*dict.fromkeys([*listed, *defenses.REGISTRY])]
  _refuse_unknown('defense', names, known)
  if not names:
    names = [
        name for name, entry in listed.items()
        if classes == 2 or not defenses.REGISTRY[entry.defense].binary
    ]
  chosen = [
      _at(listed.get(name) or default_entry(name), asked.get(name))
      for name in names
  ]
  # Utility loss is measured against the undefended federation.
  if 'none' not in names:
    chosen.insert(0, listed.get('none') or Entry('none'))
  return sorted(chosen, key=lambda entry: entry.name != 'none')


def recorded(
    config: Config, measured: Mapping[str, tuple[float, ...]]
) -> list[Entry]:
  """The defenses of a work directory, which need not be registered here.

  Args:
    config: The directory's configuration.
    measured: Each defense's strengths in the directory's results.

  Raises:
    UserError: if `config.defenses` cannot be parsed.
  """
  listed = {entry.name: entry for entry in config.listed}
  asked = _with_strengths(config.defenses)
  found = {'none': listed.get('none') or Entry('none')}
  for name in asked or listed:
    entry = listed.get(name)
    if not entry and name in defenses.REGISTRY:
      entry = default_entry(name)
    entry = entry or Entry(name, measured.get(name, ()))
    strengths = asked.get(name)
    found[name] = (
        dataclasses.replace(entry, strengths=strengths) if strengths else entry
    )
  return list(found.values())


def attack_names(config: Config, classes: int = 2) -> list[str]:
  """The attacks to run, with the baselines that they are compared with.

  Listed attacks that cannot work here are left out; of alternatives, 'a|b', the
  first that can is run. Attacks asked for by name are kept, and `checks.make`
  refuses them.

  Raises:
    UserError: for a name that is not an attack.
  """
  names, scene = _asked(config), federations.scene(config, classes)
  if not names:
    able = [_able(options, scene) for options in _listed(config)]
    names = [name for name in able if name]
  return _with_baselines(config, names, scene)


def left_out(config: Config, classes: int) -> list[str]:
  """The listed attacks that cannot work here, nor can an alternative.

  Raises:
    UserError: for a name that is not an attack.
  """
  if _asked(config):
    return []
  scene = federations.scene(config, classes)
  return [
      options[0] for options in _listed(config) if not _able(options, scene)
  ]


def attacks_meant(config: Config) -> list[str]:
  """The attacks asked for or listed, with baselines, whatever the data.

  All alternatives are among them.

  Raises:
    UserError: for a name that is not an attack.
  """
  listed = [name for options in _listed(config) for name in options]
  return _with_baselines(
      config, _asked(config) or listed, federations.scene(config, 2)
  )


def _asked(config: Config) -> list[str]:
  """The attacks asked for by name; [] for those that the config lists."""
  names = _names(config.attacks)
  listed = [name for options in _listed(config) for name in options]
  known = [*attacks.REGISTRY, *(variant.name for variant in config.variants)]
  _refuse_unknown('attack', [*names, *listed], known)
  return names


def _listed(config: Config) -> list[list[str]]:
  """Each listed attack with its alternatives."""
  return [
      [name.strip() for name in text.split(OR)]
      for text in config.listed_attacks
  ]


def _able(options: Sequence[str], scene: Scene) -> str:
  """The first attack that works in such a federation; '' if none does."""
  can = (n for n in options if not attackers.recipe(n).why_not(n, scene))
  return next(can, '')


def _with_baselines(
    config: Config, names: list[str], scene: Scene
) -> list[str]:
  more = [b for n in names for b in attackers.baselines(config, n, scene)]
  return list(dict.fromkeys([*names, *more]))


def _with_strengths(text: str) -> dict[str, tuple[float, ...] | None]:
  """Parses 'marvell(3,6),iso': each name's strengths, `None` if none are given.

  Raises:
    UserError: for strengths that are not numbers, or a name that is given twice
      with different strengths.
  """
  found: dict[str, tuple[float, ...] | None] = {}
  place = 0
  while place < len(text):
    match = _CHOSEN.match(text, place)
    if not match or match[2] is not None and not match[1]:
      raise UserError(
          f'defenses must look like marvell(3,6),iso; got {shown(text)}.'
      )
    name, place = match[1], match.end()
    if not name:
      continue
    strengths = None if match[2] is None else _numbers(name, match[2])
    if found.get(name, strengths) != strengths:
      raise UserError(
          f'defenses names {name} twice. Put all its strengths together, as in '
          f'{name}(1,2).'
      )
    found[name] = strengths
  return found


def _numbers(name: str, text: str) -> tuple[float, ...]:
  try:
    found = tuple(float(word) for word in text.split(',') if word.strip())
  except ValueError:
    found = ()
  if not found or not all(map(math.isfinite, found)):
    raise UserError(
        f'{name}({shown(text)[1:-1]}): strengths must be numbers, as in '
        f"--config.defenses='{name}(1,2.5)'."
    )
  return found


def _at(entry: Entry, strengths: tuple[float, ...] | None) -> Entry:
  """An entry with the strengths that were typed, if any.

  Raises:
    UserError: if the defense has no strength.
  """
  if strengths is None:
    return entry
  if not (entry.strengths or defenses.REGISTRY[entry.defense].strengths):
    raise UserError(
        f'{entry.name} has no strength to choose: write it without parentheses.'
    )
  return dataclasses.replace(entry, strengths=strengths)


def _names(text: str) -> list[str]:
  names = [name.strip() for name in text.split(',')]
  return list(dict.fromkeys(name for name in names if name))


def _refuse_unknown(kind: str, names: list[str], known: list[str]) -> None:
  for name in names:
    if name not in known:
      close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
      hint = f' Did you mean {close[0]}?' if close else ''
      raise UserError(
          f'There is no {kind} {shown(name)}.{hint} There are: '
          f'{", ".join(sorted(known))}.'
      )
