"""What finished units have measured, put together in two files."""
from collections.abc import Mapping, Sequence
import contextlib
import os
from pathlib import Path

from vfljax.runner.errors import UserError
from vfljax.runner.machine import disk
from vfljax.runner.workdir import identity, parts
from vfljax.runner.workdir.parts import Damaged


def collect(place: Path, units: Sequence[str], processes: int = 1) -> None:
  """Rewrites results.jsonl and timings.json from the finished units.

  Args:
    processes: How many run the experiment, each with units of its own.

  Raises:
    UserError: if one was damaged since the start.
  """
  found = []
  for unit in units:
    if not parts.done(place, unit):
      continue
    try:
      found.append(parts.read(place, unit))
    except Damaged as why:
      file = parts.file(place, unit, '.json')
      whose = ' of the process that ran it' if processes > 1 else ''
      raise UserError(
          f'{file} was damaged while this ran: {why}.\nThe same command{whose} '
          'runs its unit again.'
      ) from None
  more = labels_of(identity.read(place))
  lines = [parts.dumps(row | more) for part in found for row in part['rows']]
  disk.renew(place / 'results.jsonl', ''.join(lines))
  timings = [{'unit': p['unit'], **p['timing']} for p in found]
  disk.renew(place / 'timings.json', parts.dumps(timings, indent=1))


def check(place: Path, units: Sequence[str], rows: int) -> None:
  """Refuses results of which the last lines are missing.

  After a full disk or a copy that was broken off, each line that is left may be
  whole: how many there have to be, the parts say.

  Args:
    units: Those of timings.json; without any all that are finished.
    rows: How many results.jsonl has.

  Raises:
    UserError: if that is fewer than the units have, of those whose parts are
      here and whole.
  """
  measured = 0
  for unit in units or parts.strays(place, ()):
    with contextlib.suppress(Damaged):
      measured += len(parts.read(place, unit)['rows'])
  if rows < measured:
    raise UserError(
        f'{place / "results.jsonl"} has lost its end: {rows} of {measured} '
        'lines are there.\nThe command that made it writes it anew, and runs '
        'nothing twice; a copy has to be made again.'
    )


def labels_of(config: Mapping) -> dict[str, str]:
  """What a line of results.jsonl says of its samples after its `FIELDS`.

  Which file they were read from, without its folder, and their digest: lines
  of several runs can stand in one file. {} of a configuration without samples.
  """
  if 'samples' not in config:
    return {}
  path = str(config.get('data', {}).get('path', ''))
  return dict(file=os.path.basename(path), digest=config['samples'])
