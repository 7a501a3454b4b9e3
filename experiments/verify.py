"""Runs records again and says which of their values repeat.

  python -m experiments.verify kang2022 --data=FOLDER
  python -m experiments.verify kang2022 vlr table16 --seeds=1 --data=FOLDER
  python -m experiments.verify mine.json --data=FOLDER

Papers' records go by their names, your own by their files.

Each record's command runs again, by default for its first seed only, with the
data files of the same names in FOLDER. It is a command of launch.py or of a
study's script (studies.py). A value repeats if its distance from the record's
value for that seed is at most three of the record's standard deviations over
seeds, or half a percent, whichever is more: another processor rounds
differently, and training amplifies that. If seeds differ much, this allows
much, so the number of values within half a percent is shown, too. Values that
do not repeat are listed, and the exit code is 1.

A third run, which differs only in commit, JAX or machine, shows whether a
difference is rounding: --keep=FILE keeps the record of one run, and --twin=FILE
makes the next one say how far apart all three are. --out adds a line for each
record to a file such as experiments/verified.json.
"""
import argparse
from collections.abc import Mapping, Sequence
import contextlib
import datetime
import json
import math
import os
from pathlib import Path
import platform
import shlex
import subprocess
import sys
import tempfile
from typing import Any, NamedTuple

import numpy as np

from experiments import changes, evidence, studies
from vfljax import data
from vfljax.data import files
from vfljax.data.parties import BETWEEN
from vfljax.runner import main as runner, variants
from vfljax.runner.cli import asking
from vfljax.runner.errors import UserError
from vfljax.runner.machine import disk
from vfljax.runner.workdir import recording

CLONE = evidence.HERE.parent
LEAST = 0.005  # Of a value, and of 1 where it is less.
DEVIATIONS = 3.0


class Compared(NamedTuple):
  """One value of one seed."""

  key: tuple  # defense, strength, attack, metric, split
  seed: int
  recorded: float  # NaN for a training that diverged
  again: float
  allowed: float
  twin: float = math.nan  # Of a run that differs in rounding alone.

  @property
  def same(self) -> bool:
    both = math.isnan(self.recorded) and math.isnan(self.again)
    return both or self.recorded == self.again

  @property
  def near(self) -> bool:
    """Whether it is within half a percent, however much seeds differ."""
    return self.same or abs(self.recorded - self.again) <= _least(self.recorded)

  @property
  def came_out(self) -> bool:
    return self.same or abs(self.recorded - self.again) <= self.allowed


def compare(
    record: Mapping[str, Any], again: Mapping[str, Any],
    twin: Mapping[str, Any] | None = None,
) -> list[Compared]:
  """Pairs every value of the second run with the recorded one.

  Args:
    record: The record.
    again: The second run's record.
    twin: The record of a third run, which differs only in rounding.

  Raises:
    UserError: if the second run has other samples, or lacks a row.
  """
  if not asking.same_samples(record['samples'], again['samples']):
    raise UserError(
        f"The samples differ: their digest is {again['samples']}, the record's "
        f"is {record['samples']}."
    )
  theirs, twins = _rows(again), _rows(twin or again)
  found = []
  for *parts, values in record['rows']:
    key = tuple(parts)
    if key not in theirs:
      raise UserError(f'The second run has no row {key}.')
    numbers = np.array([math.nan if v is None else v for v in values], float)
    known = numbers[np.isfinite(numbers)]
    std = float(known.std(ddof=1)) if len(known) > 1 else 0.0
    for seed, value, other in zip(
        again['seeds'], theirs[key], twins[key], strict=True
    ):
      mine = float(numbers[record['seeds'].index(seed)])
      found.append(Compared(
          key, seed, mine, math.nan if value is None else value,
          max(_least(mine), DEVIATIONS * std),
          math.nan if twin is None or other is None else other,
      ))
  return found


def _least(value: float) -> float:
  return LEAST * max(1.0, abs(value) if math.isfinite(value) else 1.0)


def _rows(record: Mapping[str, Any]) -> dict[tuple, list]:
  return {tuple(key): values for *key, values in record['rows']}


def apart(found: Sequence[Compared]) -> dict[str, Any]:
  """How far values of the three runs are apart, on average and at most.

  Returns:
    Mean distances of the second run's values from the record (`recorded`) and
    from the twin (`twin`), the largest ones (`recorded_most`, `twin_most`), and
    the value with the latter (`twin_where`), over values that all three have.
    Nothing without a twin.
  """
  whole = [c for c in found if np.isfinite((c.again, c.recorded, c.twin)).all()]
  if not whole:
    return {}
  away = np.array([
      (abs(c.again - c.recorded), abs(c.again - c.twin)) for c in whole
  ])
  farthest = whole[int(away[:, 1].argmax())]
  means, most = away.mean(0).round(5), away.max(0).round(5)
  return dict(
      recorded=float(means[0]), recorded_most=float(most[0]),
      twin=float(means[1]), twin_most=float(most[1]),
      twin_where=_named(farthest),
  )


def _named(c: Compared) -> str:
  return ' '.join(str(part) for part in c.key if part not in (None, ''))


def command(
    record: Mapping[str, Any], seeds: int, folder: str, made: Path
) -> list[str]:
  """The record's command for its first seeds, with our data and folders.

  Raises:
    UserError: if it was made under other settings of JAX.
  """
  argv, places = [], _places(record['config']['data'], folder)
  said = shlex.split(record['command'])
  start = said.index('launch.py') + 1
  if (own := said[: start - 2]) != (now := recording.environment()):
    raise UserError(
        f'The record is of other settings of JAX, {" ".join(own) or "none"}; '
        f'here are {" ".join(now) or "none"}: set the variables alike.'
    )
  for word in recording.joined(said[start:]):
    if word.split('=')[0].lstrip('-') not in (
        'config.data.path', 'config.seeds'
    ):
      argv.append(word)
  if places:
    argv.append(f'--config.data.path={BETWEEN.join(places)}')
  return [
      'vfljax', *argv, f'--config.seeds={min(seeds, len(record["seeds"]))}',
      f'--workdir={made.parent / "out"}', f'--record={made}',
  ]


def verify(
    paper: str, name: str, seeds: int, folder: str, more: Sequence[str] = (),
    twin: Path | None = None, keep: Path | None = None,
) -> list[Compared]:
  """Runs a record again.

  Args:
    paper: Whose record it is; '' for one of your own.
    name: Of the paper's record; the path of your own.
    more: Flags that change no number: --devices, --cache.
    twin: The record of a run that differs only in rounding.
    keep: A file that gets this run's record.

  Raises:
    UserError: if it cannot be run.
  """
  file = evidence.HERE / paper / 'records' / f'{name}.json'
  file = file if paper else Path(name)
  record = read(file)
  other = read(twin) if twin else None
  if other:
    check_twin(record, other, record['seeds'][:seeds])
  if keep and not keep.absolute().parent.is_dir():
    raise UserError(f'--keep={keep}: there is no folder {keep.parent}.')
  check_data(record, folder)
  with tempfile.TemporaryDirectory() as place:
    made = Path(place) / 'record.json'
    if code := _run(record, file.parent, seeds, folder, made, more):
      raise UserError(f'The run ended with exit code {code}.')
    if keep:
      disk.write_text(keep.absolute(), made.read_text('utf-8'), '--keep')
    again = read(made)
    if told := changes.told(record, again):
      print(f'The config is not the one that was recorded: {told}.')
    return compare(record, again, other)


def _run(
    record: Mapping[str, Any], beside: Path, seeds: int, folder: str,
    made: Path, more: Sequence[str],
) -> int:
  """Runs a record's command; its exit code."""
  study = record['format'] == studies.FORMAT
  which = studies.command if study else command
  argv = [*which(record, seeds, folder, made), *more]
  argv = [_with_config(word, beside) for word in argv]
  print(shlex.join(argv), flush=True)
  if study:  # A process of its own: it sets JAX up for itself.
    return subprocess.run(argv, check=False).returncode
  return runner.main(argv)


def _with_config(word: str, beside: Path) -> str:
  """A --config=FILE that is found here, in the clone or beside the record.

  Raises:
    UserError: if it is in none of these.
  """
  flag, _, value = word.partition('=')
  if flag.lstrip('-') != 'config':
    return word
  file, variant = variants.split(value)
  for folder in (Path(), CLONE, beside):
    if (folder / file).exists():
      return f'--config={folder / file}' + (f':{variant}' if variant else '')
  raise UserError(
      f'Its config file {file} is neither here nor beside the record. Run this '
      f'in the folder from which {file} is found.'
  )


def read(file: Path) -> dict[str, Any]:
  """A record of a run, or a study's with rows as a run's has them.

  Raises:
    UserError: if it is neither.
  """
  try:
    return recording.read(file)
  except UserError as error:
    try:
      found = studies.read(file)
    except UserError:
      raise error from None
  return found | dict(rows=studies.rows(found))


def check_data(record: Mapping[str, Any], folder: str) -> None:
  """Raises UserError if a run's data file is not in the folder of `--data`."""
  own = record.get('config', {}).get('data', {})  # Of a run, not of a study.
  for place in _places(own, folder):
    if os.path.exists(place):
      continue
    source = data.REGISTRY.get(own['name'])  # A config may bring its own.
    raise UserError(
        f'{place} is not there. Name the folder that has {own["path"]}: '
        '--data=FOLDER.' + (f' How to get it: {source.how}' if source else '')
    )


def _places(own: Mapping[str, Any], folder: str) -> list[str]:
  """Where a record's data file is here, or each party's; [] if it has none."""
  path = own.get('path', '')
  names = files.parted(path) if own.get('name') == 'parties' else [path]
  return [str(Path(folder).expanduser() / name) for name in names if name]


def check_twin(
    record: Mapping[str, Any], twin: Mapping[str, Any], seeds: Sequence[int]
) -> None:
  """Raises UserError if a third run has another training or other seeds."""
  same = asking.same_samples(twin['samples'], record['samples'])
  if not same or not {*_rows(record)} <= {*_rows(twin)}:
    raise UserError(
        '--twin is the record of another training. Name one of the same record.'
    )
  if list(twin['seeds']) != list(seeds):
    raise UserError(
        f"--twin has seeds {twin['seeds']}, this run {list(seeds)}: type "
        '--seeds with the same number.'
    )


def said(name: str, found: Sequence[Compared]) -> str:
  """A few lines: how many values repeat, and which do not."""
  out = [c for c in found if not c.came_out]
  same = sum(c.same for c in found)
  lines = [
      f'{name}: {len(found) - len(out)} of {len(found)} values came out, '
      f'{sum(c.near for c in found)} within half a percent, {same} to the '
      'last digit.'
  ]
  for c in out[:20]:
    lines.append(
        f'  {_named(c)}, seed {c.seed}: {c.again:.4g}, recorded '
        f'{c.recorded:.4g} (allowed: {c.allowed:.2g})'
        + ('' if math.isnan(c.twin) else f', its twin {c.twin:.4g}')
    )
  if far := apart(found):
    lines.append(
        '  From the second run values lie {recorded:.3g} on average in the '
        'record, {recorded_most:.3g} at most, and {twin:.3g} and '
        '{twin_most:.3g} ({twin_where}) in its twin.'.format(**far)
    )
  return '\n'.join(lines)


def missed(found: Sequence[Compared], most: int = 4) -> str:
  """Values that did not come out, those farthest off first, in one line."""
  out = [c for c in found if not c.came_out]
  out.sort(key=lambda c: -abs(np.nan_to_num(c.again - c.recorded, nan=np.inf)))
  told = [
      f'{_named(c)}, seed {c.seed}: {c.again:.3g} for {c.recorded:.3g}'
      for c in out[:most]
  ]
  more = [f'and {len(out) - most} more'] if len(out) > most else []
  return '; '.join(told + more)


def noted(
    paper: str, name: str, seeds: int, found: Sequence[Compared]
) -> dict[str, Any]:
  """The entry for verified.json: how many values repeat, on which machine."""
  return dict(
      record=f'{paper}/records/{name}.json' if paper else name,
      seeds=len({c.seed for c in found}), values=len(found),
      came_out=sum(c.came_out for c in found), near=sum(c.near for c in found),
      same=sum(c.same for c in found),
      date=datetime.date.today().isoformat(), code=recording.code(),
      versions=recording.versions(), processor=processor(),
  ) | ({'missed': out} if (out := missed(found)) else {}) | (
      {'apart': far} if (far := apart(found)) else {}
  )


def processor() -> str:
  """The processor's name, if the system tells, and the number of cores."""
  file = Path('/proc/cpuinfo')
  lines = file.read_text('utf-8').splitlines() if file.exists() else []
  names = [x.split(':')[1].strip() for x in lines if x[:10] == 'model name']
  return f'{os.cpu_count()} x {names[0] if names else platform.machine()}'


def add(file: Path, line: dict[str, Any]) -> None:
  """Adds an entry to a file with a JSON list, one line for each entry."""
  lines = json.loads(file.read_text('utf-8')) if file.exists() else []
  text = ',\n'.join(json.dumps(x) for x in (*lines, line))
  disk.write_text(file.absolute(), f'[\n{text}\n]\n', '--out')


def runnable(paper: str) -> list[str]:
  """A paper's records that have a command to repeat them."""
  found = []
  for file in sorted((evidence.HERE / paper / 'records').glob('*.json')):
    with contextlib.suppress(UserError):
      if read(file)['rows']:  # Not of times alone.
        found.append(file.stem)
  return found


def main(argv: Sequence[str] | None = None) -> int:
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter
  )
  parser.add_argument(
      'paper', help=f'{", ".join(evidence.papers())}, or files of own records'
  )
  parser.add_argument('records', nargs='*', help="all of a paper's by default")
  parser.add_argument('--seeds', type=int, default=1, help='number of seeds')
  parser.add_argument('--data', default='.', help='folder of the data files')
  parser.add_argument('--twin', type=Path, help='record of a third run')
  parser.add_argument('--keep', type=Path, help="file for this run's record")
  parser.add_argument('--out', type=Path, help='file to add the outcome to')
  asked = parser.parse_intermixed_args(argv)
  known = []
  if asked.paper.endswith('.json'):
    asked.paper, asked.records = '', [asked.paper, *asked.records]
  elif asked.paper in evidence.papers():
    known = runnable(asked.paper)
    if wrong := set(asked.records) - set(known):
      parser.error(f'{", ".join(wrong)}: there are {", ".join(known)}')
  else:
    parser.error(
        f'{asked.paper} is no paper ({", ".join(evidence.papers())}), and no '
        'record, whose name ends with .json'
    )
  if (asked.twin or asked.keep) and len(asked.records) != 1:
    parser.error('--twin and --keep are for one record: name it.')
  if asked.seeds < 1:
    parser.error(f'--seeds={asked.seeds}: one at least')
  failed = False
  for name in asked.records or known:
    try:
      found = verify(
          asked.paper, name, asked.seeds, asked.data, twin=asked.twin,
          keep=asked.keep,
      )
      print(said(name, found), flush=True)
      failed |= not all(c.came_out for c in found)
      if asked.out:
        line = noted(asked.paper, name, asked.seeds, found)
        if asked.twin:
          line['twin'] = read(asked.twin)['code']
        add(asked.out, line)
    except UserError as error:
      print(f'error: {name}: {error}', file=sys.stderr)
      failed = True
  return int(failed)


if __name__ == '__main__':
  sys.exit(main())
