"""Which command is meant: `vfljax advise DIR`, and others."""
from collections.abc import Callable
import difflib

from vfljax.runner.errors import UserError

Command = Callable[[list[str]], int]


def _advise() -> Command:
  from vfljax.commands import advise
  return advise.run


def _compare() -> Command:
  from vfljax.commands import compare
  return compare.run


def _export() -> Command:
  from vfljax.commands import export
  return export.run


def _merge() -> Command:
  from vfljax.commands import merge
  return merge.run


# What it is called, and what imports it: nothing of the others is needed.
NAMES: dict[str, Callable[[], Command]] = dict(
    advise=_advise, compare=_compare, export=_export, merge=_merge,
)


def run(argv: list[str]) -> int:
  """Runs the command that `argv[1]` names, with the arguments after it.

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
    return NAMES[argv[1]]()(argv[2:])
  except SystemExit as done:  # After --help.
    return int(done.code or 0)
