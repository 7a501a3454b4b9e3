"""The README's tables from records of whole runs (`launch.py --record`).

Percent, +- over trainings. Attack and scratch are each attack run's best epoch,
as the paper has it. They have no diverged training's numbers, see older.py.
"""
from collections.abc import Callable
import math

from experiments import evidence, readers
from experiments.evidence import Table
from experiments.vmask import fig6 as figure
from experiments.vmask import older, paper
from vfljax.report import reading
from vfljax.report.reading import Cell, Results

PAPER = 'vmask'
MNIST = '--config.data.path=mnist.npz'
FASHION = '--config.data.path=fashion_mnist.npz'
_FULL = (
    "--config.data.limit=0 --config.train.epochs=50 "
    "'--config.defenses=none,VMask'"
)
FULL = {  # Columns at the paper's size, by whose settings.
    'our': ('tm_full', 'tfm_full', 'm_full', 'fm_full'),
    "authors'": (
        'authors_tm', 'authors_tfm', 'authors_m_full', 'authors_fm_full'
    ),
}
RUNS = dict(
    scratch_40=f'table2.py:m {MNIST} --config.data.limit=7640 '
    '--config.defenses=none --config.attack.completion.batch_size=0',
    dg_eq19=f'table2.py:tfm {FASHION} '
    '--config.defenses=discrete_sgd',
    tm_full=f'table2.py:tm {MNIST} {_FULL}',
    tfm_full=f'table2.py:tfm {FASHION} {_FULL}',
    m_full=f'table2.py:m {MNIST} {_FULL}',
    fm_full=f'table2.py:fm {FASHION} {_FULL}',
    authors_m_full=f'authors.py:m {MNIST} {_FULL}',
    authors_fm_full=f'authors.py:fm {FASHION} {_FULL}',
    tm_standardized=f'table2.py:tm {MNIST} '
    '--config.attack.completion.standardize=True '
    "'--config.defenses=none,VMask,MID,dCor,KDk'",
    gradients_tm=f'table2.py:tm {MNIST} '
    "'--config.defenses=none,VMask,NG,CG,DG,FedPass,LabelDP,KDk,dCor,MID,"
    "FedPass both' --config.attacks=learned_gradient,gradient_clustering "
    '--config.attack.repeats=1 --config.attack.replay_rounds=31',
    combined=f'combined.py {MNIST}',
    fig6=f'fig6.py:mlp3 {MNIST}', fig6_lenet5=f'fig6.py:lenet5 {MNIST}',
    fig8_lenet5=f'fig8.py:lenet5 {MNIST} '
    "'--config.defenses=none,VMask 50x5'",
    authors_tm=f'authors.py:tm {MNIST}', authors_m=f'authors.py:m {MNIST}',
    authors_tfm=f'authors.py:tfm {FASHION}',
    authors_fm=f'authors.py:fm {FASHION}',
)
# What tables call a defense; bins of Kang's rule are no levels of Fu et al.'s.
_SAID = dict(none='vanilla', discrete_sgd='DG, Eq. 19, bins:')
ATTACK, SCRATCH = 'model_completion', 'scratch'
_MEASURED = {'accuracy': paper.MAIN, f'{ATTACK}/accuracy_best': paper.ATTACK}


def recorded(*names: str) -> Callable[[Table], Table]:
  return evidence.of_records(PAPER, RUNS, *names)


def _says(results: Results, cell: Cell, what: str) -> str:
  return evidence.spread(evidence.quantity(results, cell, what).values())


def _results(name: str) -> Results:
  return evidence.load(PAPER, name).results


def _masked(results: Results) -> Cell:
  return evidence.cell(results, 'VMask')


def _named(cell: Cell) -> str:
  label = _SAID.get(cell[0], cell[0])
  return ' '.join(filter(None, (label, reading.strength(cell))))


def attacked(name: str) -> str:
  """Main and attack accuracy of every row; what an attacker has without one."""
  results = evidence.load(PAPER, name).results
  rows = [
      [_named(c), *(_says(results, c, what) for what in (
          'accuracy', f'{ATTACK}/accuracy_best'
      ))] for c in results.cells
  ]
  none = results.cells[0]
  if SCRATCH in results.baselines:
    found = _says(results, none, f'{SCRATCH}/accuracy_best')
    rows.append(['scratch', '', found])
  if evidence.alone(results):
    rows.append(['alone', _says(results, none, 'alone'), ''])
  return evidence.markdown(('', 'main', 'attack'), rows)


def column_of(record: str) -> str:
  """TM, TFM, M or FM."""
  return record.removeprefix('authors_').removesuffix('_full').upper()


def hidden(record: str) -> str:
  """'2, 2, 2': layers that VMask hid at the end, by training."""
  results, count = _results(record), older.layers(column_of(record))
  found = evidence.quantity(results, _masked(results), 'masked').values()
  return ', '.join(f'{count * x / 100:.0f}' for x in found)


def full_size() -> str:
  """Columns at the paper's size; its own numbers stand in brackets."""
  lines = [
      row for settings, names in FULL.items() for name in names
      for row in _compared(name, settings)
  ]
  head = '', '', 'main (paper)', 'attack (paper)', 'layers hidden at the end'
  return evidence.markdown(head, lines)


def _compared(name: str, settings: str) -> list[list[str]]:
  """What a record and the paper have of a column, a line for each of four."""
  results, column = _results(name), column_of(name)
  none, masked = results.cells[0], _masked(results)
  alone, scratch = paper.BASELINES[column]

  def both(cell: Cell, row: str) -> list[str]:
    at = paper.ROWS.index(row)
    return [
        f'{_says(results, cell, what)} ({theirs[column][at]:g})'
        for what, theirs in _MEASURED.items()
    ]

  from_scratch = _says(results, none, f'{SCRATCH}/accuracy_best')
  return [
      [f'{column}, {settings} settings', 'alone',
       f"{_says(results, none, 'alone')} ({alone:g})", '', ''],
      ['', 'scratch', '', f'{from_scratch} ({scratch:g})', ''],
      ['', 'vanilla', *both(none, 'none'), ''],
      ['', 'VMask', *both(masked, 'VMask'), hidden(name)],
  ]


def points(name: str = 'fig6') -> dict[Cell, tuple[float, float]]:
  """Figure 6's mean main and attack accuracy in percent.

  Trainings that diverged are left out, and so are points that have no other.
  """
  rows = older.of_cells(name).items()
  found = {
      c: (older.mean(row['main']), older.mean(row['attack']))
      for c, row in rows
  }
  return {c: point for c, point in found.items() if math.isfinite(point[0])}


def trades(name: str) -> str:
  """Main / attack accuracy at every strength, and without anything sent."""
  found = older.of_cells(name)
  labels = list(dict.fromkeys(c[0] for c in found))
  widest = max(len(s) for s in figure.STRENGTHS.values())
  rows = []
  for label in labels:
    cells = [c for c in found if c[0] == label]
    pairs = [_pair(found[c]) for c in cells]
    between = [''] * (max(4, widest) - len(pairs))
    at = max(1, len(pairs) - 1)
    strengths = ', '.join(filter(None, map(reading.strength, cells)))
    rows.append([
        _named((label, None)) + (f' ({strengths})' if strengths else ''),
        *pairs[:at], *between, *pairs[at:],
    ])
  none = found['none', None]
  for what, shown in (('scratch', '– / {}'), ('alone', '{} / –')):
    if what in none:
      text = shown.format(older.says(none, what))
      rows.append([what, text, *[''] * (len(rows[0]) - 2)])
  return evidence.markdown(('', 'weak', '', '', 'strong'), rows)


def _pair(row: older.Row) -> str:
  """'96.8 / 46.9', main and attack."""
  main, attack = (older.says(row, what) for what in ('main', 'attack'))
  return main if main == 'diverged' else f'{main} / {attack}'


def gradients() -> str:
  """What is read in gradients, beside completion by Table II's attacker."""
  completed = older.column('TM')
  return readers.table(
      _results('gradients_tm'), _named,
      lambda cell: older.says(completed[cell[0]], 'attack'),
      older.says(completed['none'], 'scratch'),
  )


def combined() -> str:
  """The same of VMask with NG, and completion of the same trainings."""
  results = _results('combined')
  return readers.table(
      results, _named,
      lambda cell: _says(results, cell, f'{ATTACK}/accuracy_best'),
      _says(results, results.cells[0], f'{SCRATCH}/accuracy_best'),
  )


def budgets(name: str) -> str:
  """Figure 8, one training: what each budget leaves, and hides."""
  results = evidence.load(PAPER, name).results
  none, *cells = results.cells
  rows = [[reading.strength(c), *(_says(results, c, what) for what in (
      f'{ATTACK}/accuracy_best', 'accuracy', 'simulated_leakage',
      'mask_ratio', 'masked',
  ))] for c in cells]
  rows.append(['vanilla', *(
      _says(results, none, what)
      for what in (f'{ATTACK}/accuracy_best', 'accuracy')
  ), '', '', ''])
  scratch = _says(results, none, f'{SCRATCH}/accuracy_best')
  return evidence.markdown((
      'budget', 'attack', 'main', 'imagined attack', 'mask ratio, %',
      'hidden at the end, %',
  ), [*rows, ['scratch', scratch, *[''] * 4]])


TABLES: dict[str, Table] = dict(
    scratch_40=recorded('scratch_40')(lambda: attacked('scratch_40')),
    dg_eq19=recorded('dg_eq19')(lambda: attacked('dg_eq19')),
    full_size=recorded(*(n for names in FULL.values() for n in names))(
        full_size
    ),
    tm_standardized=recorded('tm_standardized')(
        lambda: attacked('tm_standardized')
    ),
    gradients_tm=recorded('gradients_tm')(gradients),
    combined=recorded('combined')(combined),
    fig6=recorded('fig6')(lambda: trades('fig6')),
    fig6_lenet5=recorded('fig6_lenet5')(lambda: trades('fig6_lenet5')),
    fig8_lenet5=recorded('fig8_lenet5')(lambda: budgets('fig8_lenet5')),
)
