"""Whether there is anything that a defense could cost: what was learned at all.

Of a federation that does no better than a constant answer every defense is
free, and whatever adds most noise leaks least. And where nine of ten samples
are of one class, whoever always says that one has an accuracy of 90 %: the
few points above it are all that there is to lose.
"""
import math
from typing import NamedTuple

from vfljax.report import reading
from vfljax.report.reading import Results, Summary

SMALL = 10.0  # Points: a budget of one or two is a good part of so few.
UNEQUAL = 1.5  # Times its equal share that the most frequent class has.


class Guess(NamedTuple):
  """What has a share of right answers, or an AUC, without any feature."""

  value: float
  how: str


def sentences(results: Results) -> list[str]:
  """What there is to lose, where that is nothing or little; none elsewhere."""
  free = _undefended(results)
  guess = guessing(results)
  if not free.count or not guess:
    return []
  half = free.half if math.isfinite(free.half) else 0.0
  more = 100 * (free.mean - guess.value)
  has = (
      f'undefended, the federation has a test {_metric(results)} of '
      f'{free.mean:.3f}' + (f' ± {half:.3f}' if half else '')
  )
  rule = f'{guess.how} has {guess.value:.3f}'
  said = []
  if free.mean - half <= guess.value:
    said.append(
        f'NOTHING LEARNED: {has}, as far as the seeds tell no more than '
        f'guessing: {rule}. So it is not seen what a defense costs. It takes a '
        'federation that learns: more rows, other columns, or more of '
        '--config.train.epochs.'
    )
  elif more < SMALL:
    said.append(
        f'Little to lose: {has}, and {rule}. A defense that costs {more:.1f} '
        'points leaves nothing of what was learned.'
    )
  return said + _by_accuracy(results)


def guessing(results: Results) -> Guess | None:
  """The best that there is without a feature; `None` if nobody knows."""
  if results.metric == 'auc':
    return Guess(0.5, 'a coin')
  if results.metric == 'accuracy' and results.shares:
    name, share = max(results.shares.items(), key=lambda item: item[1])
    return Guess(share, f'always saying {name!r}')
  return None


def _by_accuracy(results: Results) -> list[str]:
  """Where classes are unequal: what a leakage by accuracy counts from."""
  guess, classes = guessing(results), len(results.shares)
  by = [
      attack for attack in results.attacks
      if 'accuracy' in reading.leak_metric(results, attack)
  ]
  if results.metric != 'accuracy' or not guess or not by or (
      guess.value * classes < UNEQUAL
  ):
    return []
  return [
      f'Classes are unequal, and {guess.how} is right in {guess.value:.1%}: '
      'accuracies, and leakages that are counted in them, say little of the '
      'rarer ones.'
  ]


def _undefended(results: Results) -> Summary:
  none = reading.baseline(results)
  return reading.summarize(
      reading.utility(results, none).values() if none else ()
  )


def _metric(results: Results) -> str:
  return 'AUC' if results.metric == 'auc' else results.metric
