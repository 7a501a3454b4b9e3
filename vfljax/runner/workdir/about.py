"""about.json: facts about a run, for the head of its report.

It has the rows, the classes and their shares, each party's columns, the
command, the versions and the date. Results do not depend on it, so a work
directory without it is complete.
"""
from collections.abc import Mapping, Sequence
import datetime
import json
import os
from pathlib import Path
import sys
import time
from typing import Any

import numpy as np

from vfljax.data import naming, split
from vfljax.data.table import Table
from vfljax.runner.config import Config
from vfljax.runner.experiment import division
from vfljax.runner.machine import disk
from vfljax.runner.workdir import recording, store

FILE = 'about.json'
RUN, RECOMMEND = ('vfljax.run',), ('vfljax.recommend',)
CALLS = RUN, RECOMMEND


def write(
    work: Path, config: Config, table: Table, argv: Sequence[str]
) -> None:
  """Writes about.json into a finished work directory.

  A file that is newer than all results stays: a command that only looks at the
  results again did not make them. One from the future says nothing of that, as
  a clock that was wrong has left it.

  Args:
    work: The work directory.
    config: Its configuration.
    table: The samples.
    argv: The command line; one of `CALLS` if a program called that.

  Raises:
    UserError: if it cannot be written.
  """
  made = max(
      (p.stat().st_mtime for p in (work / 'parts').glob('*.json')), default=0
  )
  soon = time.time() + 86400  # A file server's clock may be ahead.
  if read(work) and made <= (work / FILE).stat().st_mtime <= soon:
    return
  day = datetime.date.fromtimestamp(made) if made else datetime.date.today()
  said = of_run(config, table, argv) | dict(date=day.isoformat())
  found = recording.origin(store.read_timings(work))
  said |= {k: v for k, v in found.items() if k in said}
  disk.write_text(work / FILE, json.dumps(said, indent=1) + '\n')


def merge(work: Path, parts: Sequence[Path]) -> None:
  """Writes about.json of a work directory that is merged from several.

  All parts have the same samples, so a fact in one part holds for parts of
  earlier versions that lack it. A fact in which parts differ is left out. The
  commands are listed one after the other, if every part has one.

  Raises:
    UserError: if it cannot be written.
  """
  every = [read(part) for part in parts]
  fields = {name: [one[name] for one in every if name in one]
            for one in every for name in one}
  said = {name: found[0] for name, found in fields.items()
          if all(value == found[0] for value in found)}
  commands = [str(one.get('command', '')) for one in every]
  said['command'] = '; '.join(dict.fromkeys(commands)) if all(commands) else ''
  said['date'] = max(map(str, fields.get('date', [''])))
  found = recording.origin(store.read_timings(work))
  said |= {k: v for k, v in found.items() if k in ('date', 'versions')}
  if fields:
    disk.write_text(work / FILE, json.dumps(said, indent=1) + '\n')


def read(path: str | os.PathLike) -> dict[str, Any]:
  """The contents of about.json; {} if it is missing or unreadable."""
  try:
    found = json.loads((Path(path) / FILE).read_text('utf-8'))
    return found if isinstance(found, dict) else {}
  except (OSError, ValueError, RecursionError):
    return {}


def shares(said: Mapping[str, Any]) -> dict[str, float]:
  """Class name -> its share of the samples; {} if unknown."""
  found = said.get('classes')
  found = found if isinstance(found, dict) else {}
  right = all(isinstance(share, (int, float)) for share in found.values())
  return found if right else {}


def training(said: Mapping[str, Any]) -> tuple[float, ...]:
  """About how many training samples each class has; () if unknown."""
  rows = said.get('training')
  if not isinstance(rows, int):
    return ()
  return tuple(rows * share for share in shares(said).values())


def of_run(
    config: Config, table: Table, argv: Sequence[str]
) -> dict[str, Any]:
  """The facts about a run, without its date."""
  counts = np.bincount(table.labels, minlength=len(table.classes))
  shares = counts / max(len(table.labels), 1)
  return dict(
      rows=len(table.labels),
      test_rows=0 if table.test is None else int(table.test.sum()),
      training=division.divide(table, config)[1].train,
      classes={
          name: round(float(share), 4)
          for name, share in zip(table.classes, shares)
      },
      parties=holders(config, table), command=_typed(argv),
      versions=recording.versions(),
  )


def _typed(argv: Sequence[str]) -> str:
  """A run's command as the user typed it.

  It starts with `vfljax` if the user called that: an installed wheel has no
  launch.py, the name that records use for both.
  """
  if tuple(argv) in CALLS:
    return f'{argv[0]}(...) in Python'
  said, program = recording.command(argv), Path(sys.argv[0])
  if program.parts[-2:] == ('vfljax', '__main__.py'):
    return said.replace('launch.py', '-m vfljax', 1)
  called = program.stem == 'vfljax'
  return said.replace('python launch.py', 'vfljax', 1) if called else said


def holders(config: Config, table: Table) -> list[list[str]]:
  """What each party has: names of original columns, or the size of images.

  An empty list means a party with labels only.
  """
  own = config.data
  spec = split.Spec(
      own.parties, own.split, own.ratios or None, own.named or None,
      label_only=config.model.algorithm == 'vsnn', seed=own.split_seed,
      strength=own.split_strength, unheld=own.unheld,
  )
  if table.features.ndim == 4:
    parts = split.apply(table._replace(features=table.features[:1]), spec)
    return [
        [] if x is None else [' x '.join(map(str, x.shape[1:])) + ' pixels']
        for x in parts
    ]
  names = naming.original(table)
  nobodys = spec.label_only and spec.unheld  # Party 0's columns are unused.
  whole = spec._replace(label_only=False) if nobodys else spec
  owned = split.columns(table, *whole[:-1])
  owned = (None, *owned[1:]) if nobodys else owned
  return [
      [] if some is None else [
          names[g] for g in dict.fromkeys(table.groups[i] for i in some)
      ] for some in owned
  ]
