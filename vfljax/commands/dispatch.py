"""Finds and runs the command of a command line, as in `vfljax advise DIR`."""
from collections.abc import Callable
import difflib
import importlib

from vfljax.runner.errors import UserError
from vfljax.runner.machine.stopping import Stop

Command = Callable[[list[str], Stop | None], int]


# Each is a module here, with '_' for '-', that has a function `run`.
NAMES = (
    'advise', 'compare', 'export', 'from-vflair', 'grid', 'merge', 'recommend',
)


def command(name: str) -> Command:
  """The command of that name; other commands are not imported."""
  module = 'vfljax.commands.' + name.replace('-', '_')
  return importlib.import_module(module).run


def meant(argv: list[str]) -> list[str]:
  """The command line if it is a command's; [] if it is an experiment's.

  '--recommend my.csv' is another way to write 'recommend my.csv'.
  """
  for i, argument in enumerate(argv[1:], start=1):
    flag, equals, file = argument.partition('=')
    if flag == '--recommend':
      own = [file] if equals else []
      return [argv[0], 'recommend', *own, *argv[1:i], *argv[i + 1:]]
  return argv if argv[1:] and not argv[1].startswith('-') else []


def run(argv: list[str], stop: Stop | None = None) -> int:
  """Runs the command that `argv[1]` names, with the arguments after it.

  Args:
    argv: The result of `meant`.
    stop: True once a stop is requested.

  Returns:
    The exit code.

  Raises:
    UserError: for an unknown command or arguments, or from the command itself.
  """
  if argv[1] not in NAMES:
    close = difflib.get_close_matches(argv[1], NAMES, n=1)
    hint = f' Did you mean {close[0]}?' if close else ''
    raise UserError(
        f'There is no command {argv[1][:40]!r}; there are: '
        f'{", ".join(NAMES)}.{hint}\nAn experiment runs with --config=...'
    )
  try:
    return command(argv[1])(argv[2:], stop)
  except SystemExit as done:  # After --help.
    return int(done.code or 0)
