"""Records of measurements by scripts other than launch.py.

  begun = studies.begin('experiments.vmask.table1', argv)
  ...
  studies.write(args.out, begun, seeds, table, attack_accuracy=found)

A study's record is JSON, as a run's is (vfljax/runner/workdir/recording.py):
the command that repeats it, the samples' digest, seeds, commit, versions,
device, date and seconds. The measurements follow under names that the script
chooses. In "by_seed" every list has one entry for each seed, a number or more
lists. `rows` turns them into the form that `verify` compares.
"""
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import json
import os
from pathlib import Path
import shlex
import sys
import time
from typing import Any, NamedTuple

import numpy as np

from vfljax.data import Table
from vfljax.runner.cli import asking
from vfljax.runner.errors import UserError
from vfljax.runner.machine import device, disk
from vfljax.runner.workdir import recording

FORMAT = 'vfljax study 1'
_PLACES = ('--out', '--work')


class Begun(NamedTuple):
  """A study's command and the time at which it began."""

  command: str
  at: float


def begin(module: str, argv: Sequence[str] | None) -> Begun:
  """Notes command and time; call it before a script measures anything.

  Args:
    module: The module's name, as for `python -m`.
    argv: Its arguments; by default those of this process.
  """
  words = iter(sys.argv[1:] if argv is None else argv)
  kept = ['python', '-m', module]
  for word in words:
    flag, equals, value = word.rpartition('=')
    if word in _PLACES:
      next(words, '')
    elif flag not in _PLACES:
      kept.append(shlex.quote(f'{flag}{equals}{os.path.basename(value)}'))
  recording.code()  # Before anything else is checked out.
  return Begun(' '.join(kept), time.monotonic())


def part(
    folder: Path | None, name: str, about: Mapping[str, Any],
    measure: Callable[[], Any],
) -> tuple[Any, float]:
  """(result of `measure()`, seconds), from FOLDER/NAME.json if it is there.

  So a study that was stopped continues, and processes that measure different
  parts can share a folder. A part that was measured by another commit or
  version, or with another `about`, is measured again.

  Args:
    folder: The folder of the parts; without one nothing is kept.
    name: The part's name, which is also the file's.
    about: What decides the numbers besides the code, as JSON can store it.
    measure: Returns a result that JSON can store.
  """
  made = dict(
      code=recording.code(), versions=recording.versions(), about=dict(about)
  )
  file = folder and folder.absolute() / f'{name}.json'
  if file and file.exists():
    kept = json.loads(file.read_text('utf-8'))
    if kept['made'] == made:
      return kept['found'], kept['seconds']
  at = time.monotonic()
  found, seconds = measure(), round(time.monotonic() - at, 1)
  if file:
    file.parent.mkdir(parents=True, exist_ok=True)
    disk.write_text(
        file, json.dumps(dict(made=made, seconds=seconds, found=found))
    )
  return found, seconds


def write(
    file: str, begun: Begun, seeds: Iterable[int], table: Table | None,
    about: Mapping[str, Any] | None = None, **found: Any,
) -> None:
  """Writes a study's record, if a file was asked for.

  Args:
    file: The file; '' writes nothing.
    begun: What `begin` returned.
    seeds: The seeds; one for a study without --seeds, none for one of times.
    table: The samples, whose digest is in the record.
    about: Other entries.
    **found: The measurements, by seed.
  """
  if not file:
    return
  head = dict(
      format=FORMAT, command=begun.command,
      samples=asking.fingerprint(table) if table else '',
      seeds=[int(seed) for seed in seeds],
      **recording.made(), device=device.name(),
      seconds=round(time.monotonic() - begun.at, 1), by_seed=list(found),
  )
  said = text(head | dict(about or {}) | found)
  disk.write_text(Path(file).absolute(), said, '--out')


def text(record: Mapping[str, Any]) -> str:
  """JSON with one line for each list of numbers, so that a diff shows changes.

  Numbers have 7 significant digits, as in a run's record.
  """
  return _text(record, '') + '\n'


def _text(found: Any, indent: str) -> str:
  if not isinstance(found, dict):
    return json.dumps(_short(found))
  inner = indent + ' '
  lines = ',\n'.join(
      f'{inner}{json.dumps(k)}: {_text(v, inner)}' for k, v in found.items()
  )
  return f'{{\n{lines}\n{indent}}}'


def _short(found: Any) -> Any:
  if isinstance(found, list):
    return [_short(x) for x in found]
  return float(f'{found:.7g}') if isinstance(found, float) else found


def read(file: str | os.PathLike) -> dict[str, Any]:
  """A study's record.

  Raises:
    UserError: if the file cannot be read or is none.
  """
  return recording.read(file, FORMAT, 'record of a study')


def rows(record: Mapping[str, Any]) -> list[list]:
  """[*where, [a value a seed]] of every number, as a run's record has them.

  Raises:
    UserError: for a list whose length is not the number of seeds.
  """
  found = []
  for name in record['by_seed']:
    for where, values in _leaves(record[name], (name,)):
      if len(values) != len(record['seeds']):
        raise UserError(
            f"{' '.join(where)}: {len(values)} entries of "
            f"{len(record['seeds'])} seeds."
        )
      array = np.array(values, float)  # None becomes NaN.
      for at in np.ndindex(array.shape[1:]):
        numbers = array[(slice(None), *at)].tolist()
        found.append([*where, *(f'[{i}]' for i in at), numbers])
  return found


def _leaves(found: Any, where: tuple) -> Iterator[tuple[tuple, list]]:
  if isinstance(found, dict):
    for name, inner in found.items():
      yield from _leaves(inner, (*where, name))
  else:
    yield where, found


def command(
    record: Mapping[str, Any], seeds: int, folder: str, out: Path
) -> list[str]:
  """The record's command for its first seeds, with data of a folder."""
  argv = [sys.executable]
  for word in shlex.split(record['command'])[1:]:
    flag, equals, value = word.rpartition('=')
    there = Path(folder).expanduser() / value
    if flag != '--seeds':
      argv.append(f'{flag}{equals}{there if there.is_file() else value}')
  if len(record['seeds']) > 1:
    argv.append(f'--seeds={min(seeds, len(record["seeds"]))}')
  return [*argv, f'--out={out}']
