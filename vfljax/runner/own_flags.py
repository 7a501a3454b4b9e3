"""Attacks' own options on the command line: --config.attack.<attack>.<option>.

Which attacks there are a config file may decide, so these flags are taken out
before the file is loaded and applied after it.
"""
import ast
import difflib
import re

from vfljax import attacks
from vfljax.attack import recipe_of
from vfljax.runner import attackers, options, saved
from vfljax.runner.config import Config
from vfljax.runner.errors import UserError

_FLAG = re.compile(r'--?config\.attack\.(\w+)\.(\w+)=(.*)', re.DOTALL)

Flag = tuple[str, str, str]  # attack, option, value


def taken(argv: list[str]) -> tuple[list[str], list[Flag]]:
  """The command line without such flags, and the flags."""
  rest, flags = [], []
  for argument in argv:
    if match := _FLAG.fullmatch(argument):
      flags.append((match[1], match[2], match[3]))
    else:
      rest.append(argument)
  return rest, flags


def apply(config: Config, flags: list[Flag]) -> None:
  """Sets the options in a configuration.

  Raises:
    UserError: for an attack or an option that there is not, or a wrong value.
  """
  known = attackers.known_groups()
  for name, option, text in flags:
    group = _group(name)
    if group not in known:
      close = difflib.get_close_matches(name, [*known, *attacks.REGISTRY], n=1)
      hint = f' Did you mean {close[0]}?' if close else ''
      raise UserError(
          f'No attack has options under {name!r}; there are '
          f'{", ".join(sorted(known))}.{hint}'
      )
    own = config.attack.own.get(group, {}) | {option: _value(text)}
    options.typed(known[group], own, f'attack.{group}')
    config.attack.own = config.attack.own | {group: own}


def moved(path: str) -> str:
  """Where a field of earlier versions is now; '' if it never was one."""
  group, _, name = path.partition('.')
  places = saved.MOVED.get(name, ()) if group == 'attack' else ()
  return ' or '.join(f'attack.{where}.{option}' for where, option in places)


def _group(name: str) -> str:
  """The name under which an attack's options are set."""
  if name in attacks.REGISTRY:
    return recipe_of(attacks.REGISTRY[name]).group
  return name


def _value(text: str):
  try:
    return ast.literal_eval(text)
  except (ValueError, SyntaxError):
    return text
