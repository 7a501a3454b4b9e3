"""Which command is meant: `vfljax advise DIR`, and others."""
from collections.abc import Callable
import difflib

from vfljax.runner.errors import UserError
from vfljax.runner.stopping import Stop

Command = Callable[[list[str], Stop | None], int]


def _advise() -> Command:
  from vfljax.commands import advise
  return advise.run


def _compare() -> Command:
  from vfljax.commands import compare
  return compare.run


def _export() -> Command:
  from vfljax.commands import export
  return export.run


def _from_vflair() -> Command:
  from vfljax.commands import from_vflair
  return from_vflair.run


def _merge() -> Command:
  from vfljax.commands import merge
  return merge.run


def _recommend() -> Command:
  from vfljax.commands import recommend
  return recommend.run


# What it is called, and what imports it: nothing of the others is needed.
NAMES: dict[str, Callable[[], Command]] = {
    'advise': _advise, 'compare': _compare, 'export': _export,
    'from-vflair': _from_vflair, 'merge': _merge, 'recommend': _recommend,
}


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
    return NAMES[argv[1]]()(argv[2:], stop)
  except SystemExit as done:  # After --help.
    return int(done.code or 0)
