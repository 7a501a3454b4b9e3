"""Where the numbers of an experiment live, so that no kill can spoil them.

An experiment is an ordered list of named units ('none', 'iso/0', 'iso/1', ...).
A unit's file in parts/ appears in one atomic rename when the unit is done;
`results.jsonl` and `timings.json` are always rewritten whole from those files,
in the order of the units. So a run that is killed at any moment and started
again ends with the same bytes as one that was not.

The work directory:

  config.json       the whole configuration, sorted keys
  .config.json      the same under a digest, in case config.json is damaged
  results.jsonl     one measurement a line, keys in the order of `FIELDS`, then
                    the samples' file and digest (`collecting`)
  timings.json      one object per finished unit, in the order of the units
  parts/U.json      unit U's rows and timing; there if and only if U is done
  parts/U.npz       unit U's curves over the epochs, if it has any
  epochs/U.jsonl    unit U's measured epochs, written while it runs
  tensorboard/U/    the same as event files, if somebody asked for them
  checkpoints/U/N/  unit U after step N, the last two, until it is done
  damaged/          what could not be used, under its old name
  .lock             held by the process that is at work here
  .lock-0-of-2      or by each of several (`meeting`)
  about.json        rows, classes, columns, versions: `about`, if there is one
  summary.md        what `report.writing` makes of the above; report.html, too
  .report.json      what those were made of: `report.current`

U is the unit's name with '@' for '/' and '%..' for what file systems do not
like. Names like '.vfljax-<name>.tmp' are unfinished writes; the next start
removes them, and nothing that it does not know. Parts and checkpoints have
digests: one that is damaged is set aside, and its unit runs again.
"""
from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import json
import math
import os
from pathlib import Path
import sys
from typing import Any, NamedTuple

import numpy as np

from vfljax.runner.errors import UserError
from vfljax.runner.machine import disk
from vfljax.runner.workdir import checkpoints, collecting, identity, mending
from vfljax.runner.workdir import parts
from vfljax.runner.workdir.parts import FIELDS, Damaged, Finished
from vfljax.runner.workdir.shares import Share

__all__ = [
    'FIELDS', 'Workdir', 'open_workdir', 'read_config', 'read_curves',
    'read_results', 'read_timings',
]

read_config = identity.read


class Workdir(NamedTuple):
  """An open work directory. It holds no state of its own: the disk does.

  Attributes:
    path: The directory.
    units: The experiment's units, in the order in which results list them.
    share: Which process this is: the first one writes what is of all units.
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
    """Saves a finished unit and brings results.jsonl and timings.json up to it.

    Args:
      rows: Measurements; each has exactly the keys of `FIELDS`. Floats are
        rounded to 7 significant digits; NaN and infinities become null.
      timing: Anything JSON takes. The report knows `compile_seconds`,
        `run_seconds`, `rounds_per_second`, `seeds`, `device`,
        `peak_memory_bytes`, `classes` (what guessing is measured by) and
        `crossing` (`auditing.of_job`), and shows what else is no mapping.
      curves: Arrays [seeds, epochs] by name: 'norm_scoring/leak_auc' for an
        attack's metric, 'auc' for a utility metric; NaN where not measured.

    Raises:
      UserError: if the disk does not take it; the unit is then not done.
      ValueError: if a row's keys are not `FIELDS`.
    """
    self.save_all([Finished(unit, rows, timing, curves)])

  def save_all(self, finished: Sequence[Finished]) -> None:
    """Saves units in turn, and brings the files of all up to them once.

    Raises:
      UserError, ValueError: as `save`; the units before it are done.
    """
    with disk.writing(self.path):
      for each in finished:
        parts.write(self.path, *each)
      if self.share.first:
        collecting.collect(self.path, self.units, self.share.count)
      for each in finished:
        checkpoints.remove(self._checkpoints(each.unit))

  def collect(self) -> None:
    """Brings results.jsonl and timings.json up to what others have saved.

    Raises:
      UserError: if the disk does not take it, or a part is damaged.
    """
    with disk.writing(self.path):
      collecting.collect(self.path, self.units, self.share.count)

  def adopt(self, other: Path, unit: str) -> None:
    """Takes a unit's results from a run in which it was the same.

    Nothing happens if it is done here, or not there, or damaged there.

    Args:
      other: That run's work directory. What it was made of is the caller's to
        know.

    Raises:
      UserError: if the disk does not take it.
    """
    if self.done(unit) or not parts.done(other, unit):
      return
    try:
      part, curves = parts.read(other, unit), parts.curves(other, unit)
    except Damaged:
      return
    self.save(unit, part['rows'], part['timing'], curves)

  def save_checkpoint(self, unit: str, step: int, tree: Any) -> None:
    """Saves a unit in progress; the checkpoint before this one stays.

    Args:
      step: What has been done of the unit, for instance epochs; >= 0.
      tree: A pytree of arrays, numbers and typed PRNG keys, or what
        `checkpoints.snapshot` made of one.

    Raises:
      UserError: if the disk does not take it.
    """
    with disk.writing(self.path):
      checkpoints.save(self._checkpoints(unit), step, tree)

  def load_checkpoint(
      self, unit: str, like: Any, stride: int = 1, end: int = 0
  ) -> tuple[int, Any] | None:
    """The newest usable checkpoint of a unit as (step, tree), or None.

    What is damaged or does not fit `like` is set aside.

    Args:
      like: A pytree with the structure, shapes and dtypes of what was saved;
        leaves may be `jax.ShapeDtypeStruct`. Arrays come back with its
        shardings.
      stride: Steps that are no multiple of it are not looked at.
      end: But for this one.

    Raises:
      UserError: if the disk does not let it set something aside.
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
    config: The configuration, nested, of what JSON takes.
    units: The experiment's units in order, by unique names that are not ''.
    complete: Gives a configuration saved by an earlier version the fields that
      it lacks.

  Raises:
    UserError: if the directory cannot be made or written, belongs to another
      config, or holds somebody's work; nothing is then written into it.
    ValueError: if a unit's name is empty or given twice.
  """
  return open_share(path, config, units, complete, Share(), units)


def open_share(
    path: str | os.PathLike, config: Mapping, units: Sequence[str],
    complete: Callable[[dict], dict], share: Share, own: Sequence[str],
) -> Workdir:
  """The same for one of several processes.

  Args:
    share: Which one: the first writes the configuration, before the others.
    own: Those of the units that are this one's.
  """
  if '' in units or len(set(units)) < len(units):
    raise ValueError(f'Units need names of their own; got {list(units)}')
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


def read_results(path: str | os.PathLike) -> list[dict]:
  """The rows of results.jsonl; null values come back as NaN.

  Raises:
    UserError: if it is damaged, or lacks what finished units have measured.
  """
  place, timings = Path(path), read_timings(path)  # Who runs writes rows first.
  with _readable(place / 'results.jsonl') as text:
    rows = [{k: row[k] for k in FIELDS} for row in parts.lines(text)]
    found = [row | {'value': _or_nan(row['value'])} for row in rows]
  collecting.check(place, [t['unit'] for t in timings], len(found))
  return found


def read_timings(path: str | os.PathLike) -> list[dict]:
  """The objects of timings.json; each has its 'unit'.

  Raises:
    UserError: if it is damaged.
  """
  with _readable(Path(path) / 'timings.json') as text:
    return [{'unit': t['unit']} | t for t in json.loads(text or '[]')]


def read_curves(
    path: str | os.PathLike,
) -> list[tuple[dict, dict[str, np.ndarray]]]:
  """Every finished unit's curves, with the first row of the unit.

  The row says whose they are (defense, strength, ...). Units in the order of
  timings.json; those without rows or curves are left out, and so are those
  whose files are damaged, which a line on stderr says.
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
          'experiment again mends it.', file=sys.stderr,
      )
      continue
    if curves and rows:
      found.append((rows[0], curves))
  return found


@contextlib.contextmanager
def _readable(file: Path) -> Iterator[str]:
  """A file's text, '' if there is none; for a block that makes sense of it."""
  try:
    yield file.read_text('utf-8') if os.path.lexists(file) else ''
  except (OSError, ValueError, LookupError, TypeError) as error:
    raise UserError(
        f'{file} is damaged: {type(error).__name__}.\nRunning the experiment '
        'again writes it anew.'
    ) from error


def _or_nan(value: float | None) -> float:
  return math.nan if value is None else value
