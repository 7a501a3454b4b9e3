"""What an attack shows by chance: a folded AUC of few samples is not 0.5.

With p samples of one class and n of the other, the AUC of uninformed scores has
a standard deviation of sqrt((p + n + 1) / (12 p n)) (Mann and Whitney, 1947). A
folded AUC is never below 0.5, and the best of many epochs is well above it:
with 14 positive samples in 1400, and 30 epochs, by 18 points. A leakage of that
size cannot be told from none.
"""
import math
from typing import Any

from vfljax import attacks, views
from vfljax.data.table import counted
from vfljax.report import reading
from vfljax.report.ranks import Trade
from vfljax.report.reading import Results

LEAST = 5.0  # Points. Smaller leakages have the best score anyway.


def sentences(results: Results, trade: Trade) -> list[str]:
  """A warning if the worst attack's leakage may be chance; [] otherwise."""
  least, leak = by_chance(results, trade), trade.leakage[trade.worst]
  half = leak.half if math.isfinite(leak.half) else 0.0
  if least < LEAST or leak.mean - half > least:
    return []
  return [_said(results, trade, least) + ' It may leak nothing.']


def unreachable(results: Results, trade: Trade, most: float) -> list[str]:
  """A sentence if chance alone shows more than `most` points; else []."""
  least = by_chance(results, trade)
  return [_said(results, trade, least)] if least > most else []


def by_chance(results: Results, trade: Trade) -> float:
  """Points that an attack like the worst one shows if it learns nothing.

  0 if that is unknown: for more than two classes, an attack not scored by leak
  AUC, or a run that does not say how many samples each class has.
  """
  if (reading.leak_metric(results, trade.worst) != 'leak_auc'
      or len(results.training) != 2 or min(results.training) < 1):
    return 0.0
  from scipy import special  # Slow to import, and seldom needed.
  p, n = _unknown(results, trade.worst)
  epochs = results.epochs if results.when == 'max' else 1
  # In standard deviations: the mean of |z|; for several epochs, Blom's (1958)
  # approximation of the mean of the largest.
  top = math.sqrt(2 / math.pi) if epochs == 1 else float(
      special.ndtri((1 + (epochs - 0.375) / (epochs + 0.25)) / 2)
  )
  return min(50.0, 100 * top * math.sqrt((p + n + 1) / (12 * p * n)))


def _unknown(results: Results, attack: str) -> tuple[float, float]:
  """(positive, negative): about how many samples the attack has to infer.

  Samples whose labels the attack is given are not scored: half of all for class
  centers, one positive in each round that has any for a known positive.
  """
  n, p = results.training  # The second class counts as positive.
  view = _view(attack)
  if view is views.ClassCenters:
    return p / 2, n / 2
  if view is views.KnownPositive and results.batch:
    rounds = (p + n) / results.batch
    told = rounds * (1 - (n / (p + n)) ** results.batch)
    return max(p - told, 1.0), n
  return p, n


def _view(attack: str) -> Any:
  try:
    return attacks.REGISTRY[reading.base(attack)]().view
  except (AttributeError, LookupError, TypeError, ValueError):
    return None  # The attack is not registered here.


def _said(results: Results, trade: Trade, least: float) -> str:
  where = f' in the best of {results.epochs} epochs' if (
      results.when == 'max' and results.epochs > 1) else ''
  few = round(min(_unknown(results, trade.worst)))
  return (
      f'An attack that learns nothing would by chance show {least:.1f} points'
      f'{where}, with about {counted(few, "training sample")} of the rarer '
      'class to infer: a smaller leak cannot be told from none here.'
  )
