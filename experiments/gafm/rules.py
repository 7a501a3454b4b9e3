"""The rules of GAFM's claims, on rows of means over seeds (`rows.Row`).

"Less" is any less, "similar" by under `SIMILAR` points of AUC, "close" by under
`CLOSE` points of leak AUC. A trade is AUC over leak AUC, Table 3's measure.
"""
from collections.abc import Sequence

from experiments.gafm.rows import Row

PAPERS = ('norm', 'mean', 'median')
OURS = ('value', 'residual')
SEVERE = ('mean', 'median')  # "More severe", of Figure 3.
SIMILAR = 2.0  # Points of AUC.
CLOSE = 5.0  # Points of leak AUC.


def strongest(row: Row) -> float:
  """The strongest of the attacks that were measured."""
  return max(row[a] for a in attacks(row))


def attacks(row: Row) -> tuple[str, ...]:
  """The paper's three, and ours if the record has them."""
  return (*PAPERS, *(a for a in OURS if a in row))


def ratios(row: Row) -> tuple[float, float]:
  return row['auc/median'], row['auc/mean']


def width(row: Row) -> float:
  return row['best'] - row['worst']


def near(rows: Sequence[Row]) -> bool:
  """Whether these AUCs are similar and these leaks close."""
  values = [[r[k] for r in rows] for k in ('auc', *PAPERS)]
  spans = [max(x) - min(x) for x in values]
  return spans[0] < SIMILAR and max(spans[1:]) < CLOSE


def all_less(less: Row, more: Row) -> bool:
  return all(less[a] < more[a] for a in attacks(less))


def lower_with_three(g3: Row, g1: Row, m3: Row, m1: Row) -> bool:
  return g3['auc'] < g1['auc'] and m3['auc'] < m1['auc']


def best_ratios(gafm: Row, ce_only: Row) -> bool:
  return all(a >= b for a, b in zip(ratios(gafm), ratios(ce_only)))


def similar(ours: Row, theirs: Row) -> bool:
  return ours['auc'] > theirs['auc'] - SIMILAR


def lower(less: Row, *more: Row) -> bool:
  """Whether its AUC is below each of the others'."""
  return all(less['auc'] < r['auc'] for r in more)


def little(gan_only: Row, gafm: Row) -> bool:
  """Whether it leaks no more than GAFM to the more severe attacks."""
  return all(gan_only[a] <= gafm[a] for a in SEVERE)


def fluctuates(ce_only: Row, gafm: Row) -> bool:
  """Whether its leaks differ more over seeds than GAFM's, worst to best."""
  return all(
      ce_only[f'width/{a}'] > gafm[f'width/{a}'] for a in SEVERE
  )


def trade(row: Row) -> float:
  """AUC over leak AUC, mean of the paper's three attacks."""
  return sum(row[f'auc/{a}'] for a in PAPERS) / len(PAPERS)


def best_trade(balanced: Row, *others: Row) -> bool:
  return all(trade(balanced) > trade(r) for r in others)
