"""What changed between two runs: every row of both, the second minus the first.

Who has changed a setting, a version or a method asks this of `vfljax compare`.
"""
from collections.abc import Sequence
import math

from vfljax.data.table import counted
from vfljax.report import ranks, reading
from vfljax.report.reading import Cell, PerSeed, Results, Summary
from vfljax.report.tables import Table, Text


def tables(names: Sequence[str], runs: Sequence[Results]) -> list[Table]:
  """One table if there are two runs, each of one data set and algorithm, the
  same in both, with a row in common.

  Args:
    names: Of the runs.
    runs: Their results.
  """
  if len(runs) != 2 or runs[0].title[1:] != runs[1].title[1:]:
    return []
  one, two = runs
  found = [
      (cell, utility(one, two, cell), leakage(one, two, cell))
      for cell in one.cells if cell in two.cells
  ]
  rows = [
      [
          Text(reading.pretty(cell[0]), strong=True),
          Text(reading.strength(cell)), _text(used), _text(leaked),
          Text(', then '.join(map(reading.pretty, attacks))),
      ] for cell, used, (leaked, attacks) in found
      if used.count or leaked.count
  ]
  if not rows:
    return []
  numbers = sum(
      s.half > 0 for _, used, (leaked, _) in found for s in (used, leaked)
  )
  return [Table(
      f'From {names[0]} to {names[1]}',
      f'What {names[1]} has more than {names[0]}, in percentage points with 95 '
      '% intervals of the differences seed by seed, over seeds and attacks of '
      'both. In bold: an interval without zero. Where nothing but chance '
      'differs, about one in twenty is bold; there are '
      f'{counted(numbers, "number")} with an interval here.',
      ('defense', 'strength', 'more utility', 'more leakage', 'to'), rows,
  )]


def utility(one: Results, two: Results, cell: Cell) -> Summary:
  """How many points of utility a row has gained, over seeds of both runs."""
  if one.metric != two.metric:
    return reading.summarize([])
  before, after = (
      {s: 100 * x for s, x in reading.utility(run, cell).items()}
      for run in (one, two)
  )
  return ranks.more(before, after)


def leakage(
    one: Results, two: Results, cell: Cell
) -> tuple[Summary, list[str]]:
  """How many points more a row leaks to the worst attack that both runs had.

  Returns:
    The difference over seeds of both; and the worst attack, before and then in
    the second run if that is another; [] if the runs had none in common.
  """
  known = [
      {a: x for a in run.attacks if (x := reading.leakage(run, cell, a))}
      for run in (one, two)
  ]
  shared = [a for a in known[0] if a in known[1] and _alike(one, two, cell, a)]
  if not shared:
    return reading.summarize([]), []
  known = [  # One run's seeds alone decide nothing.
      {
          a: {s: x for s, x in own[a].items() if s in other[a]} for a in shared
      } for own, other in (known, known[::-1])
  ]
  worst = [_worst(own) for own in known]
  before, after = (ranks.clipped(own[a]) for own, a in zip(known, worst))
  return ranks.more(before, after), list(dict.fromkeys(worst))


def _alike(one: Results, two: Results, cell: Cell, attack: str) -> bool:
  """Whether an attack is measured alike in both: by one metric, above the same
  baseline, and if in training in the same epoch."""
  how = [
      (reading.leak_metric(run, attack), reading.is_paired(run, cell, attack),
       run.when if reading.leakage(run, cell, attack, 'last') else '')
      for run in (one, two)
  ]
  return how[0] == how[1]


def _worst(leaks: dict[str, PerSeed]) -> str:
  mean = lambda name: reading.summarize(leaks[name].values()).mean
  return max(leaks, key=lambda name: _or_least(mean(name)))


def _or_least(x: float) -> float:
  return x if math.isfinite(x) else -math.inf


def _text(s: Summary) -> Text:
  """A difference with its sign: '+1.2 ± 0.4'."""
  if not s.count:
    return Text('–')
  shown = ranks.shown(s.mean)
  half = f' ± {s.half:.1f}' if s.count > 1 else ''
  lost = f' ({s.count} of {s.count + s.missing} seeds)' if s.missing else ''
  sure = s.count > 1 and abs(s.mean) > s.half and bool(shown)
  return Text(f'{shown:+.1f}{half}{lost}', strong=sure)
