"""Repairs a work directory at the start of a run.

Damaged parts are set aside, so that their units run again, and unfinished files
of a killed run are removed. Unknown files are not touched, because they may be
the user's.
"""
from collections.abc import Sequence
import os
from pathlib import Path

from vfljax.runner.machine import disk
from vfljax.runner.workdir import checkpoints, epoch_lines, parts
from vfljax.runner.workdir.parts import Damaged
from vfljax.runner.workdir.shares import Share


def mend(
    place: Path, units: Sequence[str], share: Share = Share()
) -> None:
  """Repairs a work directory that has a configuration.

  Args:
    place: The work directory.
    units: The units of this process.
    share: Which process this is; files of other processes are not touched.

  Raises:
    OSError: if files cannot be moved, made or removed.
  """
  _make_room(place, units)
  _remove_unfinished(place, units, share)
  for unit in units:
    if parts.done(place, unit):
      _set_damaged_aside(place, unit)
    if parts.done(place, unit):  # A run was killed before it removed them.
      checkpoints.remove(checkpoints.folder(place, unit))


def _make_room(place: Path, units: Sequence[str]) -> None:
  """Makes the folders, and sets aside what stands in their or files' places."""
  for name in ('parts', 'checkpoints', epoch_lines.FOLDER):
    _free(place, place / name, folder=True)
    (place / name).mkdir(exist_ok=True)
  for name in ('results.jsonl', 'timings.json', 'summary.md', 'report.html'):
    _free(place, place / name)
  for unit in units:
    _free(place, checkpoints.folder(place, unit), folder=True)
    _free(place, epoch_lines.file(place, unit))
    if not parts.done(place, unit):
      _free(place, parts.file(place, unit, '.npz'))


def _free(place: Path, path: Path, folder: bool = False) -> None:
  """Sets aside a folder in the place of a file, or the other way round."""
  if os.path.lexists(path) and path.is_dir() != folder:
    why = f'is in the way: it is {"no" if folder else "a"} folder'
    disk.set_aside(place, path, why, 'it is made again')


def _remove_unfinished(
    place: Path, units: Sequence[str], share: Share
) -> None:
  """Removes unfinished files that a killed run of vfljax left."""
  if share.first:
    disk.remove_unfinished(place)
  if share.count == 1:
    for folder in (place / 'parts', place / epoch_lines.FOLDER):
      disk.remove_unfinished(folder)
  for unit in units:
    for suffix in ('.json', '.npz'):
      disk.remove(disk.temporary(parts.file(place, unit, suffix)))
    checkpoints.remove_unfinished(checkpoints.folder(place, unit))
    for suffix in ('.json.tmp', '.npz.tmp'):  # As version 0.1 called them.
      stray = parts.file(place, unit, suffix)
      if stray.is_file():
        disk.remove(stray)


def _set_damaged_aside(place: Path, unit: str) -> None:
  """Sets a finished unit's files aside if they are damaged."""
  try:
    parts.curves(place, unit)
  except Damaged as why:
    # The .json goes first: without it the unit is not done.
    disk.set_aside(
        place, parts.file(place, unit, '.json'), f'is damaged: {why}',
        'its unit runs again',
    )
    if os.path.lexists(curves := parts.file(place, unit, '.npz')):
      disk.shelve(place, curves)
