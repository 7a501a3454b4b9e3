"""What an attack shows by chance: a folded AUC of few samples is not 0.5.

Of p samples of one class and n of the other the AUC of scores that know nothing
has a deviation of sqrt((p + n + 1) / (12 p n)) (Mann and Whitney, 1947). Folded
it is above 0.5 always, and the best of many epochs is far above: of 14 positive
samples in 1400, and 30 epochs, 18 points. Leakages of that size are not told
from none.
"""
import math
from typing import Any

from vfljax import attacks, views
from vfljax.data.table import counted
from vfljax.report import reading
from vfljax.report.ranks import Trade
from vfljax.report.reading import Results

LEAST = 5.0  # Points that are of no account: they have the best score.


def sentences(results: Results, trade: Trade) -> list[str]:
  """Where what a defense leaks to its worst attack may be chance; else none."""
  least, leak = by_chance(results, trade), trade.leakage[trade.worst]
  half = leak.half if math.isfinite(leak.half) else 0.0
  if least < LEAST or leak.mean - half > least:
    return []
  return [_said(results, trade, least) + ' It may leak nothing.']


def unreachable(results: Results, trade: Trade, most: float) -> list[str]:
  """That so little leakage cannot be seen, where it cannot; else none."""
  least = by_chance(results, trade)
  return [_said(results, trade, least)] if least > most else []


def by_chance(results: Results, trade: Trade) -> float:
  """Points that an attack like the worst one shows if it learns nothing.

  0 if that is not known, or nothing.
  """
  if (reading.leak_metric(results, trade.worst) != 'leak_auc'
      or len(results.training) != 2 or min(results.training) < 1):
    return 0.0
  from scipy import special  # Slow to import, and seldom needed.
  p, n = _unknown(results, trade.worst)
  epochs = results.epochs if results.when == 'max' else 1
  # The mean of one, and nearly that of the largest of several (Blom, 1958).
  top = math.sqrt(2 / math.pi) if epochs == 1 else float(
      special.ndtri((1 + (epochs - 0.375) / (epochs + 0.25)) / 2)
  )
  return min(50.0, 100 * top * math.sqrt((p + n + 1) / (12 * p * n)))


def _unknown(results: Results, attack: str) -> tuple[float, float]:
  """About how many samples of either class such an attack has to infer.

  Those that it is told are not scored: half of them, or a positive one of each
  round that has any.
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
    return None  # Nobody knows it here.


def _said(results: Results, trade: Trade, least: float) -> str:
  where = f' in the best of {results.epochs} epochs' if (
      results.when == 'max' and results.epochs > 1) else ''
  few = round(min(_unknown(results, trade.worst)))
  return (
      f'An attack that learns nothing would by chance show {least:.1f} points'
      f'{where}, with about {counted(few, "training sample")} of the rarer '
      'class to infer: a smaller leak cannot be told from none here.'
  )
