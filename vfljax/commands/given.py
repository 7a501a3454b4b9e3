"""A command's inputs: its arguments, and finished work directories."""
import argparse
from collections.abc import Sequence
import difflib
import os
from pathlib import Path
import re
import shlex
from typing import Any, NoReturn

from vfljax.data.table import listing
from vfljax.runner import variants
from vfljax.runner.errors import UserError
from vfljax.runner.workdir import parts

_FIELD = r'--?config\.'
AsWritten = argparse.RawDescriptionHelpFormatter


class Parser(argparse.ArgumentParser):
  """A parser whose errors are `UserError`s: a line or two, exit code 2.

  Arguments are not to be shortened: a later version may have two that begin so.
  """

  def __init__(self, **options: Any):
    super().__init__(allow_abbrev=False, **options)

  def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
    return self._without_odd(self.parse_known_args(args, namespace))

  def parse_intermixed_args(
      self, args: Any = None, namespace: Any = None
  ) -> Any:
    return self._without_odd(self.parse_known_intermixed_args(args, namespace))

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
          f'{self.prog}: unknown argument {odd[0]!r}{self._meant(odd[0])}.\n'
          'Fields of a config are set like --config.seeds=10; --help shows '
          'what else there is.'
      )
    return asked, fields

  def _without_odd(self, parsed: tuple[Any, list[str]]) -> Any:
    asked, odd = parsed
    if odd:
      self.error(f'unknown argument {odd[0]!r}{self._meant(odd[0])}')
    return asked

  def _meant(self, word: str) -> str:
    known = [name for action in self._actions for name in action.option_strings]
    typed = word.partition('=')[0]
    close = [name for name in known if typed.startswith('--') and
             name.startswith(typed)]
    close = close or difflib.get_close_matches(typed, known, n=1, cutoff=0.75)
    return f' (did you mean {close[0]}?)' if close else ''

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


def all_finished(folders: Sequence[str]) -> list[Path]:
  """Work directories that have results.

  Raises:
    UserError: if some are none: what the first one lacks, and which others do.
  """
  found, wrong = [], {}
  for folder in folders:
    try:
      found.append(finished(folder))
    except UserError as error:
      wrong[folder] = str(error)
  if wrong:
    first, *others = wrong
    also = listing(map(repr, others))
    raise UserError(wrong[first] + (
        f'\nOthers without results: {also}.' if others else ''
    ))
  return found


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
        f'{folder or "An empty name"} {what}: give the --workdir of a run, or'
        ' the folder that its report is in.'
    )
  size = (place / 'results.jsonl').stat().st_size
  if not size and not parts.strays(place, ()):
    raise UserError(
        f'{folder} has no results yet: its run was stopped before its first '
        'defense was done. The same command continues it.'
    )
  return place
