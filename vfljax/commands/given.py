"""What a command is given: its arguments, and finished work directories."""
import argparse
from pathlib import Path
from typing import NoReturn

from vfljax.runner.errors import UserError


AsWritten = argparse.RawDescriptionHelpFormatter


class Parser(argparse.ArgumentParser):
  """One whose errors are ours: a line, and exit code 2."""

  def error(self, message: str) -> NoReturn:
    usage = ' '.join(self.format_usage().split())
    raise UserError(f'{self.prog}: {message}.\n{usage}')


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
