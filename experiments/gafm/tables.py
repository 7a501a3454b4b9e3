"""The README's tables from the records of runs; AUCs in percent.

The paper does not say which epoch its leak AUCs are from. Its public code
returns the last one's, so the paper's numbers stand beside our last epoch's
(`leak_auc_last`). The row below has each seed's epoch in which the attack
learns most (`leak_auc_max`), because an attacker gets the gradients of all.
"""
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
import itertools

import numpy as np

from experiments import evidence
from experiments.evidence import Table
from experiments.gafm import (
    ablations, common, numbers, paper as printed, readings, reviews, scripts,
    table2, table4, terms,
)
from experiments.gafm.measured import (
    EPOCHS, FAR, NAMES, PAPER, SHORT, WRONG, auc, differing, leak, load,
    log_loss, missing, ratio,
)
from vfljax.report import reading
from vfljax.report.reading import Cell, Results
from vfljax.runner.config import Paper

ALL = (*common.ATTACKS, *common.STRONGER)
EARLIER = dict(reviews_450=450, reviews_1500=1500)  # rounds
# The rows in which trainings on reviews break, and those beside them.
BREAKING = (
    'gafm', 'gafm_delta', 'sigma_0.25', 'sigma_1', 'gafm_marvell', 'gamma_0.2',
    'ce_only', 'gan_only',
)
More = Callable[[Results, Cell, str], list[str]]


def name(cell: Cell) -> str:
  """A row's name as the README shows it."""
  return NAMES.get(cell[0], cell[0].replace('_', ' '))


def labelled(results: Results, cell: Cell) -> str:
  """A row's name, with its Delta where the record has several."""
  several = [c[0] for c in results.cells].count(cell[0]) > 1
  delta = f', Delta {reading.strength(cell)}' if several else ''
  return name(cell) + delta


def worst_best(x: np.ndarray) -> str:
  return f'{evidence.spread(x)} ({np.nanmin(x):.1f}-{np.nanmax(x):.1f})'


def flipped(x: np.ndarray) -> str:
  """The number of seeds whose model has the classes swapped."""
  count = int((x < 50).sum())
  text = f'{count}/{len(x)}'
  if count:
    text += f', folded {evidence.spread(np.maximum(x, 100 - x))}'
  return text


def ours(
    results: Results, cell: Cell, attacks: Sequence[str] = common.ATTACKS,
    bold: Iterable[tuple] = (), more: More | None = None,
) -> list[list[str]]:
  """A row for the last epoch, and one for each attack's best."""
  x = auc(results, cell)
  mark = lambda text, what: f'**{text}**' if (cell[0], what) in bold else text
  first = [labelled(results, cell), mark(worst_best(x), None), flipped(x)]
  if cell[0].endswith('_generator'):
    return [[*first, 'the same training']]
  rows = []
  for epoch in EPOCHS:
    leaks = [evidence.spread(leak(results, cell, a, epoch)) for a in attacks]
    if epoch == 'last':
      leaks = [mark(text, a) for text, a in zip(leaks, attacks)]
    rows.append([
        *(first if epoch == 'last' else [''] * len(first)), EPOCHS[epoch],
        *leaks, *(more(results, cell, epoch) if more else ()),
    ])
  return rows


def theirs(
    defense: str, paper: Iterable[Paper], attacks: Sequence[str],
    ranges: Mapping[str, str] | None = None,
) -> list[list[str]]:
  """The paper's row, if it has one."""
  given = {p.attack: p for p in paper if p.defense == defense}
  if not given:
    return []
  text = lambda p: f'{100 * p.mean:.0f} +- {100 * (p.std or 0):.0f}'
  model = text(given[None])
  if ranges and defense in ranges:
    model = f'{100 * given[None].mean:.0f} ({ranges[defense]})'
  return [[
      f'{name((defense, None))}, paper', model, '', 'not said',
      *(text(given[a]) if a in given else '' for a in attacks),
  ]]


def laid_out(
    rows: Iterable[Sequence[str]], attacks: Sequence[str], *more: str
) -> str:
  head = ('', 'AUC (worst-best)', 'flipped', 'epoch',
          *(SHORT[a] for a in attacks), *more)
  return evidence.markdown(
      head, ([*row, *[''] * (len(head) - len(row))] for row in rows)
  )


def table(
    record: str, paper: Sequence[Paper] = (),
    attacks: Sequence[str] = common.ATTACKS,
    ranges: Mapping[str, str] | None = None, more: More | None = None,
    columns: Sequence[str] = (), same_data: bool = True,
) -> str:
  """Every row of a record, below the paper's.

  Args:
    ranges: The paper's worst and best AUCs.
    more: What a row has in `columns`.
    same_data: Whether a difference from the paper says something, in bold.
  """
  if not evidence.exists(PAPER, record):
    return missing(record)
  results = load(record)
  off = differing(results, paper) if same_data else set()
  rows = []
  for cell in results.cells:
    rows += theirs(cell[0], paper, attacks, ranges)
    rows += ours(results, cell, attacks, off, more)
  return laid_out(rows, attacks, *columns) + '\n' + evidence.source(
      PAPER, record
  )


def ratios(results: Results, cell: Cell, epoch: str) -> list[str]:
  """AUC to leak AUC of the median and the mean attack, as in Table 3."""
  found = []
  for i, attack in enumerate(('median_scoring', 'mean_scoring')):
    text = evidence.mean(ratio(results, cell, attack, epoch), 2)
    if epoch == 'last' and cell[0] in printed.RATIOS:
      text += f' (paper {printed.RATIOS[cell[0]][i]:.2f})'
    found.append(text)
  return found


def readings_() -> str:
  """Every reading beside the default one, which is Table 2's."""
  if lacking := missing('table2', 'readings'):
    return lacking
  results = load('readings')
  off = differing(results, readings.PAPER)
  rows = [
      *theirs('gafm', table2.PAPER, common.ATTACKS, printed.RANGES),
      *ours(load('table2'), evidence.cell(load('table2'), 'gafm')),
  ]
  rows[1][0] = 'one norm for the batch (default)'
  for cell in results.cells:
    rows += ours(results, cell, bold=off)
  return laid_out(rows, common.ATTACKS) + '\n' + evidence.source(
      PAPER, 'readings'
  )


def by_seed() -> str:
  """The AUC of each seed on reviews, where some trainings break."""
  late = 'reviews', 'reviews_sigmas'
  if lacking := missing(*late, *EARLIER):
    return lacking
  row = lambda results, cell, when='': [
      labelled(results, cell) + when,
      *(f'{x:.1f}' for x in auc(results, cell)),
      f'{int((auc(results, cell) < FAR).sum())}',
      f'{int((log_loss(results, cell) > WRONG).sum())}',
  ]
  rows = [
      row(load(r), evidence.cell(load(r), 'gafm'), f', after {rounds} rounds')
      for r, rounds in EARLIER.items()
  ]
  for part, results in itertools.product(BREAKING, map(load, late)):
    rows += [row(results, cell) for cell in results.cells if cell[0] == part]
  head = ('seed', *map(str, range(len(rows[0]) - 3)), f'below {FAR}',
          f'log loss above {WRONG}')
  return evidence.markdown(head, rows) + '\n' + evidence.source(
      PAPER, next(iter(EARLIER))
  )


NUMBERS: dict[str, Table] = numbers.NUMBERS
TABLES: dict[str, Table] = dict(
    table2=partial(table, 'table2', table2.PAPER, ALL, printed.RANGES),
    table3=partial(
        table, 'table3', (), ALL, more=ratios,
        columns=('AUC/median', 'AUC/mean'),
    ),
    table4=partial(table, 'table4', table4.PAPER),
    table4_221=partial(table, 'table4_221'),
    table6=partial(table, 'table6', ablations.PAPER['table6']),
    table8=partial(table, 'table8'), table10=partial(table, 'table10'),
    delta=scripts.delta, table11=partial(table, 'table11', (), ALL),
    reviews=partial(
        table, 'reviews', reviews.PAPER, ALL, printed.RANGES_IMDB,
        same_data=False,
    ),
    reviews_1500=partial(table, 'reviews_1500', (), ALL),
    reviews_seeds=by_seed, reviews_delta=scripts.delta_on_reviews,
    reviews_multiparty=partial(
        table, 'reviews_multiparty', reviews.PAPER_4, same_data=False
    ),
    reviews_max_norm=partial(
        table, 'reviews_max_norm', reviews.PAPER_4, same_data=False
    ),
    reviews_sigmas=partial(
        table, 'reviews_sigmas', reviews.PAPER, ALL, same_data=False
    ),
    readings=readings_, averaging=scripts.averaging,
    **{of.record: partial(terms.table, of) for of in terms.DATA.values()},
    speed=scripts.speed,
)
