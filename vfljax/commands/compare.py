"""`vfljax compare DIR DIR ... --to=compare.html`: one report over several runs.

First every defense at its best strength in each of them, of two runs what
changed in each row, and how the configurations differ; then each run's
findings, as in its own report; of more than 24 runs without the figures.
"""
from collections.abc import Mapping, Sequence
import itertools
from pathlib import Path
from typing import Any, NamedTuple

from vfljax.commands import changes, given
from vfljax.report import (
    crossings, knowing, lost, page, ranks, reading, tables, terminal, verdict,
    words, writing,
)
from vfljax.report.ranks import Ranked
from vfljax.report.reading import Results
from vfljax.report.tables import Table, Text
from vfljax.runner.config.nested import flat
from vfljax.runner.errors import UserError
from vfljax.runner.machine import disk
from vfljax.runner.machine.stopping import Stop
from vfljax.runner.workdir import identity, mergeable, raising, store

TITLE = 'Runs compared'
DRAWN = 24  # Runs; the figures of more take minutes, and pages of many MB.


class Run(NamedTuple):
  """One data set and algorithm of one work directory, ranked."""

  name: str
  results: Results
  ranked: list[Ranked]
  config: Mapping[str, Any]
  warnings: Sequence[str] = ()


def run(argv: list[str], stop: Stop | None = None) -> int:
  """Writes one page over several finished work directories.

  Raises:
    UserError: if there are fewer than two, or one has no results, or if the
      page would overwrite another file.
  """
  del stop  # It is done in no time.
  parser = given.Parser(prog='vfljax compare', description=__doc__)
  parser.add_argument('folders', nargs='+', help='work directories')
  parser.add_argument(
      '--to', default='compare.html', help='the page; compare.html by default'
  )
  asked = parser.parse_intermixed_args(argv)
  if len(asked.folders) < 2:
    raise UserError('vfljax compare needs two work directories or more.')
  target = Path(asked.to).expanduser()
  _check_target(target, asked.to)
  runs = read(given.all_finished(asked.folders))
  disk.write_text(target.absolute(), written(runs), '--to')
  print(printed(_tables(runs), runs))
  gone = [f'{r.name}: {one}' for r in runs for one in lost.sentences(r.results)]
  if said := [*_warnings(runs), *gone]:
    print('\n' + terminal.paragraphs(said))
  print(f'\nReport: {target}')
  return 0


def _check_target(target: Path, typed: str) -> None:
  """Refuses to overwrite what is no such page, as a run's results.

  Raises:
    UserError: if there is another file, or a device such as /dev/null.
  """
  if not target.exists() or target.is_dir():
    return  # A folder is refused where the page is written.
  head = b''
  if target.is_file():
    with disk.writing(target.parent, '--to'), target.open('rb') as file:
      head = file.read(1000)  # The title is in the first lines.
  if f'<title>{TITLE}</title>'.encode() not in head:
    raise UserError(
        f'--to={typed}: this file exists and is no page of vfljax compare.\n'
        'Choose another name.'
    )


def read(folders: Sequence[Path], names: Sequence[str] = ()) -> list[Run]:
  """The folders' runs, by default named by the shortest ends of their paths."""
  names, found = names or _names(folders), []
  for name, folder in zip(names, folders):
    units = store.read_timings(folder)
    classes = max((t.get('classes', 0) for t in units), default=0)
    warnings = crossings.warnings(units)
    config, settings = store.read_config(folder), reading.read(folder, classes)
    for results in settings:
      rest = f', {results.title[1]}' if len(settings) > 1 else ''
      _, dataset, algorithm = results.title
      titled = results._replace(title=(name + rest, dataset, algorithm))
      ranked = ranks.rank(results)
      found.append(Run(name + rest, titled, ranked, config, warnings))
  return found


def best(runs: Sequence[Run]) -> Table:
  """Every defense at its best strength, run by run."""
  defenses = dict.fromkeys(r.defense for run in runs for r in run.ranked)
  rows = []
  for defense in defenses:
    for one in runs:
      mine = next((r for r in one.ranked if r.defense == defense), None)
      if mine is None:
        continue
      trade = mine.best
      rows.append([
          Text(reading.pretty(defense), strong=True), Text(one.name),
          Text(reading.strength(trade.cell)),
          tables.score_text(mine.optimal, trade),
          tables.leak_text(trade.leakage[trade.worst]),
          Text(reading.pretty(trade.worst)), tables.loss_text(trade.loss),
      ])
  return Table(
      'Every defense at its best strength',
      'Leakage to the worst attack that a run had, and utility loss, in '
      'percentage points with 95 % intervals. Runs with other attacks or other '
      'samples are other questions.',
      ('defense', 'run', 'best strength', 'PU score', 'worst leakage', 'by',
       'utility loss'),
      rows,
  )


def differences(runs: Sequence[Run]) -> list[Table]:
  """Tables of how the configurations differ; [] if they do not."""
  same = {'paper': None, raising.FIELD: None, identity.MERGED: None}
  fields = [flat({**r.config, **same}) for r in runs]
  names = [
      name for name in dict.fromkeys(n for own in fields for n in own)
      if name != 'listed' and len({repr(own.get(name)) for own in fields}) > 1
  ]
  methods = _methods(runs)
  fields = [own | more for own, more in zip(fields, methods)]
  names += methods[0]
  cells = [['field', *names]] + [
      [one.name, *(_short(own.get(name)) for name in names)]
      for one, own in zip(runs, fields)
  ]
  if len(runs) <= len(names):  # A page has more room for rows than columns.
    cells = [*zip(*cells)]
  else:
    cells[0][0] = 'run'
  columns, *rows = cells
  return [Table(
      'What differs', 'Fields of the configurations that are not the same.',
      tuple(columns),
      [[Text(first, strong=True), *map(Text, rest)] for first, *rest in rows],
  )] if names else []


def _methods(runs: Sequence[Run]) -> list[dict[str, Any]]:
  """For each run, how its rows differ from rows of the same name in others."""
  every = [
      {row.name: mergeable.method(row) for row in mergeable.listed(one.config)}
      for one in runs
  ]
  found: list[dict[str, Any]] = [{} for _ in runs]
  for name in dict.fromkeys(name for own in every for name in own):
    having = [own[name] for own in every if name in own]
    for field in dict.fromkeys(field for own in having for field in own):
      if all(own.get(field) == having[0].get(field) for own in having):
        continue
      for told, own in zip(found, every):
        told[f'{name}: {field}'] = own.get(name, {}).get(field)
  return found


def written(runs: Sequence[Run]) -> str:
  """The page."""
  head = [page.heading(TITLE, 1)]
  parts = [*head, page.heading('What each run says')]
  parts += map(page.note, [*_warnings(runs), *verdicts(runs)])
  parts += [page.table(t, 2) for t in _tables(runs)]
  drawn = len(runs) <= DRAWN
  if not drawn:
    parts.append(page.note(
        f'Of more than {DRAWN} runs there are no figures here: each has its '
        'own in the report.html of its folder.'
    ))
  for one in runs:
    parts += writing.section(
        one.results, one.ranked, [], None, alone=False, drawn=drawn
    )
  return page.page(TITLE, parts)


def _warnings(runs: Sequence[Run]) -> list[str]:
  """The runs' warnings, which come before their numbers."""
  return [
      f'{one.name}: {said}' for one in runs
      for said in (*one.warnings, *knowing.uncounted(one.results))
  ]


def _tables(runs: Sequence[Run]) -> list[Table]:
  """The tables over all runs that have a row."""
  changed = changes.tables([r.name for r in runs], [r.results for r in runs])
  return [t for t in (best(runs), *changed, *differences(runs)) if t.rows]


def printed(found: Sequence[Table], runs: Sequence[Run]) -> str:
  """Tables for a terminal, and the verdicts of runs that have no row there."""
  silent = verdicts([one for one in runs if not one.ranked])
  parts = [*map(terminal.table, found), terminal.paragraphs(silent)]
  return '\n\n'.join(filter(None, parts))


def verdicts(runs: Sequence[Run]) -> list[str]:
  """Each run's verdict in its shortest form, without `_warnings`."""
  return [
      f'{one.name}: {words.headline(one.results).partition(": ")[2]}. '
      + ' '.join(
          said for said in verdict.short(one.results, one.ranked)
          if said not in knowing.uncounted(one.results)
      ) for one in runs
  ]


def _names(folders: Sequence[Path]) -> list[str]:
  """The shortest ends of the paths that differ.

  A run of `recommend` is called by its own folder, not by `report` in it.
  """
  own = [
      f.parent if f.name == 'report' and (f.parent / 'coarse').is_dir() else f
      for f in folders
  ]
  known: dict[Path, Path] = {}
  for folder in own:
    place = folder.resolve()  # A link is no other.
    if place in known:
      first = known[place]
      also = '' if first == folder else f', first as {first}'
      raise UserError(f'{folder} is given twice{also}: leave one out.')
    known[place] = folder
  parts = [folder.absolute().parts for folder in own]
  longer = (['/'.join(own[-n:]) for own in parts] for n in itertools.count(1))
  return next(names for names in longer if len(set(names)) == len(names))


def _short(value: Any) -> str:
  text = '–' if value is None else f'{value}'
  return text if len(text) <= 60 else f'{text[:57]}...'
