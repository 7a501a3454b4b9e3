"""Collects finished units' results into results.jsonl and timings.json."""
from collections.abc import Mapping, Sequence
import contextlib
from pathlib import Path

from vfljax.data import files
from vfljax.runner.errors import UserError
from vfljax.runner.machine import disk
from vfljax.runner.workdir import identity, parts
from vfljax.runner.workdir.parts import Damaged


def collect(place: Path, units: Sequence[str], processes: int = 1) -> None:
  """Rewrites results.jsonl and timings.json from the finished units.

  Args:
    place: The work directory.
    units: The experiment's units, in the order of the results.
    processes: The number of processes that run the experiment.

  Raises:
    UserError: if a unit's file is damaged.
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
          f'{file} is damaged: {why}.\nThe same command{whose} runs its unit '
          'again.'
      ) from None
  more = labels_of(identity.read(place))
  lines = [parts.dumps(row | more) for part in found for row in part['rows']]
  disk.renew(place / 'results.jsonl', ''.join(lines))
  timings = [{'unit': p['unit'], **p['timing']} for p in found]
  disk.renew(place / 'timings.json', parts.dumps(timings, indent=1))


def check(place: Path, units: Sequence[str], rows: int) -> None:
  """Refuses a results.jsonl whose last lines are missing.

  After a full disk or an interrupted copy, all remaining lines may be whole. So
  their number is compared with the units' own files.

  Args:
    place: The work directory.
    units: The units in timings.json; if empty, all finished units are counted.
    rows: The number of lines in results.jsonl.

  Raises:
    UserError: if it is smaller than the number of measurements in the units'
      undamaged files.
  """
  measured = 0
  for unit in units or parts.strays(place, ()):
    with contextlib.suppress(Damaged):
      measured += len(parts.read(place, unit)['rows'])
  if rows < measured:
    raise UserError(
        f'{place / "results.jsonl"} has lost its end: {rows} of {measured} '
        'lines are there.\nThe command that made it writes it again and runs '
        'nothing twice. If it is a copy, copy it again.'
    )


def labels_of(config: Mapping) -> dict[str, str]:
  """The fields about samples in a line of results.jsonl, after `FIELDS`.

  They are the name of the file of samples and the samples' digest, so that
  lines of several runs can be put into one file. {} if the configuration has no
  digest.
  """
  if 'samples' not in config:
    return {}
  path = str(config.get('data', {}).get('path', ''))
  return dict(file=files.bare(path), digest=config['samples'])
