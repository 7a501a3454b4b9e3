"""Whether a record may be written where `--record` says.

A record takes hours to make, so one of another command, or of more seeds, is
not overwritten.
"""
from collections.abc import Sequence
import os
from pathlib import Path
import shlex

from vfljax.runner.errors import UserError
from vfljax.runner.workdir import recording


def check(file: str, argv: Sequence[str], seeds: int = 0) -> None:
  """Checks before a run that its record can be written to `file`.

  Args:
    argv: The command line. The record of the same command is written anew.
    seeds: How many it asks for; a record of more is not overwritten.

  Raises:
    UserError: if the folder is missing or not writable, or `file` exists and
      is no record or that of another command.
  """
  place, said = Path(file).expanduser(), f'--record={shlex.quote(file)}'
  if not place.absolute().parent.is_dir():
    raise UserError(
        f'{said}: there is no folder {place.parent}. Make it first: '
        f'mkdir -p {shlex.quote(str(place.parent))}'
    )
  if not os.access(place.absolute().parent, os.W_OK):
    raise UserError(  # It would be written once all is trained.
        f'{said}: nothing can be written into {place.parent}.\nChoose another '
        'folder.'
    )
  if os.path.lexists(place):
    try:
      before = recording.read(place)
    except UserError:
      if not os.access(place, os.R_OK):
        raise
      raise UserError(
          f'{said}: this file exists and is no record of vfljax.\n'
          'Choose another name.'
      ) from None
    other = before.get('command', 'a command that it does not name')
    if _asked(other) != _asked(recording.command(argv)):
      raise UserError(
          f'{said}: choose another name, or remove that file. It is the record '
          f'of another command:\n{other}'
      )
    if 0 < seeds < len(before.get('seeds') or ()):
      raise UserError(
          f'{said}: this record has {len(before["seeds"])} seeds, the command '
          f'asks for {seeds}.\nChoose another name, or remove that '
          'file.'
      )


def _asked(line: str) -> set[str]:
  """A command's config, fields and settings of JAX, without the seeds' number.

  A config's file is the same under each of its paths.
  """
  words = [w.lstrip('-') for w in shlex.split(line)]
  return {
      f'config={os.path.abspath(w.removeprefix("config="))}'
      if w.startswith('config=') else w for w in words
      if w.startswith(('config', 'JAX_')) and not w.startswith('config.seeds=')
  }
