"""Where the numbers of an experiment live, so that no kill can spoil them.

An experiment is an ordered list of named units ('none', 'iso/0', 'iso/1', ...).
A unit's file in parts/ appears in one atomic rename when the unit is done;
`results.jsonl` and `timings.json` are always rewritten whole from those files,
in the order of the units. So a run that is killed at any moment and started
again ends with the same bytes as one that was not.

The work directory:

  config.json       the whole configuration, sorted keys
  results.jsonl     one measurement a line, keys in the order of `FIELDS`
  timings.json      one object per finished unit, in the order of the units
  parts/U.json      unit U's rows and timing; there if and only if U is done
  parts/U.npz       unit U's curves over the epochs, if it has any
  checkpoints/U/N/  unit U in progress after step N; gone when U is done
  .lock             held by the process that is at work here
  summary.md        } what `report.writing` makes of the above
  report.html       }

U is the unit's name with '@' for '/' and '%..' for what file systems do not
like. Names that end in '.tmp' are unfinished writes; the next start removes
them.
"""
import io
import json
import math
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from vfljax.runner import checkpoints, disk
from vfljax.runner.errors import UserError
from vfljax.runner.nested import flat

FIELDS = (
    'experiment', 'dataset', 'algorithm', 'defense', 'strength', 'attack',
    'seed', 'metric', 'split', 'value',
)


class Workdir(NamedTuple):
  """An open work directory. It holds no state of its own: the disk does.

  Attributes:
    path: The directory.
    units: The experiment's units, in the order in which results list them.
  """

  path: Path
  units: tuple[str, ...]

  def done(self, unit: str) -> bool:
    """Whether the unit's results are saved."""
    return self._part(unit, '.json').exists()

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
        `peak_memory_bytes` and `classes` (what guessing is measured by), and
        shows other keys as they are.
      curves: Arrays [seeds, epochs] by name: 'norm_scoring/leak_auc' for an
        attack's metric, 'auc' for a utility metric; NaN where not measured.

    Raises:
      UserError: if the disk does not take it; the unit is then not done.
      ValueError: if a row's keys are not `FIELDS`.
    """
    part = {
        'unit': unit, 'rows': [_row(row) for row in rows],
        'timing': _plain(timing),
    }
    with disk.writing(self.path):
      if curves:
        arrays = {k: np.asarray(v, np.float32) for k, v in curves.items()}
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **arrays)
        disk.replace(self._part(unit, '.npz'), buffer.getvalue())
      disk.replace(self._part(unit, '.json'), _dumps(part, indent=1))
      _collect(self)
      shutil.rmtree(self._checkpoints(unit), ignore_errors=True)

  def save_checkpoint(self, unit: str, step: int, tree: Any) -> None:
    """Saves a unit in progress, in place of its earlier checkpoint.

    Args:
      step: What has been done of the unit, for instance epochs; >= 0.
      tree: A pytree of arrays, numbers and typed PRNG keys.

    Raises:
      UserError: if the disk does not take it.
    """
    with disk.writing(self.path):
      checkpoints.save(self._checkpoints(unit), step, tree)

  def load_checkpoint(self, unit: str, like: Any) -> tuple[int, Any] | None:
    """The newest checkpoint of a unit as (step, tree), or None.

    Args:
      like: A pytree with the structure, shapes and dtypes of what was saved;
        leaves may be `jax.ShapeDtypeStruct`. Arrays come back with its
        shardings.

    Raises:
      UserError: if the checkpoint is damaged or does not fit `like`. It names
        the directory to delete to start the unit again.
    """
    return checkpoints.load(self._checkpoints(unit), like)

  def _part(self, unit: str, suffix: str) -> Path:
    return self.path / 'parts' / (_file_name(unit) + suffix)

  def _checkpoints(self, unit: str) -> Path:
    return self.path / 'checkpoints' / _file_name(unit)


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
      config, or holds results of which the config is missing.
    ValueError: if a unit's name is empty or given twice.
  """
  if '' in units or len(set(units)) < len(units):
    raise ValueError(f'Units need names of their own; got {list(units)}')
  work = Workdir(Path(path).absolute(), tuple(units))
  text = _dumps(config, indent=2, sort_keys=True)
  with disk.writing(work.path):
    for folder in ('parts', 'checkpoints'):
      (work.path / folder).mkdir(parents=True, exist_ok=True)
    old = work.path / 'config.json'
    if old.exists():
      _check_same(work.path, complete(read_config(path)), json.loads(text))
    elif (work.path / 'results.jsonl').exists():
      raise UserError(
          f'{work.path} holds results but no config.json, so they cannot be'
          ' continued.\nChoose another --workdir.'
      )
    disk.remove_unfinished(work.path)
    disk.replace(old, text)
    _collect(work)
  return work


def read_config(path: str | os.PathLike) -> dict:
  """The configuration in a work directory; {} if it has none.

  Raises:
    UserError: if it is not JSON.
  """
  file = Path(path) / 'config.json'
  if not file.exists():
    return {}
  try:
    return json.loads(file.read_text())
  except ValueError:
    raise UserError(
        f'{file} is damaged (not JSON).\nChoose another --workdir, or delete'
        f' {file.parent} to start again.'
    ) from None


def read_results(path: str | os.PathLike) -> list[dict]:
  """The rows of results.jsonl; null values come back as NaN."""
  file = Path(path) / 'results.jsonl'
  lines = file.read_text().splitlines() if file.exists() else []
  rows = [json.loads(line) for line in lines]
  return [r | {'value': _or_nan(r['value'])} for r in rows]


def read_timings(path: str | os.PathLike) -> list[dict]:
  """The objects of timings.json; each has its 'unit'."""
  file = Path(path) / 'timings.json'
  return json.loads(file.read_text()) if file.exists() else []


def read_curves(
    path: str | os.PathLike,
) -> list[tuple[dict, dict[str, np.ndarray]]]:
  """Every finished unit's curves, with the first row of the unit.

  The row says whose they are (defense, strength, ...). Units in the order of
  timings.json; those without rows or curves are left out.
  """
  work = Workdir(Path(path), tuple(t['unit'] for t in read_timings(path)))
  found = []
  for unit in work.units:
    curves = work._part(unit, '.npz')
    rows = _read_part(work, unit)['rows']
    if curves.exists() and rows:
      with np.load(curves) as arrays:
        found.append((rows[0], dict(arrays)))
  return found


def _collect(work: Workdir) -> None:
  """Rewrites results.jsonl and timings.json from the finished units."""
  parts = [_read_part(work, u) for u in work.units if work.done(u)]
  lines = [_dumps(row) for part in parts for row in part['rows']]
  disk.replace(work.path / 'results.jsonl', ''.join(lines))
  timings = [{'unit': p['unit'], **p['timing']} for p in parts]
  disk.replace(work.path / 'timings.json', _dumps(timings, indent=1))


def _read_part(work: Workdir, unit: str) -> dict:
  file = work._part(unit, '.json')
  try:
    return json.loads(file.read_text())
  except ValueError:
    raise UserError(
        f'{file} is damaged (not JSON).\nDelete it to run that unit again.'
    ) from None


def _row(row: Mapping) -> dict:
  if set(row) != set(FIELDS):
    wrong = sorted(set(row) ^ set(FIELDS))
    raise ValueError(f'A row has these fields too many or too few: {wrong}')
  return {field: _plain(row[field]) for field in FIELDS}


def _plain(x: Any) -> Any:
  """What JSON takes: Python numbers of 7 significant digits, NaN as null."""
  if isinstance(x, Mapping):
    return {str(k): _plain(v) for k, v in x.items()}
  if isinstance(x, (list, tuple)):
    return [_plain(v) for v in x]
  if hasattr(x, 'tolist'):  # Arrays and scalars of NumPy and JAX.
    return _plain(x.tolist())
  if isinstance(x, float):
    # Adding zero turns -0.0 into 0.0.
    return float(f'{x:.7g}') + 0.0 if math.isfinite(x) else None
  return x


def _or_nan(value: float | None) -> float:
  return math.nan if value is None else value


def _dumps(x: Any, **options) -> str:
  return json.dumps(x, ensure_ascii=False, allow_nan=False, **options) + '\n'


def _file_name(unit: str) -> str:
  """A name of its own in a directory, without path or hidden names in it."""
  name = quote(unit, safe=' /,+=').replace('/', '@')
  # Dots are fine in '0.1' but not in '..', nor in what looks unfinished.
  name = name.replace('.tmp', '%2Etmp')
  return '%2E' + name[1:] if name.startswith('.') else name


def _check_same(path: Path, saved: dict, config: dict) -> None:
  """Raises a UserError that names what differs from the config in `path`."""
  old, new = flat(saved), flat(config)
  names = [k for k in (old | new) if old.get(k, ...) != new.get(k, ...)]
  if not names:
    return
  show = lambda x: 'not set' if x is ... else json.dumps(x)
  said = '; '.join(
      f'{k} is {show(old.get(k, ...))} there and {show(new.get(k, ...))} here'
      for k in names[:3]
  )
  more = f'; and {len(names) - 3} more' if len(names) > 3 else ''
  raise UserError(
      f'{path} belongs to another configuration: {said}{more}.\n'
      'Use the same values to continue it, or choose another --workdir.'
  )
