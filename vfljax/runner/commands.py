"""Commands on finished work directories: `vfljax advise DIR`, and others.

Each is a module of its own with `run(argv)`, imported when it is called.
"""
import argparse
import importlib
from pathlib import Path
from typing import NoReturn

from vfljax.runner.errors import UserError

# What it is called, and the module that does it.
NAMES = dict(
    advise='vfljax.runner.advise',
)


class Parser(argparse.ArgumentParser):
  """One whose errors are ours: a line, and exit code 2."""

  def error(self, message: str) -> NoReturn:
    raise UserError(f'{self.prog}: {message}.\n{self.format_usage().strip()}')


def run(argv: list[str]) -> int:
  """Runs the command that `argv[1]` names, with the arguments after it.

  Returns:
    The exit code.

  Raises:
    UserError: for arguments that it does not take, and whatever it refuses.
  """
  name = argv[1]
  module = importlib.import_module(NAMES[name])
  try:
    return module.run(argv[2:])
  except SystemExit as done:  # After --help.
    return int(done.code or 0)


def finished(folder: str) -> Path:
  """A work directory that has results.

  Raises:
    UserError: if it is none.
  """
  place = Path(folder).expanduser()
  if not (place / 'results.jsonl').is_file():
    what = 'has no results.jsonl' if place.is_dir() else 'is no folder'
    raise UserError(
        f'{folder} {what}: give the --workdir of a run, or the folder that its '
        'report is in.'
    )
  return place
