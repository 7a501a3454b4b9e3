"""Single numbers that the README quotes in its sentences."""
from collections.abc import Iterable
import math

import numpy as np

from experiments import evidence
from experiments.evidence import Table
from experiments.vmask import (
    older, paper, tables_costs, tables_runs, tables_studies,
)

COLUMNS = ('TM', 'TFM', 'M', 'FM')


def span(values: Iterable[float], digits: int = 0) -> str:
  """'76 to 79'; one of them where they are the same."""
  found = [value for value in values if math.isfinite(value)]
  ends = [f'{x:.{digits}f}' for x in (min(found), max(found))]
  return ' to '.join(dict.fromkeys(ends))


def runs(record: str, what: str, who: str, measure: str) -> str:
  """The deviation of attack runs of one training, over the trainings."""
  found = older.record(record)['rows'][what][who][measure]
  variances = np.var(100 * np.asarray(found), axis=-1, ddof=1)
  return f'{math.sqrt(variances.mean()):.1f}'


def off(measure: str, table: dict[str, tuple[float, ...]]) -> str:
  """Ours undefended, with the authors' settings, minus the paper's."""
  what = dict(main='accuracy', attack=BEST, scratch=SCRATCH).get(
      measure, measure
  )
  found = {
      tables_runs.column_of(name): older.mean(full('none', what, name))
      for name in tables_runs.FULL["authors'"]
  }
  at = int(measure == 'scratch')  # BASELINES are (alone, scratch).
  return ', '.join(f'{x - table[c][at]:+.1f} ({c})' for c, x in found.items())


def few(measure: str, *columns: str, digits: int = 1) -> str:
  """VMask's attack, or imagined one, where it hides one layer of LeNet5's."""
  found = [older.column(c)['VMask'] for c in columns]
  return span((
      x for row in found for x, hidden in zip(row[measure], row['masked'])
      if round(hidden) == 20
  ), digits)


def first_epoch() -> str:
  """Figure 5: the attack where nothing is hidden after the first epoch."""
  found = older.record('fig5_tm')['curves']['VMask']
  attack = 100 * np.asarray(found['attack']).mean(-1)[:, 0]
  hidden = np.asarray(found['masked']).sum(-1)[:, 0]
  return span(attack[hidden == 0])


def kept() -> str:
  """Figure 5: means over the trainings of who has kept its transcript."""
  found = older.record('fig5_tm')['curves']['VMask']['recovered']
  return span(100 * np.asarray(found).mean((0, -1)))


def vanilla(measure: str, suffix: str = '') -> str:
  """Undefended, in the trainings beside those with other samples."""
  rows = (
      found['vanilla'] for name in tables_studies.AUXILIARY
      for found in older.rows(name + suffix).values() if 'vanilla' in found
  )
  return span((older.mean(row[measure]) for row in rows), 1)


def regained(mode: str, start: str) -> str:
  """Of `adaptive`: percent of what masking took that attackers have."""
  rows = older.adaptive('adaptive')[mode]
  return span(
      tables_costs.regained('adaptive', mode, name)
      for name in rows if name.startswith(start)
  )


def convolutions() -> str:
  """Errors of LeNet5's first two layers, from one batch."""
  errors = older.adaptive('adaptive_lenet5')['T3']['linear 1']['errors']
  return ' and '.join(f'{errors[f"conv{i}"]:.0e}' for i in (1, 2))


def dcor() -> str:
  """Seconds an epoch that dCor costs MLP3."""
  rows = older.record('table3_mlp3')['rows']
  return f"{rows['dCor']['epoch'] - rows['none']['epoch']:.1f}"


def imagined(of: str, column: str) -> str:
  found = older.column(column, of)['VMask']['simulated_leakage']
  return f'{older.mean(found):.0f}'


def attacked(of: str, column: str) -> str:
  return f"{older.mean(older.column(column, of)['VMask']['attack']):.0f}"


def full(row: str, what: str, record: str = 'tm_full') -> list[float]:
  """Of a column at the paper's size, by training; a row: 'none' or 'VMask'."""
  results = evidence.load('vmask', record).results
  where = evidence.cell(results, row)
  return list(evidence.quantity(results, where, what).values())


BEST = f'{tables_runs.ATTACK}/accuracy_best'
SCRATCH = f'{tables_runs.SCRATCH}/accuracy_best'
_LENET5 = 'm_full', 'fm_full'


def full_off() -> str:
  """The most that attacks on LeNet5 there are off the paper's, in points."""
  at, off = paper.ROWS.index('VMask'), []
  for name in _LENET5:
    column = tables_runs.column_of(name)
    vanilla, masked = (paper.ATTACK[column][i] for i in (0, at))
    off += [
        older.mean(full('none', BEST, name)) - vanilla,
        older.mean(full('VMask', BEST, name)) - masked,
        older.mean(full('none', SCRATCH, name)) - paper.BASELINES[column][1],
    ]
  return f'{max(map(abs, off)):.1f}'


def full_gap(record: str = 'tm_full') -> list[float]:
  """VMask's attack over scratch there, by training."""
  scratch = full('none', SCRATCH, record)
  return older.less(full('VMask', BEST, record), scratch)


def cut(measure: str, what: str, table: dict[str, tuple[float, ...]]) -> str:
  """'1.3 of 2.0': how far training less is from that, and from the paper."""
  short = older.mean(older.column('TM')['none'][measure])
  long = older.mean(full('none', what))
  return f"{long - short:.1f} of {table['TM'][0] - short:.1f}"


def standardized() -> str:
  """What a head that standardises its input adds to an attack from scratch."""
  results = evidence.load('vmask', 'tm_standardized').results
  found = evidence.quantity(
      results, results.cells[0], f'{tables_runs.SCRATCH}/accuracy_best'
  )
  plain = older.column('TM')['none']['scratch']
  return f'{older.mean(found.values()) - older.mean(plain):.0f}'


def dearer(row: str, strength: float) -> str:
  """How far a point's main accuracy is below VMask's lowest, Figure 6."""
  found = tables_runs.points()
  least = min(main for c, (main, _) in found.items() if c[0] == 'VMask')
  return f'{least - found[row, strength][0]:.1f}'


def of_fig6(row: str, strength: float, measure: str) -> str:
  return older.says(older.of_cells('fig6')[row, strength], measure)


def hardly_better() -> str:
  """Points of Figure 6 at most half a point above the active party alone."""
  alone = older.mean(older.of_cells('fig6')['none', None]['alone'])
  return ', '.join(
      f'{label} at {strength:g}'
      for (label, strength), (main, _) in tables_runs.points().items()
      if main <= alone + 0.5
  )


def hidden_leaves(model: str, which: str) -> str:
  """What hiding a set of layers leaves, with the authors' settings."""
  return evidence.spread(older.sets(f'table1_{model}_authors')[which])


def again(record: str) -> str:
  """How many of a record's values came out when it ran again."""
  found = evidence.verified()[f'vmask/records/{record}.json']
  return f"{found['came_out']} of {found['values']}"


def shares(which: str) -> str:
  """Times plain training's compute, LeNet5 and MLP3."""
  models = older.bench('vmask')['runs']['default']['models']
  return ' and '.join(
      f"{models[m]['seconds_an_epoch'][which]['ratio']:.1f}"
      for m in ('lenet5', 'mlp3')
  )


def fig6_hidden() -> str:
  """Layers of MLP3 hidden at the end of Figure 6, by budget and training."""
  return '; '.join(
      ', '.join(f'{3 * x / 100:.0f}' for x in row['masked'])
      for cell, row in older.of_cells('fig6').items() if cell[0] == 'VMask'
  )


_TM = ('transcript_tm', 'as in Table II')
NUMBERS: dict[str, Table] = dict(
    runs_vanilla=lambda: runs(*_TM, 'vanilla', 'attack 1'),
    runs_scratch=lambda: runs(*_TM, 'vanilla', 'scratch 1'),
    runs_vmask=lambda: runs(*_TM, 'VMask', 'attack 1'),
    off_main=lambda: off('main', paper.MAIN),
    off_attack=lambda: off('attack', paper.ATTACK),
    off_scratch=lambda: off('scratch', paper.BASELINES),
    off_alone=lambda: off('alone', paper.BASELINES),
    few_m=lambda: few('attack', 'M'),
    few_imagined=lambda: few('simulated_leakage', 'M', digits=0),
    imagined_ours=lambda: imagined('table2', 'TM'),
    imagined_authors=lambda: imagined('authors', 'TM'),
    attacked_authors=lambda: attacked('authors', 'TM'),
    fedpass_least=lambda: f"{min(older.column('M')['FedPass']['main']):.0f}",
    first_epoch=first_epoch, kept=kept, dcor=dcor,
    vanilla=lambda: vanilla('attack 1'),
    scratch=lambda: vanilla('scratch 1'),
    vanilla_lenet5=lambda: vanilla('attack 1', '_lenet5'),
    scratch_lenet5=lambda: vanilla('scratch 1', '_lenet5'),
    budgets_main=lambda: span(
        map(older.mean, (
            row['main'] for row in older.budgets('fig8_authors').values()
        )), 1
    ),
    tracking=lambda: regained('T3', 'tracking'),
    solving=lambda: regained('T3', 'linear 40'),
    at_t4=lambda: span(
        tables_costs.regained('adaptive', 'T4', name)
        for name in older.adaptive('adaptive')['T4']
        if not name.startswith(('full', 'redrawn'))
    ),
    convolutions=convolutions, standardized=standardized,
    full_hidden=lambda: tables_runs.hidden('tm_full'),
    full_gap=lambda: evidence.spread(full_gap()), full_off=full_off,
    full_gap_tfm=lambda: evidence.spread(full_gap('tfm_full')),
    full_lenet5=lambda: (
        f'{max(older.mean(full_gap(name)) for name in _LENET5):.1f}'
    ),
    full_imagined=lambda: span(full('VMask', 'simulated_leakage')),
    cut_main=lambda: cut('main', 'accuracy', paper.MAIN),
    cut_attack=lambda: cut('attack', BEST, paper.ATTACK),
    dcor_main=lambda: dearer('dCor', 0.15),
    hidden_all_mlp3=lambda: hidden_leaves('mlp3', '1,2,3'),
    hidden_first_mlp3=lambda: hidden_leaves('mlp3', '1'),
    hidden_all_lenet5=lambda: hidden_leaves('lenet5', '1,2,3,4,5'),
    hidden_two_lenet5=lambda: hidden_leaves('lenet5', '1,2'),
    again_fig6=lambda: again('fig6'), fig6_hidden=fig6_hidden,
    again_fig6_lenet5=lambda: again('fig6_lenet5'),
    shares_all=lambda: shares('all'),
    dcor_attack=lambda: of_fig6('dCor', 0.15, 'attack'),
    least_fig6=lambda: of_fig6('VMask', 0.25, 'attack'),
    most_fig6=lambda: of_fig6('VMask', 0.6, 'attack'),
    hardly_better=hardly_better,
)
