"""A record's rows for verdicts: means over seeds, or over bootstrap draws."""
from collections.abc import Mapping, Sequence

import numpy as np

from experiments import evidence, redrawn
from experiments.gafm import common, measured

# 'auc', 'worst', 'best', attacks and 'width/' an attack, worst to best seed, in
# percent; 'auc/' an attack.
Row = dict[str, float]
BySeed = Mapping[str, np.ndarray]  # The same by seed, without the ends.


def by_seed(where: str, epoch: str) -> BySeed:
  """{'auc', an attack, 'auc/' an attack: [seeds]} of 'record/row'.

  Args:
    epoch: The epoch that counts for attacks: 'max' (the best one) or 'last'.
  """
  record, _, named = where.partition('/')
  results = measured.load(record)
  cell = evidence.cell(results, named)
  found = dict(auc=measured.auc(results, cell))
  for attack in common.ATTACKS + common.STRONGER:
    if attack in common.STRONGER and attack not in results.attacks:
      continue
    short = measured.SHORT[attack]
    found[short] = measured.leak(results, cell, attack, epoch)
    found[f'auc/{short}'] = measured.ratio(results, cell, attack, epoch)
  return found


def row(where: str, epoch: str) -> Row:
  """Means over seeds, and how far these are apart, see `Row`."""
  found = by_seed(where, epoch)
  (made,) = _rows(found, np.full((1, len(found['auc'])), 1 / len(found['auc'])))
  return made


def drawn(places: Sequence[str], epoch: str) -> list[tuple[Row, ...]]:
  """Rows for every draw of the seeds, see `redrawn`.

  Rows of one record share their seeds' splits, so they share draws. Rows of
  different records have independent draws.
  """
  records = list(dict.fromkeys(w.partition('/')[0] for w in places))
  columns = []
  for where in places:
    found = by_seed(where, epoch)
    which = records.index(where.partition('/')[0])
    columns.append(_rows(found, redrawn.weights(len(found['auc']), which)))
  return list(zip(*columns))


def _rows(found: BySeed, weights: np.ndarray) -> list[Row]:
  """A row for each of [draws, seeds] shares of the seeds."""
  means = {name: weights @ x for name, x in found.items()}
  there = weights > 0
  ends = {
      name: (np.where(there, x, np.inf).min(1),
             np.where(there, x, -np.inf).max(1))
      for name, x in found.items() if '/' not in name
  }
  means['worst'], means['best'] = ends.pop('auc')
  means |= {f'width/{a}': most - least for a, (least, most) in ends.items()}
  values = np.stack([*means.values()], 1).tolist()
  return [dict(zip(means, one)) for one in values]
