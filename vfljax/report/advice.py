"""Advice within a budget: which defense at which strength, and why.

The user limits the utility that a defense may cost (`--budget`), the leakage
that it may leave (`--max_leak`), or both. This module chooses the best measured
defense within the limits and says what it was compared with and how certain the
choice is. `untested` lists what was not measured.
"""
from collections.abc import Sequence

from vfljax.report import (
    chance, learned, lost, ranks, reading, verdict, words,
)
from vfljax.report.ranks import Trade
from vfljax.report.reading import Results, Summary
from vfljax.report.tables import Table, Text, leak_text, loss_text
from vfljax.runner.cli.goals import Goal

RIVALS = 3  # Most other defenses that the advised one is compared with.
NEAR = 5.0  # They leak at most so many points more; else one is named.


def sentences(results: Results, wanted: Goal) -> list[str]:
  """The advised defense, its nearest rivals, and the doubts about the choice.

  Warnings of `learned.sentences` come first: whether the federation learned
  anything that a defense could cost.
  """
  return [*learned.sentences(results), *_chosen(results, wanted)]


def _chosen(results: Results, wanted: Goal) -> list[str]:
  known = _known(results)
  if not _defended(known):
    return lost.undefended(results) or [
        'Nothing can be advised. Advice needs an undefended run, a defended '
        'one, the same attacks on each, and results of all their seeds.'
    ]
  fair = [t for t in known if affordable(t, wanted)]
  best = chosen(results, wanted)
  if best is None:
    return _nothing(results, known, wanted)
  free = _free(known)
  if free and best.cell == free.cell:
    return [
        f'{within(wanted)}, no defense {_better(wanted)} than having none: '
        f'undefended, {verdict.whom(free)} ({reading.pretty(free.worst)}) '
        f'{verdict.does(results, free)}.', *_doubts(results, free, wanted, None)
    ]
  return [
      f'{within(wanted)}, {typed(best)} {_superlative(wanted)}: '
      f'{_leaks(best)}, at a cost of {_amount(best.loss)}'
      f'{_beside(results, best, fair, wanted)}.',
      *_doubts(results, best, wanted, free),
  ]


def chosen(results: Results, wanted: Goal) -> Trade | None:
  """The advised trade: 'none' if no defense is better than having none.

  Returns:
    `None` if nothing is within the goal, or nothing can be advised.
  """
  known = _known(results)
  fair = [t for t in known if affordable(t, wanted)]
  if not fair or not _defended(known):
    return None
  best, free = min(fair, key=lambda t: order(t, wanted)), _free(known)
  return free if (
      free and free in fair and _no_better(best, free, wanted)
  ) else best


def _known(results: Results) -> list[Trade]:
  return [t for t in ranks.trades(results) if not t.lost.any]


def _defended(known: Sequence[Trade]) -> bool:
  return any(t.cell[0] != 'none' for t in known)


def _free(known: Sequence[Trade]) -> Trade | None:
  """The undefended federation's trade, if it is known."""
  return next((t for t in known if t.cell[0] == 'none'), None)


def affordable(trade: Trade, wanted: Goal) -> bool:
  """Whether a trade stays within the goal, rounded to 0.1 point as shown."""
  loss, leak = _shown(trade)
  return (wanted.budget is None or loss <= wanted.budget) and (
      wanted.max_leak is None or leak <= wanted.max_leak
  )


def ordered(results: Results, wanted: Goal) -> list[Trade]:
  """Every measured trade, those within the goal first."""
  fits = lambda t: not t.lost.any and affordable(t, wanted)
  return sorted(
      ranks.trades(results), key=lambda t: (not fits(t), order(t, wanted))
  )


def evidence(results: Results, wanted: Goal) -> Table:
  """A table of every measured trade, those within the goal first."""
  rows = [[
      Text(t.cell[0], strong=True), Text(reading.strength(t.cell)),
      loss_text(t.loss), leak_text(t.leakage[t.worst]),
      Text(reading.pretty(t.worst)), Text(remark(t, wanted)),
  ] for t in ordered(results, wanted)]
  return Table(
      'What was measured',
      f'{words.INTERVAL} Loss and leakage are in percentage points.',
      ('defense', 'strength', 'utility loss', 'worst leakage', 'by', ''), rows,
  )


def typed(trade: Trade) -> str:
  """'dp_laplace 0.1': the defense by its registry name, and its strength."""
  return f'{trade.cell[0]} {reading.strength(trade.cell)}'.strip()


def _shown(trade: Trade) -> tuple[float, float]:
  """(loss, leakage) in points, rounded as shown; a negative leakage is 0."""
  leak = ranks.shown(trade.leakage[trade.worst].mean)
  return ranks.shown(trade.loss.mean), max(leak, 0.0)


def order(trade: Trade, wanted: Goal) -> tuple:
  """A sort key, better trades first.

  By leakage, then loss; if only leakage is limited, by loss, then leakage.
  """
  loss, leak = _shown(trade)
  return (loss, leak) if wanted.budget is None else (leak, loss)


def _no_better(best: Trade, free: Trade, wanted: Goal) -> bool:
  """Whether having no defense is as good as the best one.

  With a budget: the best defense leaks no less. With a limit on leakage alone:
  the seeds cannot tell that the best defense costs less.
  """
  if wanted.budget is None:
    half = best.loss.half if best.loss.count > 1 else 0.0
    return -best.loss.mean <= half
  return order(free, wanted)[0] <= order(best, wanted)[0]


def within(wanted: Goal) -> str:
  """'Within 2 points of loss and 10 of leakage'."""
  said = []
  if wanted.budget is not None:
    said.append(f'{wanted.budget:g} {_unit(wanted.budget)} of loss')
  if wanted.max_leak is not None:
    said.append(f'{wanted.max_leak:g} {_unit(wanted.max_leak)} of leakage')
  return 'Within ' + verdict.together(said)


def _unit(number: float) -> str:
  return 'point' if number == 1 else 'points'


def _superlative(wanted: Goal) -> str:
  return 'costs least' if wanted.budget is None else 'leaks least'


def _better(wanted: Goal) -> str:
  return 'costs less' if wanted.budget is None else 'leaks less'


def _leaks(trade: Trade) -> str:
  """'2.3 ± 1.6 points to the worst of 5 attacks (norm scoring)'."""
  return (
      f'{verdict.points(trade.leakage[trade.worst])} to {verdict.whom(trade)} '
      f'({reading.pretty(trade.worst)})'
  )


def _amount(s: Summary) -> str:
  return f'{ranks.shown(s.mean):.1f}{verdict.plus(s)}{verdict.of_seeds(s)}'


def _nothing(
    results: Results, known: Sequence[Trade], wanted: Goal
) -> list[str]:
  """The nearest to the goal if nothing is within it.

  A second sentence follows if chance alone exceeds the leakage asked for.
  """
  least = min(known, key=lambda t: _shown(t)[1])
  return [_nearest(known, wanted), *(
      chance.unreachable(results, least, wanted.max_leak)
      if wanted.max_leak is not None else []
  )]


def _nearest(known: Sequence[Trade], wanted: Goal) -> str:
  cheap = [
      t for t in known if wanted.budget is None
      or _shown(t)[0] <= wanted.budget
  ]
  found = f'{within(wanted)}, there is nothing among what was measured.'
  if wanted.budget is not None and cheap:
    best = min(cheap, key=lambda t: order(t, wanted))
    return (
        f'{found} Of what costs at most {wanted.budget:g}, {typed(best)} '
        f'leaks least: {_leaks(best)}.'
    )
  best = min(known, key=lambda t: order(t, Goal(budget=100.0)))
  return (
      f'{found} {typed(best)} leaks least at any price: {_leaks(best)}, at a '
      f'cost of {_amount(best.loss)}.'
  )


def _beside(
    results: Results, best: Trade, fair: Sequence[Trade], wanted: Goal
) -> str:
  """'; iso 25 costs 0.4 more and leaks the same' for each near rival.

  Each other defense is taken at the strength that is best for the goal.
  """
  others: dict[str, Trade] = {}
  for trade in sorted(fair, key=lambda t: order(t, wanted)):
    if trade.cell[0] not in (best.cell[0], 'none'):
      others.setdefault(trade.cell[0], trade)
  leak = _shown(best)[1]
  first = list(others.values())[:RIVALS]
  near = [t for t in first if _shown(t)[1] - leak <= NEAR] or first[:1]
  return ''.join(
      f'; {typed(t)} costs {_apart(ranks.dearer(results, best, t))} and leaks '
      + ('nothing either' if _shown(t)[1] == leak == 0 else
         _apart(ranks.less(results, best, t))) for t in near
  )


def _apart(s: Summary) -> str:
  """'0.4 ± 0.1 more'; 'the same' if the seeds cannot tell them apart.

  How far apart they may be is said, too: no difference seen is not none.
  """
  if abs(round(s.mean, 1)) < 0.05 and not s.half >= 0.05:
    return 'the same'
  if s.count > 1 and abs(s.mean) <= s.half:
    return f'the same ({ranks.shown(s.mean):+.1f}{verdict.plus(s)})'
  word = 'more' if s.mean > 0 else 'less'
  return f'{abs(s.mean):.1f}{verdict.plus(s)} {word}'


def _doubts(
    results: Results, best: Trade, wanted: Goal, free: Trade | None
) -> list[str]:
  """Sentences on where the seeds or the tried strengths leave doubt."""
  said, leak = verdict.doubts(results, best, free), best.leakage[best.worst]
  for what, s, most, flag in (
      ('costs', best.loss, wanted.budget, 'budget'),
      ('leaks', leak, wanted.max_leak, 'max_leak'),
  ):
    if most is not None and s.mean + s.half > most:
      said.append(
          f'It is not certain that it {what} at most {most:g}: the interval, '
          f'{_amount(s)}, reaches beyond --{flag}.'
      )
  tried = [t.cell[1] for t in ranks.trades(results)
           if t.cell[0] == best.cell[0] and t.cell[1] is not None]
  if len(tried) > 1 and best.cell[1] in (min(tried), max(tried)):
    end = 'largest' if best.cell[1] == max(tried) else 'smallest'
    said.append(
        f'{reading.strength(best.cell)} is the {end} strength of '
        f'{best.cell[0]} that was tried: a better one may lie beyond it.'
    )
  return said


def remark(trade: Trade, wanted: Goal) -> str:
  """'within', or what a trade costs or leaks too much, or has lost."""
  if trade.lost.any:
    return str(trade.lost)
  loss, leak = _shown(trade)
  said = []
  if wanted.budget is not None and loss > wanted.budget:
    said.append('costs too much')
  if wanted.max_leak is not None and leak > wanted.max_leak:
    said.append('leaks too much')
  return ', '.join(said) or 'within'
