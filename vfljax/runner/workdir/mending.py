"""What a start finds in its work directory, made fit to go on from.

Damaged parts are set aside, so that their units are not done; what a killed run
left unfinished is removed. Nothing else is touched: what this program does not
know is somebody's.
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
  """Brings a work directory with a configuration into order.

  Args:
    place: The work directory.
    units: Those of this process.
    share: Which process this is: nothing of the others is touched.

  Raises:
    OSError: if the disk does not let it.
  """
  _make_room(place, units)
  _remove_unfinished(place, units, share)
  for unit in units:
    if parts.done(place, unit):
      _set_damaged_aside(place, unit)
    if parts.done(place, unit):  # Killed before this was gone.
      checkpoints.remove(checkpoints.folder(place, unit))


def _make_room(place: Path, units: Sequence[str]) -> None:
  """Folders where folders are, and nothing else where files will be."""
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
  """Sets aside what stands in the way: a folder for a file, or a file."""
  if os.path.lexists(path) and path.is_dir() != folder:
    why = f'is in the way: it is {"no" if folder else "a"} folder'
    disk.set_aside(place, path, why, 'it is made again')


def _remove_unfinished(
    place: Path, units: Sequence[str], share: Share
) -> None:
  """Removes what a killed run had begun to write: of this program alone."""
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
  """Sets a finished unit's files aside unless they are whole."""
  try:
    parts.curves(place, unit)
  except Damaged as why:
    # Without the first the unit is not done, whatever becomes of the other.
    disk.set_aside(
        place, parts.file(place, unit, '.json'), f'is damaged: {why}',
        'its unit runs again',
    )
    if os.path.lexists(curves := parts.file(place, unit, '.npz')):
      disk.shelve(place, curves)
