"""A command's inputs: its arguments, and finished work directories."""
import argparse
from collections.abc import Sequence
import os
from pathlib import Path
import re
import shlex
from typing import NoReturn

from vfljax.runner import variants
from vfljax.runner.errors import UserError
from vfljax.runner.workdir import parts

_FIELD = r'--?config\.'
AsWritten = argparse.RawDescriptionHelpFormatter


class Parser(argparse.ArgumentParser):
  """A parser whose errors are `UserError`s: a line or two, exit code 2."""

  def error(self, message: str) -> NoReturn:
    usage = ' '.join(self.format_usage().split())
    raise UserError(f'{self.prog}: {message}.\n{usage}')

  def with_config(
      self, argv: Sequence[str]
  ) -> tuple[argparse.Namespace, list[str]]:
    """(our arguments, fields of a config as they were typed).

    Raises:
      UserError: for an argument that is neither.
    """
    fields = [a for a in argv if re.match(_FIELD, a)]
    self._check_values(argv)
    # argparse would end the list of files at a field between two files.
    asked, odd = self.parse_known_intermixed_args(
        [a for a in argv if a not in fields]
    )
    if odd:
      raise UserError(
          f'{self.prog}: unknown argument {odd[0]!r}.\nFields of a config are '
          'set like --config.seeds=10; --help shows what else there is.'
      )
    return asked, fields

  def _check_values(self, argv: Sequence[str]) -> None:
    """Refuses '--config.seeds 10', whose number would be taken for a file."""
    for field, word in zip(argv, argv[1:]):
      alone = re.match(_FIELD, field) and '=' not in field
      file, _ = variants.split(word)
      if alone and word[:1] != '-' and not os.path.exists(file):
        raise UserError(
            f'{self.prog}: {field} has no value.\nWrite it behind a = and '
            f'without a space: {shlex.quote(f"{field}={word[:60]}")}'
        )


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
  size = (place / 'results.jsonl').stat().st_size
  if not size and not parts.strays(place, ()):
    raise UserError(
        f'{folder} has no results yet: its run was stopped before its first '
        'defense was done. The same command continues it.'
    )
  return place
