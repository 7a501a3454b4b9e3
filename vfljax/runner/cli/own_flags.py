"""Attacks' own options on the command line: --config.attack.<attack>.<option>.

A config file may register attacks, so these flags are taken out of the command
line before the file is loaded and applied after it.
"""
import re

from vfljax import attacks
from vfljax.attack import recipe_of
from vfljax.runner.config import Config, options
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import attackers, choosing
from vfljax.runner.workdir import saved

_NAME = re.compile(r'--?config\.attack\.(\w+)\.(\w+)')

Flag = tuple[str, str, str]  # attack, option, value


def taken(argv: list[str]) -> tuple[list[str], list[Flag]]:
  """The command line without such flags, and the flags."""
  rest, flags, left = [], [], list(argv)
  while left:
    argument = left.pop(0)
    flag, equals, text = argument.partition('=')
    match = _NAME.fullmatch(flag)
    if match and not equals and left and not left[0].startswith('--'):
      equals, text = '=', left.pop(0)  # '--flag value', as for fields.
    if match and equals:
      flags.append((match[1], match[2], text))
    else:
      rest.append(argument)
  return rest, flags


def apply(config: Config, flags: list[Flag]) -> None:
  """Sets the options in a configuration.

  Raises:
    UserError: for an unknown attack or option, a wrong value, or an attack that
      does not run: a typed option must have an effect. (A file may set options
      of attacks that are not chosen.)
  """
  for name, option, text in flags:
    group = _group(name)
    own = config.attack.own.get(group, {}) | {option: options.value_of(text)}
    attackers.group_options(group, own)
    config.attack.own = config.attack.own | {group: own}
  running = choosing.attacks_meant(config) if flags else []
  for name, option, _ in flags:
    if not any(attackers.recipe(n).group == _group(name) for n in running):
      raise UserError(
          f'attack.{name}.{option} does nothing: none of the attacks that run '
          f'({", ".join(running) or "none"}) has it.\nLeave it out, or choose '
          'one that has with --config.attacks=...'
      )


def moved(path: str) -> str:
  """The present name of an earlier version's field; '' if it was none."""
  group, _, name = path.partition('.')
  places = saved.MOVED.get(name, ()) if group == 'attack' else ()
  return ' or '.join(f'attack.{where}.{option}' for where, option in places)


def _group(name: str) -> str:
  """The name under which an attack's options are set."""
  if name in attacks.REGISTRY:
    return recipe_of(attacks.REGISTRY[name]).group
  return name
