"""Fields of a config on the command line: --config.<field>."""
from collections.abc import Collection
import difflib

from vfljax.runner.cli import helping, own_flags
from vfljax.runner.config import Config
from vfljax.runner.errors import UserError

_NEAR = 0.7  # How alike a flag that is suggested must be, of 1.


def check(argv: list[str]) -> None:
  """Refuses --config.<field> for a field that no config has.

  Raises:
    UserError: with a suggestion.
  """
  known = dict(helping.fields(Config, ''))
  for argument in argv[1:]:
    name = argument.lstrip('-').split('=')[0]
    first, _, path = name.partition('.')
    if not path or not argument.startswith('-' if first == 'config' else '--'):
      continue  # '-1.5' is a number.
    if first != 'config':
      meant = f' Did you mean config.{path}?' if path in known else ''
      raise UserError(f'Unknown command line flag {name!r}.{meant}')
    if path not in known:
      close = difflib.get_close_matches(path, known, n=1, cutoff=0.5)
      hint = f' Did you mean {close[0]}?' if close else ' See --help.'
      now = own_flags.moved(path)
      hint = f' It is {now} now.' if now else hint
      raise UserError(f'A config has no field {path!r}.{hint}')
    if path in helping.NOT_FLAGS:
      raise UserError(f'{path} can be set in a config file only.')
    if known[path]:
      raise UserError(
          f'{path} is a group of fields: set one, like --config.{path}.'
          f'{known[path][0]}=...'
      )


def unknown(flag: str, flags: Collection[str]) -> str:
  """What is said about a flag that does not exist, with a suggestion.

  A field of a config that ends in that name, --config.train.epochs for
  --epochs; else the flag or the field whose name is nearest, --list for --lst.

  Args:
    flag: The unknown flag's name.
    flags: The names of all flags.
  """
  named: dict[str, list[str]] = {
      name: [f'--{name}'] for name in flags if '.' not in name
  }
  known = {}
  for path, inner in sorted(dict(helping.fields(Config, '')).items()):
    if not inner and path not in helping.NOT_FLAGS:
      known.setdefault(path.rpartition('.')[2], []).append(f'--config.{path}')
  close = known.get(flag)
  if not close:
    named = {name: named.get(name, []) + known.get(name, [])
             for name in {**named, **known}}
    found = difflib.get_close_matches(flag, named, n=1, cutoff=_NEAR)
    close = named[found[0]] if found else []
  hint = f'Did you mean {" or ".join(close)}?' if close else 'See --help.'
  return f'Unknown command line flag {flag!r}. {hint}'
