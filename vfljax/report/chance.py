"""What an attack shows by chance: a folded AUC of few samples is not 0.5.

With p samples of one class and n of the other, the AUC of uninformed scores has
a standard deviation of sqrt((p + n + 1) / (12 p n)) (Mann and Whitney, 1947). A
folded AUC is never below 0.5, and the best of many epochs is well above it:
with 14 positive samples in 1400, and 30 epochs, by 18 points. A leakage of that
size cannot be told from none. An attack on rounds that are played again sees no
epochs, but two ends of training, and as many samples as those rounds have.
"""
from collections.abc import Mapping
import math
from typing import Any

from vfljax import attacks, views
from vfljax.attack import Attack
from vfljax.data.table import counted
from vfljax.leakage import AttackName
from vfljax.report import reading
from vfljax.report.ranks import Trade
from vfljax.report.reading import Results
from vfljax.runner.compiled.replay import rounds

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
  looks = _looks(results, trade.worst)
  # In standard deviations: the mean of |z|; of several looks, Blom's (1958)
  # approximation of the mean of the largest.
  top = math.sqrt(2 / math.pi) if looks == 1 else float(
      special.ndtri((1 + (looks - 0.375) / (looks + 0.25)) / 2)
  )
  return min(50.0, 100 * top * math.sqrt((p + n + 1) / (12 * p * n)))


def _stages(results: Results, attack: str) -> int:
  """At how many ends of training an attack had rounds played again; 0: none."""
  seen = results.measured.get(attack, ())
  if 'leak_auc' in seen:
    return 0
  return sum(f'leak_auc_{end}' in seen for end in ('start', 'end'))


def _looks(results: Results, attack: str) -> int:
  """Of how many leak AUCs the largest one counts."""
  return _stages(results, attack) or (
      max(results.epochs, 1) if results.when == 'max' else 1
  )


def _unknown(results: Results, attack: str) -> tuple[float, float]:
  """(positive, negative): about how many samples the attack has to infer.

  Samples whose labels the attack is given are not scored: half of all for class
  centers, one positive in each round that has any for a known positive, some of
  each class for recorded gradients.
  """
  n, p = results.training  # The second class counts as positive.
  made = _made(attack)
  view = made and made.view
  who = results.attackers.get(AttackName.parse(attack).named, {}) or (
      results.attackers.get('', {})
  )
  if made and results.batch and _stages(results, attack):
    asked = _number(who, 'replay_rounds')
    count = rounds(asked, made, int(p + n), results.batch)
    share = min(count * results.batch / (p + n), 1.0)
    p, n = p * share, n * share
  if view is views.RecordedGradients:
    told = _number(who, 'known')
    p, n = p - told, n - told
  if view is views.ClassCenters:
    p, n = p / 2, n / 2
  if view is views.KnownPositive and results.batch:
    each = (p + n) / results.batch
    p -= each * (1 - (n / (p + n)) ** results.batch)
  return max(p, 1.0), max(n, 1.0)


def _number(who: Mapping[str, Any], name: str) -> int:
  value = who.get(name, 0)
  return value if isinstance(value, int) and value > 0 else 0


def _made(attack: str) -> Any:
  """An attack like this one; `None` if it is not registered here."""
  try:
    made = attacks.REGISTRY[reading.base(attack)]()
  except (AttributeError, LookupError, TypeError, ValueError):
    return None
  return made if isinstance(made, Attack) else None


def _said(results: Results, trade: Trade, least: float) -> str:
  again, looks = (f(results, trade.worst) for f in (_stages, _looks))
  where = '' if looks == 1 else (
      ' at the better end of training' if again
      else f' in the best of {looks} epochs'
  )
  few = round(min(_unknown(results, trade.worst)))
  return (
      f'An attack that learns nothing would by chance show {least:.1f} points'
      f'{where}, with about {counted(few, "training sample")} of the rarer '
      'class to infer: a smaller leak cannot be told from none here.'
  )
