"""Single numbers that the README quotes in its sentences."""
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from experiments import evidence
from experiments.evidence import Table
from experiments.gafm import ablations, common, table2
from experiments.gafm.measured import (
    EPOCHS, FAR, PAPER, SHORT, auc, compared, leak, load, missing, off,
)
from vfljax.runner.config import Paper


def marvell_30() -> str:
  """Its AUC early in training."""
  if not evidence.exists(PAPER, 'marvell_30'):
    return missing('marvell_30')
  return evidence.quoted(PAPER, 'marvell_30 marvell auc')


def counted(record: str, low: float, high: float) -> str:
  """In how many seeds GAFM's AUC is between two values."""
  return _seeds(record, lambda gafm, none: (low < gafm) & (gafm < high))


def better(record: str) -> str:
  """In how many seeds GAFM's AUC is above vanilla's."""
  return _seeds(record, lambda gafm, none: gafm > none)


def _seeds(
    record: str, holds: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> str:
  """'3 of 10': of GAFM's and vanilla's AUC by seed, in percent."""
  if not evidence.exists(PAPER, record):
    return missing(record)
  results = load(record)
  gafm, none = (
      auc(results, evidence.cell(results, name)) for name in ('gafm', 'none')
  )
  return f'{int(holds(gafm, none).sum())} of {len(gafm)}'


def agreed(record: str, paper: Iterable[Paper], row: str = '') -> str:
  """'4 of 4': how many numbers, all or a row's, are not off the paper's."""
  if not evidence.exists(PAPER, record):
    return missing(record)
  found = [
      c for c in compared(load(record), paper) if row in ('', c['defense'])
  ]
  return f'{sum(not off(c) for c in found)} of {len(found)}'


def least(
    record: str, less: str, *others: str,
    attacks: Iterable[str] = common.ATTACKS,
) -> str:
  """By how little a row leaks less than others, in points, and where."""
  if not evidence.exists(PAPER, record):
    return missing(record)
  results = load(record)
  mean = lambda row, attack, epoch: np.nanmean(
      leak(results, evidence.cell(results, row), attack, epoch)
  )
  gap, epoch, attack = min(
      (mean(other, attack, epoch) - mean(less, attack, epoch), epoch, attack)
      for other in others for epoch in EPOCHS for attack in attacks
  )
  return f'{gap:.1f} points ({EPOCHS[epoch]} epoch, {SHORT[attack]} attack)'


def rise(record: str, row: str, attacks: Iterable[str]) -> str:
  """How much more a row leaks in the best epoch than in the last, at most."""
  if not evidence.exists(PAPER, record):
    return missing(record)
  results = load(record)
  cell = evidence.cell(results, row)
  most = max(
      np.mean(leak(results, cell, a, 'max') - leak(results, cell, a, 'last'))
      for a in attacks
  )
  return f'{most:.1f} points'


ALL = (*common.ATTACKS, *common.STRONGER)
NOT_RESIDUAL = (*common.ATTACKS, 'value_scoring')
NUMBERS: dict[str, Table] = dict(
    marvell_30=marvell_30,
    agreed_2=partial(agreed, 'table2', table2.PAPER, 'gafm'),
    agreed_6=partial(agreed, 'table6', ablations.PAPER['table6']),
    reviews_early=partial(counted, 'reviews_450', 0, FAR),
    reviews_later=partial(counted, 'reviews_1500', 0, FAR),
    reviews_working=partial(counted, 'reviews_1500', 90, 100),
    reviews_better=partial(better, 'reviews_1500'),
    reviews_broken=partial(counted, 'reviews', 0, FAR),
    least_gafm=partial(least, 'reviews', 'gafm', 'none', attacks=ALL),
    least_g_m=partial(least, 'reviews', 'gafm_marvell', 'gafm', attacks=ALL),
    least_g_m_marvell=partial(
        least, 'reviews', 'gafm_marvell', 'marvell', attacks=NOT_RESIDUAL
    ),
    marvell_rise=partial(rise, 'table2', 'marvell', NOT_RESIDUAL),
)
