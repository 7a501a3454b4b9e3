"""Fields of a config on the command line: --config.<field>."""
import difflib

from vfljax.runner.cli import helping, own_flags
from vfljax.runner.config import Config
from vfljax.runner.errors import UserError


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


def meant(flag: str) -> str:
  """Suggests a field for an unknown flag: --config.train.epochs for --epochs.

  Args:
    flag: The flag's name.

  Returns:
    One line; '' if no field of a config ends in that name.
  """
  known = [
      path for path, inner in dict(helping.fields(Config, '')).items()
      if not inner and path.rpartition('.')[2] == flag
  ]
  if not known:
    return ''
  close = ' or '.join(f'--config.{path}' for path in sorted(known))
  return f'Unknown command line flag {flag!r}. Did you mean {close}?'
