"""Whether the undefended federation learned anything that a defense can cost.

If it does no better than a constant answer, every defense looks free, and the
one with the most noise wins. If nine of ten samples are of one class, always
answering that class has an accuracy of 90 %: only the few points above that can
be lost.
"""
import math
from typing import NamedTuple

from vfljax.report import chance, reading
from vfljax.report.reading import Results, Summary

SMALL = 10.0  # Points learned, of which a budget of 1 or 2 is a large part.
UNEQUAL = 1.5  # Share of the most frequent class over an equal share.


class Guess(NamedTuple):
  """The accuracy, or AUC, that is reached without any feature, and how."""

  value: float
  how: str


def sentences(results: Results) -> list[str]:
  """Warnings if there is little or nothing to lose, or classes are unequal."""
  free = _undefended(results)
  guess = guessing(results)
  if not free.count or not guess:
    return []
  half = _half(free)
  more = 100 * (free.mean - guess.value)
  has = (
      f'undefended, the federation has a test {_metric(results)} of '
      f'{free.mean:.3f}' + (f' ± {half:.3f}' if half else '')
  )
  rule = f'{guess.how} has {guess.value:.3f}'
  said = []
  if nothing(results):
    said.append(
        f'NOTHING LEARNED: {has}, which these seeds do not show to be more '
        f'than guessing: {rule}. So this run cannot show what a defense costs. '
        'Help the federation to learn: use more rows, other columns, or a '
        'larger --config.train.epochs.'
    )
  elif more < SMALL:
    said.append(
        f'Little to lose: {has}, and {rule} without learning. A defense that '
        f'costs {more:.1f} points leaves nothing of what was learned.'
    )
  return said + _by_accuracy(results)


def nothing(results: Results) -> bool:
  """Whether the seeds show no more than guessing; False if that is unknown."""
  free, guess = _undefended(results), guessing(results)
  if not free.count or not guess:
    return False
  return free.mean - _half(free) <= guess.value


def guessing(results: Results) -> Guess | None:
  """The best score without any feature; `None` if it is unknown."""
  if results.metric == 'auc':
    return Guess(0.5, 'a coin')
  if results.metric == 'accuracy' and results.shares:
    name, share = max(results.shares.items(), key=lambda item: item[1])
    return Guess(share, f'always saying {name!r}')
  return None


def _by_accuracy(results: Results) -> list[str]:
  """A warning about accuracies if classes are unequal; [] otherwise."""
  guess, classes = guessing(results), len(results.shares)
  by = [
      attack for attack in results.attacks
      if 'accuracy' in reading.leak_metric(results, attack)
  ]
  if results.metric != 'accuracy' or not guess or not by:
    return []
  points = 100 * (guess.value - 1 / classes)
  if guess.value * classes < UNEQUAL and points <= chance.LEAST:
    return []
  return [
      f'Classes are unequal: {guess.how} is right in {guess.value:.1%}, '
      f'{points:.1f} points more than one of {classes} equal classes. So much '
      'leakage by accuracy may be none, and accuracies say little about the '
      'rarer classes.'
  ]


def _half(free: Summary) -> float:
  return free.half if math.isfinite(free.half) else 0.0


def _undefended(results: Results) -> Summary:
  none = reading.baseline(results)
  return reading.summarize(
      reading.utility(results, none).values() if none else ()
  )


def _metric(results: Results) -> str:
  return 'AUC' if results.metric == 'auc' else results.metric
