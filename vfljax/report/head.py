"""The report's head: data, parties, seeds, devices, versions and command."""
from collections.abc import Mapping, Sequence
from typing import Any

from vfljax.data import files
from vfljax.data.table import counted, listing
from vfljax.report.reading import Results
from vfljax.runner.workdir import recording

MOST = 12  # Names in a line.


def facts(
    about: Mapping[str, Any], config: Mapping[str, Any],
    found: Sequence[Results], units: Sequence[Mapping[str, Any]],
) -> list[tuple[str, str]]:
  """(name, value) of each known fact about the run.

  Args:
    about: The contents of about.json; {} if the run wrote none.
    config: The contents of config.json.
    found: The results.
    units: The records of timings.json.
  """
  about = recording.origin(units) | dict(about)  # Merged runs note it there.
  seeds = sorted({seed for results in found for seed in results.seeds})
  devices = dict.fromkeys(str(u['device']) for u in units if u.get('device'))
  said = [
      ('samples', _samples(about, config)),
      ('classes', ', '.join(
          f'{name} {share:.1%}' for name, share in
          list(about.get('classes', {}).items())[:MOST]
      )),
      *_parties(about.get('parties', ())),
      ('seeds', _seeds(seeds)), ('devices', ', '.join(devices)),
      ('versions', ', '.join(
          f'{k} {v}' for k, v in about.get('versions', {}).items()
      )),
      ('date', about.get('date', '')), ('command', about.get('command', '')),
  ]
  return [(what, how) for what, how in said if how]


def _samples(about: Mapping[str, Any], config: Mapping[str, Any]) -> str:
  data = config.get('data', {})
  name = str(data.get('name', ''))
  file = files.bare(str(data.get('path', '')))
  rows, held = about.get('rows', 0), about.get('test_rows', 0)
  size = f'{rows - held} rows and {held} of its test set' if held else (
      counted(rows, 'row') if rows else ''
  )
  digest = config.get('samples', '')
  parts = [f'{name} ({file})' if file else name, size,
           f'digest {digest}' if digest else '']
  return ', '.join(part for part in parts if part)


def _parties(parties: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
  """(party, its columns) for each party; party 0 is the active one."""
  return [
      (f'party {k}' + ('' if k else ', active'),
       ' and '.join(filter(None, [
           'the labels' if not k else '', _columns(names)
       ])))
      for k, names in enumerate(parties)
  ]


def _columns(names: Sequence[str]) -> str:
  if len(names) == 1 and names[0].endswith(' pixels'):
    return names[0]
  return f'{counted(len(names), "column")}: {listing(names, MOST)}' if (
      names) else ''


def _seeds(seeds: Sequence[int]) -> str:
  whole = len(seeds) > 2 and seeds[-1] - seeds[0] == len(seeds) - 1
  return f'{seeds[0]} to {seeds[-1]}' if whole else ', '.join(map(str, seeds))
