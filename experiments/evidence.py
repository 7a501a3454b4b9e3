"""Writes tables and numbers of records into the papers' READMEs.

Records (`--record`, see vfljax/runner/workdir/recording.py) are in
experiments/<paper>/records/. Text between two markers of a README is made from
records by experiments/<paper>/tables.py,

  <!-- table: vlr -->       ... <!-- end -->    TABLES['vlr']()
  <!-- is: vlr none auc --> ... <!-- end -->    one quantity, see `quantity`
  <!-- is: share -->        ... <!-- end -->    NUMBERS['share']()

and `python -m experiments.tables` writes it there. +- is always the sample
standard deviation over seeds (n - 1). No measured number is outside.
"""
from collections.abc import Callable, Iterable, Mapping, Sequence
import functools
import importlib
import json
import math
from pathlib import Path
import re
from typing import Any, NamedTuple

from vfljax.data.table import counted
from vfljax.report import reading
from vfljax.report.reading import Cell, PerSeed, Results
from vfljax.runner.workdir import recording

HERE = Path(__file__).parent
END = '<!-- end -->'
_TABLE = re.compile(r'(<!-- table: (\S+) -->\n).*?(<!-- end -->)', re.DOTALL)
_IS = re.compile(r'(<!-- is: ([^>]+) -->).*?(<!-- end -->)')
_OPENING = re.compile(r'<!-- (?:table|is): ')

Table = Callable[[], str]


class Kept(NamedTuple):
  """A record, and its rows as results."""

  record: dict[str, Any]
  results: Results


def papers() -> list[str]:
  """The folders whose README is made of records."""
  return sorted(
      place.parent.name for place in HERE.glob('*/tables.py')
      if (place.parent / 'README.md').exists()
  )


@functools.cache
def load(paper: str, name: str) -> Kept:
  """A paper's record by name.

  Raises:
    UserError: if there is none.
  """
  record = recording.read(HERE / paper / 'records' / f'{name}.json')
  found = reading.of_rows(
      recording.rows(record), record['config'], record['classes']
  )
  return Kept(record, found[0])


def exists(paper: str, name: str) -> bool:
  return (HERE / paper / 'records' / f'{name}.json').exists()


def remark(paper: str, name: str) -> str:
  """' (3 seeds; again 71 of 116)': seeds, and how many values repeated."""
  file = HERE / paper / 'records' / f'{name}.json'
  record = json.loads(file.read_text('utf-8'))
  seeds = record.get('seeds') if isinstance(record, dict) else None
  count = len(seeds) if isinstance(seeds, list) else seeds
  parts = [counted(count, 'seed')] if count else []
  if (again := verified().get(f'{paper}/records/{name}.json')):
    out, of = again['came_out'], again['values']
    parts.append(f'again {"all" if out == of else out} of {of}')
  return f' ({"; ".join(parts)})' if parts else ''


@functools.cache
def verified() -> dict[str, dict[str, Any]]:
  """By file, the last result of running a record again (verified.json)."""
  lines = json.loads((HERE / 'verified.json').read_text('utf-8'))
  return {line['record']: line for line in lines}


def cell(results: Results, text: str) -> Cell:
  """'iso:2.75' as (iso, 2.75); 'iso' as its only or first strength.

  Raises:
    ValueError: if there is no such row.
  """
  name, _, strength = text.partition(':')
  for known in results.cells:
    if known[0] == name and strength in ('', reading.strength(known)):
      return known
  raise ValueError(
      f'No row {text!r}; there are: '
      + ', '.join(':'.join(filter(None, (c[0], reading.strength(c))))
                  for c in results.cells)
  )


def quantity(results: Results, where: Cell, what: str) -> PerSeed:
  """One measurement of a row, by seed, in percent or percentage points.

  Args:
    what: 'auc', 'accuracy' or another measurement of the model, in percent;
      'loss', the utility loss in points; 'alone', the main metric of the active
      party by itself; 'quit_accuracy1' and the like; an attack's name: its
      leakage in points; 'attack/last' and 'attack/max': that of the last epoch
      and of the best one; 'attack/metric': that measurement, in percent.

  Raises:
    ValueError: if it was not measured.
  """
  attack, _, metric = what.partition('/')
  if what == 'loss':
    found = reading.utility_loss(results, where)
  elif what == 'alone':
    found = _percent(alone(results))
  elif attack in (*results.attacks, *results.baselines):
    if metric in ('', 'last', 'max'):
      found = reading.leakage(results, where, attack, metric)
    else:
      found = _percent(reading.find(results, where, attack, metric))
  else:
    found = _percent(reading.find(results, where, None, what))
  if not found:
    raise ValueError(f'{what!r} was not measured of {reading.named(where)}.')
  return found


def alone(results: Results) -> PerSeed:
  """The main metric of the active party by itself, by seed."""
  metric = f'alone_{results.metric}'
  return next(
      (v for (_, a, m, _), v in results.values.items()
       if a is None and m == metric), {},
  )


def _percent(found: PerSeed) -> PerSeed:
  return {seed: 100 * value for seed, value in found.items()}


def spread(values: Iterable[float], digits: int = 1) -> str:
  """'12.3 +- 0.4', mean and sample deviation, with a note on diverged seeds."""
  s = reading.summarize(values)
  if not s.count:
    return 'diverged'
  text = f'{_rounded(s.mean, digits)}'
  if math.isfinite(s.std):
    text += f' +- {_rounded(s.std, digits)}'
  return text + (f' ({s.missing} of {s.count + s.missing} diverged)'
                 if s.missing else '')


def mean(values: Iterable[float], digits: int = 1) -> str:
  """The mean alone, with a note on diverged seeds."""
  return re.sub(r' \+- \S+', '', spread(values, digits))


def _rounded(x: float, digits: int) -> str:
  """A rounded number, without a minus sign before zero."""
  return f'{round(x, digits) + 0.0:.{digits}f}'


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
  """A Markdown table."""
  lines = ['| ' + ' | '.join(row) + ' |' for row in (head, *rows)]
  return '\n'.join([lines[0], '|' + '---|' * len(head), *lines[1:]])


def of_records(
    paper: str, runs: Mapping[str, str], *names: str
) -> Callable[[Table], Table]:
  """Decorates a table: if a record is missing, it names the command for it.

  Args:
    runs: Record name -> what follows '--config=experiments/<paper>/'.
  """

  def decorate(table: Table) -> Table:
    @functools.wraps(table)
    def made() -> str:
      missing = [name for name in names if not exists(paper, name)]
      if not missing:
        return table() + '\n' + source(paper, *names)
      lines = '\n'.join(f'    {command(paper, runs, n)}' for n in missing)
      return f'\nNo record yet:\n\n{lines}\n'

    return made

  return decorate


def command(paper: str, runs: Mapping[str, str], name: str) -> str:
  """The command line that makes a record."""
  return (
      f'python launch.py --config=experiments/{paper}/{runs[name]} '
      f'--record=experiments/{paper}/records/{name}.json'
  )


def source(paper: str, *names: str) -> str:
  """A line for each record that a table's numbers come from."""
  return '\n' + '\n'.join(
      told(name, load(paper, name).record) for name in names
  )


def told(name: str, record: Mapping[str, Any]) -> str:
  """When and with what a record was made, of a run or a study."""
  seeds, versions, took = (record[x] for x in ('seeds', 'versions', 'seconds'))
  seconds = sum(took.values()) if isinstance(took, dict) else took
  which = f'seeds {seeds[0]}-{seeds[-1]}, ' if seeds else ''
  return (
      f"[`records/{name}.json`](records/{name}.json): {which}"
      f"{record['date']}, JAX {versions['jax']}, Python "
      f"{versions['python']}, {record['device']}, {seconds / 60:.1f} min.\n\n"
      f"    {record['command']}\n"
  )


def rewritten(
    text: str, paper: str, tables: Mapping[str, Table] | None = None,
    numbers: Mapping[str, Table] | None = None,
) -> str:
  """A README's text with everything between its markers made again.

  Raises:
    ValueError: for a marker that names nothing, or one without its end.
  """
  if tables is None:
    made = importlib.import_module(f'experiments.{paper}.tables')
    tables, numbers = made.TABLES, getattr(made, 'NUMBERS', None)
  known, named = tables or {}, numbers or {}

  def table(match: re.Match) -> str:
    if match[2] not in known:
      raise ValueError(
          f'experiments/{paper}/README.md: there is no table {match[2]!r}; '
          f'there are: {", ".join(known)}.'
      )
    return f'{match[1]}{known[match[2]]()}\n{match[3]}'

  def number(match: re.Match) -> str:
    if ' ' in match[2]:
      return f'{match[1]}{quoted(paper, match[2])}{match[3]}'
    if match[2] not in named:
      raise ValueError(
          f'experiments/{paper}/README.md: there is no number {match[2]!r}; '
          f'there are: {", ".join(named)}.'
      )
    return f'{match[1]}{named[match[2]]()}{match[3]}'

  found = sum(len(m.findall(text)) for m in (_TABLE, _IS))
  if not found == len(_OPENING.findall(text)) == text.count(END):
    raise ValueError(
        f'experiments/{paper}/README.md: a marker without its {END}.'
    )
  return _IS.sub(number, _TABLE.sub(table, text))


def quoted(paper: str, asked: str) -> str:
  """The number that 'record row quantity [digits]' names; 'mean' has no +-.

  Raises:
    ValueError: if it names nothing.
  """
  name, row, what, *more = asked.split()
  results = load(paper, name).results
  values = quantity(results, cell(results, row), what).values()
  digits = next((int(x) for x in more if x.isdigit()), 1)
  return (mean if 'mean' in more else spread)(values, digits)


def outside(text: str) -> list[str]:
  """Numbers 'x +- y' outside all markers.

  Lines that name another source ('paper', 'published') are left out.
  """
  bare = _IS.sub('', _TABLE.sub('', text))
  return [
      line for line in bare.splitlines()
      if re.search(r'\d ?\+-', line) and not re.search(
          'paper|published', line, re.IGNORECASE
      )
  ]
