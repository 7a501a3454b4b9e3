"""An experiment's work directory, which survives a kill at any moment.

An experiment is an ordered list of named units ('none', 'iso/0', 'iso/1', ...).
A unit's file in parts/ appears in one atomic rename when the unit is done.
`results.jsonl` and `timings.json` are always rewritten whole from those files,
in the order of the units. So a run that is killed and started again ends with
the same bytes as one that was not.

The work directory:

  config.json       the whole configuration, sorted keys
  .config.json      the same with a digest, in case config.json is damaged
  results.jsonl     one measurement a line, keys in the order of `FIELDS`, then
                    the samples' file and digest (`collecting`)
  timings.json      one object per finished unit, in the order of the units
  parts/U.json      unit U's rows and timing; exists if and only if U is done
  parts/U.npz       unit U's curves over the epochs, if it has any
  epochs/U.jsonl    unit U's measured epochs, written while it runs
  tensorboard/U/    the same as event files, with --tensorboard
  checkpoints/U/N/  unit U after step N, the last two, until U is done
  damaged/          files that could not be used, under their old names
  .lock             held by the process that runs here
  .lock-0-of-2      one for each process if there are several (`meeting`)
  about.json        rows, classes, columns, versions (`about`)
  summary.md        the report that `report.writing` makes; also report.html
  .report.json      what the report was made from (`report.current`)

U is the unit's name, with '@' for '/' and '%..' for characters that file
systems refuse. Names like '.vfljax-<name>.tmp' are unfinished files; the next
start removes them, but no unknown files. Parts and checkpoints have digests: a
damaged one is set aside, and its unit runs again.
"""
from collections.abc import Callable, Mapping, Sequence
import os
from pathlib import Path
import sys
from typing import Any, NamedTuple

import numpy as np

from vfljax.runner.errors import UserError
from vfljax.runner.machine import disk
from vfljax.runner.workdir import checkpoints, collecting, identity, mending
from vfljax.runner.workdir import parts, reading
from vfljax.runner.workdir.parts import FIELDS, Damaged, Finished
from vfljax.runner.workdir.shares import Share

__all__ = [
    'FIELDS', 'Workdir', 'open_workdir', 'read_config', 'read_curves',
    'read_results', 'read_timings',
]

read_config, read_results = reading.config, reading.results
read_timings = reading.timings


class Workdir(NamedTuple):
  """An open work directory. All state is on disk.

  Attributes:
    path: The directory.
    units: The experiment's units, in the order of the results.
    share: Which process this is; the first writes the files about all units.
  """

  path: Path
  units: tuple[str, ...]
  share: Share = Share()

  def done(self, unit: str) -> bool:
    """Whether the unit's results are saved."""
    return parts.done(self.path, unit)

  def save(
      self, unit: str, rows: Sequence[Mapping], timing: Mapping,
      curves: Mapping | None = None,
  ) -> None:
    """Saves a finished unit, and updates results.jsonl and timings.json.

    Args:
      unit: The unit's name.
      rows: Measurements; each has exactly the keys of `FIELDS`. Floats are
        rounded to 7 significant digits; NaN and infinities become null.
      timing: Anything that JSON can store. The report knows `compile_seconds`,
        `run_seconds`, `rounds_per_second`, `seeds`, `device`,
        `peak_memory_bytes`, `classes` (for the accuracy of guessing) and
        `crossing` (`auditing.of_job`), and shows others that are no mappings.
      curves: Name -> array [seeds, epochs]: 'norm_scoring/leak_auc' for an
        attack's metric, 'auc' for a utility metric; NaN if not measured.

    Raises:
      UserError: if it cannot be written; the unit is then not done.
      ValueError: if a row's keys are not `FIELDS`.
    """
    self.save_all([Finished(unit, rows, timing, curves)])

  def save_all(self, finished: Sequence[Finished]) -> None:
    """Saves several units, and updates results.jsonl and timings.json once.

    Raises:
      UserError, ValueError: as in `save`; units before the failed one are done.
    """
    with disk.writing(self.path):
      for each in finished:
        parts.write(self.path, *each)
      if self.share.first:
        collecting.collect(self.path, self.units, self.share.count)
      for each in finished:
        checkpoints.remove(self._checkpoints(each.unit))

  def collect(self) -> None:
    """Updates results.jsonl and timings.json with units of other processes.

    Raises:
      UserError: if they cannot be written, or a unit's file is damaged.
    """
    with disk.writing(self.path):
      collecting.collect(self.path, self.units, self.share.count)

  def adopt(self, other: Path, unit: str) -> None:
    """Copies a unit's results from another run in which the unit is the same.

    Nothing happens if it is done here, or missing or damaged there.

    Args:
      other: The other run's work directory. The caller must know that the unit
        is the same in both.
      unit: The unit's name.

    Raises:
      UserError: if it cannot be written.
    """
    if self.done(unit) or not parts.done(other, unit):
      return
    try:
      part, curves = parts.read(other, unit), parts.curves(other, unit)
    except Damaged:
      return
    self.save(unit, part['rows'], part['timing'], curves)

  def save_checkpoint(self, unit: str, step: int, tree: Any) -> None:
    """Saves a checkpoint of a unit; the one before it is kept too.

    Args:
      unit: The unit's name.
      step: How much of the unit is done, for example its epochs; 0 or more.
      tree: A pytree of arrays, numbers and typed PRNG keys, or its snapshot.

    Raises:
      UserError: if it cannot be written.
    """
    with disk.writing(self.path):
      checkpoints.save(self._checkpoints(unit), step, tree)

  def load_checkpoint(
      self, unit: str, like: Any, stride: int = 1, end: int = 0
  ) -> tuple[int, Any] | None:
    """The newest usable checkpoint of a unit as (step, tree), or None.

    Checkpoints that are damaged or do not fit `like` are set aside.

    Args:
      unit: The unit's name.
      like: A pytree with the structure, shapes and dtypes of the saved one;
        leaves may be `jax.ShapeDtypeStruct`. Loaded arrays get its shardings.
      stride: Only steps that are multiples of it are considered ...
      end: ... and this step.

    Raises:
      UserError: if a checkpoint cannot be read now or set aside.
    """
    folder = self._checkpoints(unit)
    steps = checkpoints.steps(folder)
    steps = [s for s in steps if s % stride == 0 or s == end]
    while steps:
      step = steps.pop()
      try:
        return step, checkpoints.load(folder / str(step), like)
      except Damaged as why:
        then = f'that of step {steps[-1]} is tried' if steps else (
            'its unit starts again'
        )
        with disk.writing(self.path):
          disk.set_aside(self.path, folder / str(step), str(why), then)
    return None

  def _checkpoints(self, unit: str) -> Path:
    return checkpoints.folder(self.path, unit)


def open_workdir(
    path: str | os.PathLike, config: Mapping, units: Sequence[str],
    complete: Callable[[dict], dict] = lambda saved: saved,
) -> Workdir:
  """Creates a work directory, or opens the one that this config made earlier.

  Args:
    path: The directory.
    config: The configuration, a nested mapping that JSON can store.
    units: The names of the experiment's units in order, unique and not ''.
    complete: Adds the fields that a configuration of an earlier version lacks.

  Raises:
    UserError: if the directory cannot be made or written, belongs to another
      configuration, or holds other files of the user. Nothing is written then.
    ValueError: if a unit's name is empty or given twice.
  """
  return open_share(path, config, units, complete, Share(), units)


def open_share(
    path: str | os.PathLike, config: Mapping, units: Sequence[str],
    complete: Callable[[dict], dict], share: Share, own: Sequence[str],
) -> Workdir:
  """`open_workdir` for one of several processes.

  Args:
    share: Which process this is. The first writes the configuration.
    own: The units of this process.
  """
  if '' in units or len(set(units)) < len(units):
    raise ValueError(f'Units need unique, non-empty names; got {list(units)}')
  if sys.platform in ('win32', 'darwin'):
    _refuse_alike(units)
  work = Workdir(Path(path).absolute(), tuple(units), share)
  broken = identity.check(work.path, config, complete)
  identity.check_units(work.path, work.units)
  with disk.writing(work.path):
    work.path.mkdir(parents=True, exist_ok=True)
    if share.first:
      identity.save(work.path, config, broken)
    mending.mend(work.path, own, share)
    if share.first:
      collecting.collect(work.path, work.units, work.share.count)
  return work


def _refuse_alike(units: Sequence[str]) -> None:
  """Refuses names that only differ in case: there their files are one.

  Raises:
    UserError: for the first two.
  """
  known: dict[str, str] = {}
  for unit in units:
    first = known.setdefault(unit.casefold(), unit)
    if first != unit:
      raise UserError(
          f'The files of {first} and {unit} would have one name on this '
          'system, which sees no case: give one of them another label.'
      )


def read_curves(
    path: str | os.PathLike,
) -> list[tuple[dict, dict[str, np.ndarray]]]:
  """(first row, curves) of every finished unit, in the order of timings.json.

  The row names the unit's defense, strength, and so on. Units without rows or
  curves are left out. So are damaged ones, with a message on stderr.
  """
  place, found = Path(path), []
  for unit in [timing['unit'] for timing in read_timings(path)]:
    try:
      rows = parts.read(place, unit)['rows']
      curves = parts.curves(place, unit)
    except Damaged as why:
      file = parts.file(place, unit, '.json')
      print(
          f'{file} is damaged: {why}. Its curves are not shown; running the '
          'experiment again repairs it.', file=sys.stderr,
      )
      continue
    if curves and rows:
      found.append((rows[0], curves))
  return found
