"""What a command is given: its arguments, and finished work directories."""
import argparse
from collections.abc import Sequence
from pathlib import Path
import re
from typing import NoReturn

from vfljax.runner.errors import UserError


AsWritten = argparse.RawDescriptionHelpFormatter


class Parser(argparse.ArgumentParser):
  """One whose errors are ours: a line, and exit code 2."""

  def error(self, message: str) -> NoReturn:
    usage = ' '.join(self.format_usage().split())
    raise UserError(f'{self.prog}: {message}.\n{usage}')

  def with_config(
      self, argv: Sequence[str]
  ) -> tuple[argparse.Namespace, list[str]]:
    """What was asked for, and the fields of a config, as they were typed.

    Raises:
      UserError: for what is neither.
    """
    asked, rest = self.parse_known_args(argv)
    odd = [a for a in rest if not re.match(r'--?config\.', a)]
    if odd:
      raise UserError(
          f'{self.prog}: unknown argument {odd[0]!r}.\nFields of a config are '
          'set like --config.seeds=10; --help shows what else there is.'
      )
    return asked, rest


def finished(folder: str) -> Path:
  """A work directory that has results.

  Raises:
    UserError: if it is none.
  """
  place = Path(folder).expanduser()
  if (place / 'report/results.jsonl').is_file():  # That of `recommend`.
    return place / 'report'
  if not (place / 'results.jsonl').is_file():
    what = 'has no results.jsonl' if place.is_dir() else 'is no folder'
    raise UserError(
        f'{folder} {what}: give the --workdir of a run, or the folder that its '
        'report is in.'
    )
  if not (place / 'results.jsonl').stat().st_size:
    raise UserError(
        f'{folder} has no results yet: its run was stopped before its first '
        'defense was done. The same command continues it.'
    )
  return place
