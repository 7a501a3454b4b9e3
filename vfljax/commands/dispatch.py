"""Which command is meant: `vfljax advise DIR`, and others."""
from collections.abc import Callable
import difflib
import importlib

from vfljax.runner.errors import UserError
from vfljax.runner.machine.stopping import Stop

Command = Callable[[list[str], Stop | None], int]


# A word of these is a module here, with '_' for '-', that has a `run`.
NAMES = (
    'advise', 'compare', 'export', 'from-vflair', 'grid', 'merge', 'recommend',
)


def command(name: str) -> Command:
  """The command of that name; nothing of the others is imported."""
  module = 'vfljax.commands.' + name.replace('-', '_')
  return importlib.import_module(module).run


def meant(argv: list[str]) -> list[str]:
  """The command line as one of a command; [] if it is that of an experiment.

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
    argv: What `meant` made of the command line.
    stop: True once somebody has asked to stop.

  Returns:
    The exit code.

  Raises:
    UserError: for arguments that it does not take, and whatever it refuses.
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
