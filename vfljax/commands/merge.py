"""`vfljax merge DIR DIR ... --to=DIR`: joins parts of one experiment.

Parts may have other seeds, defenses, strengths or attacks on the same samples,
with the same networks trained the same way. Merged, they are one work directory
with one report. Values that two parts measured must agree.
"""
from collections.abc import Iterable, Mapping, Sequence
import contextlib
import dataclasses
from functools import partial
import json
from pathlib import Path
from typing import Any, NamedTuple

from vfljax.commands import given, same
from vfljax.report import asked, writing
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import sources
from vfljax.runner.machine.stopping import Stop
from vfljax.runner.workdir import (
    about, epoch_lines, identity, mergeable, parts, raising, store,
)
from vfljax.runner.workdir.parts import Finished

# Values that differ by less were measured by another program; from 1 on, as in
# PSNR, by less than that part of them.
SAME = 1e-4


class Key(NamedTuple):
  """The fields of a results' row that identify a measurement."""

  dataset: str
  algorithm: str
  defense: str
  strength: float | None
  attack: str | None
  seed: int
  metric: str
  split: str


def run(argv: list[str], stop: Stop | None = None) -> int:
  """Merges finished work directories into a new one, with a report.

  Raises:
    UserError: if they are not parts of one experiment.
  """
  del stop  # It is done in no time.
  parser = given.Parser(prog='vfljax merge', description=__doc__)
  parser.add_argument('folders', nargs='+', help='work directories')
  parser.add_argument('--to', required=True, help='the new work directory')
  flags = parser.parse_intermixed_args(argv)
  folders = given.all_finished(flags.folders)
  place = merge(folders, flags.to)
  about.merge(place, folders)
  print(f'Report: {writing.write(place)}')
  return 0


def merge(folders: Sequence[Path], target: str) -> Path:
  """One work directory of several, without a report; returns it.

  Args:
    folders: Finished ones.
    target: A new folder, or one that an earlier merge made of the same parts or
      of fewer.

  Raises:
    UserError: if they differ in more than `same.check` allows, or have two
      values for one measurement; if `target` is not a merge's, or has
      measurements that none of them has.
  """
  place = Path(target).expanduser()
  if place.resolve() in [folder.resolve() for folder in folders]:
    raise UserError(
        f'--to={target} is one of the folders to merge: choose a new one.'
    )
  # A run has such a file for each unit; a merge has none.
  if any((place / epoch_lines.FOLDER).glob('*.jsonl')):
    raise UserError(
        f'--to={target} is the work directory of a run.\nChoose a new folder.'
    )
  configs = same.agreed([_config(folder) for folder in folders])
  same.check(folders, configs)
  found = _units(folders)
  keys = {_key(row) for rows, *_ in found.values() for row in rows}
  whole = _merged(configs, _strengths(found.values()), {k.seed for k in keys})
  lost = [key for key in _measured(place) if key not in keys]
  complete = partial(_completed, place, whole, lost)
  try:
    work = store.open_workdir(place, whole, [*found], complete)
  except UserError as error:  # In the words of a run.
    raise UserError(str(error).replace('--workdir', '--to')) from error
  # One by one all that is there would be read and written again each time.
  work.save_all([Finished(unit, *what) for unit, what in found.items()])
  return place


def _config(folder: Path) -> dict[str, Any]:
  """A part's configuration.

  Raises:
    UserError: if it is lost.
  """
  found = store.read_config(folder)
  if not found:
    raise UserError(
        f'{folder} has lost its {identity.CONFIG}, which says what was run.\n'
        'Copy it again with all of its files, or leave it out.'
    )
  return found


def _measured(place: Path) -> list[Key]:
  """An earlier merge's measurements, damaged ones left out."""
  found = []
  if identity.said(place).get(identity.MERGED):
    for unit in parts.strays(place, ()):
      with contextlib.suppress(parts.Damaged):  # It will be written again.
        found += map(_key, parts.read(place, unit)['rows'])
  return found


def _completed(
    place: Path, whole: Mapping[str, Any], lost: Sequence[Key], saved: dict
) -> dict[str, Any]:
  """What an earlier merge said, with what the parts of now say anew.

  Args:
    lost: What it measured, and no part of now.

  Raises:
    UserError: if that is all that would be lost.
  """
  if not saved.get(identity.MERGED):
    return saved | {identity.MERGED: True}  # Earlier versions did not say so.
  now = json.loads(parts.dumps(whole))
  saved, _ = same.agreed([saved, now])
  free = {*same.FREE, *mergeable.fields(saved, now)}
  if mergeable.odds(mergeable.listed(saved), mergeable.listed(now)):
    free.discard('listed')
  code = now.get(sources.FIELD, {})
  if any(code.get(k) != v for k, v in saved.get(sources.FIELD, {}).items()):
    free.discard(sources.FIELD)
  found = {k: v for k, v in saved.items() if k not in free}
  found |= {k: v for k, v in now.items() if k in free}
  if lost and found == now:
    raise UserError(
        f'{place} has what none of these folders has, for one {_said(lost[0])}.'
        '\nMerge all that it was merged of, too, or choose another --to.'
    )
  return saved if lost else found


def _units(
    folders: Sequence[Path],
) -> dict[str, tuple[list[dict], dict, dict]]:
  """Every unit's rows, timing and curves, without those that another has.

  Raises:
    UserError: for two values under one name, damaged parts, a folder that does
      not say which it has, and trainings that only some attackers changed.
  """
  found: dict[str, tuple[list[dict], dict, dict]] = {}
  seen: dict[Key, tuple[float | None, Path]] = {}
  met: dict[Path, list[dict]] = {folder: [] for folder in folders}
  for folder in folders:
    timings = store.read_timings(folder)
    if not timings:
      raise UserError(
          f'{folder} has lost its timings.json, which says what was measured.\n'
          'The command that made it writes it anew, and runs nothing twice; a '
          'copy has to be made again.'
      )
    for timing in timings:
      unit = timing['unit']
      try:
        rows = parts.read(folder, unit)['rows']
        curves = parts.curves(folder, unit)
      except parts.Damaged as why:
        raise UserError(
            f'{parts.file(folder, unit, ".json")} is damaged: {why}.\nRunning '
            'the experiment again mends it.'
        ) from None
      met[folder] += rows
      fresh = [row for row in rows if not _seen(seen, row, folder)]
      if not fresh:
        continue
      name, times = unit, 1
      while name in found:
        name, times = f'{unit} ({times + 1})', times + 1
      rest = {k: v for k, v in timing.items() if k != 'unit'}
      found[name] = fresh, rest, _fresh_curves(curves, rows, fresh)
  same.check_training(met)
  return found


def _fresh_curves(
    curves: Mapping[str, Any], rows: Sequence[Mapping], fresh: Sequence[Mapping]
) -> dict[str, Any]:
  """A unit's curves, [seeds, epochs], of what is not there already.

  Those of an attack are called '<attack>/<metric>', all others are the
  federation's; each has the seeds of which its own rows are fresh.
  """
  seeds = [*dict.fromkeys(row['seed'] for row in rows)]
  found = {}
  for name, curve in curves.items():
    whose = name.rpartition('/')[0] or None
    own = {row['seed'] for row in fresh if row['attack'] == whose}
    if own:
      found[name] = curve[[seed in own for seed in seeds]]
  return found


def _seen(seen: dict, row: Mapping[str, Any], folder: Path) -> bool:
  """Whether a measurement was seen before; adds it to `seen`.

  Raises:
    UserError: if it was seen with another value.
  """
  key, value = _key(row), row['value']
  if key not in seen:
    seen[key] = value, folder
    return False
  before, where = seen[key]
  same = before is None if value is None else (
      before is not None
      and abs(before - value) <= SAME * max(1, abs(before))
  )
  if not same:
    raise UserError(
        f'{where} has {before} and {folder} has {value} for {_said(key)}.\n'
        'They cannot be parts of one experiment.'
    )
  return True


def _key(row: Mapping[str, Any]) -> Key:
  return Key(*(row[name] for name in Key._fields))


def _said(key: Key) -> str:
  """A measurement's name in a sentence."""
  strength = '' if key.strength is None else f' {key.strength:g}'
  return (
      f'{key.metric} of {key.attack or "the federation"} under {key.defense}'
      f'{strength}, seed {key.seed}'
  )


def _merged(
    configs: Sequence[Mapping[str, Any]],
    measured: Mapping[str, tuple[float, ...]], had: Iterable[int],
) -> dict[str, Any]:
  """The configuration of all of them together.

  Args:
    measured: Each defense's strengths in the results.
    had: The seeds in them: one that was merged of seeds with a gap says none.
  """
  entries: dict[str, dict] = {}
  for config in configs:
    for entry in same.entries(config, measured):
      kept = entries.setdefault(entry.name, dataclasses.asdict(entry))
      kept['strengths'] = [
          *dict.fromkeys([*kept['strengths'], *entry.strengths])
      ]
  seeds = {*had, *(seed for c in configs for seed in asked.seeds(c))}
  merged = dict(configs[0]) | dict(
      defenses='', attacks='', listed=[*entries.values()],
      listed_attacks=[*dict.fromkeys(
          name for c in configs for name in same.attacks_of(c)
      )],
  )
  merged.pop(raising.FIELD, None)
  merged[identity.MERGED] = True  # Units are not a run's: none goes on in it.
  code = {k: v for c in configs for k, v in c.get(sources.FIELD, {}).items()}
  if code:
    merged[sources.FIELD] = code
  first, last = min(seeds), max(seeds)
  if len(seeds) == last - first + 1:
    return merged | dict(first_seed=first, seeds=len(seeds))
  return {k: v for k, v in merged.items() if k not in ('first_seed', 'seeds')}


def _strengths(
    units: Iterable[tuple[list[dict], dict, dict]]
) -> dict[str, tuple[float, ...]]:
  """Each defense's strengths, of what was measured."""
  found: dict[str, dict[float, None]] = {}
  for rows, *_ in units:
    for row in rows:
      own = found.setdefault(row['defense'], {})
      if row['strength'] is not None:
        own[row['strength']] = None
  return {name: tuple(own) for name, own in found.items()}
