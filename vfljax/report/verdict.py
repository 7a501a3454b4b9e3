"""The verdict: which defense wins, by how much, and how certain that is.

Readers remember the first sentence, so it includes its interval. The sentences
after it say what the seeds leave in doubt.
"""
from collections.abc import Iterable, Sequence
import math

from vfljax.data.table import counted, listing
from vfljax.evaluation import LEAKAGE_RANGES, LOSS_RANGES, loss_score
from vfljax.leakage import LABELS
from vfljax.report import (
    chance, knowing, learned, lost, ranks, reading, words,
)
from vfljax.report.ranks import Ranked, Trade
from vfljax.report.reading import Results, Summary

ONE_SEED = (
    'One seed has no interval: run with --config.seeds=10 to see how much of '
    'this is chance.'
)


def sentences(results: Results, ranked: Sequence[Ranked]) -> list[str]:
  """Warnings about missing numbers, then which defense wins and why."""
  return [*_warnings(results), *_winner(results, ranked)]


def short(results: Results, ranked: Sequence[Ranked]) -> list[str]:
  """The same warnings, then in one sentence which defense wins."""
  return [*_warnings(results), _winner(results, ranked)[0]]


def _warnings(results: Results) -> list[str]:
  return [
      *lost.sentences(results), *knowing.uncounted(results),
      *learned.sentences(results),
  ]


def _winner(results: Results, ranked: Sequence[Ranked]) -> list[str]:
  free = next((r.best for r in ranked if r.defense == 'none'), None)
  rivals = [r for r in ranked if r.defense != 'none']
  if not rivals:
    return lost.undefended(results) or [
        'No defense can be scored. A score needs an undefended run, a defended '
        'one, and an attack on each (--config.defenses=none,... '
        '--config.attacks=...).'
    ]
  best = rivals[0].best
  if best.lost.any:
    return [
        'No defense can be judged: none has all of its seeds'
        + (' and attacks.' if best.lost.spared + best.lost.blind else '.')
    ]
  if free and not free.lost.any and not _beats(best, free):
    return [
        'No defense beats having none here: undefended, the worst attack '
        f'({reading.pretty(free.worst)}) {does(results, free)} '
        f'(PU score {free.score} of 5).',
        f'The best defense is {name(best)}. ' + _why(results, best, free),
        *doubts(results, best, None),
    ]
  if rivals[0].optimal == 0:
    return [
        'No defense protects well enough at an acceptable price: every one '
        f'leaks more than {LEAKAGE_RANGES[-1]:g} points or costs more than '
        f'{LOSS_RANGES[-1]:g}.', *_helps_most(results, best, free),
        *_as_good(results, [r.best for r in rivals[1:]], best),
        *doubts(results, best, free),
    ]
  alike = [r.best for r in rivals if r.best.order == best.order]
  protect = 'protects best' if len(alike) == 1 else 'protect best, alike'
  return [
      f'{together(map(name, alike))} {protect}: PU score {rivals[0].optimal} '
      f'of 5, leaking {points(best.leakage[best.worst])} to {whom(best)}, '
      f'{_price(best.loss)}.',
      _why(results, best, free),
      *_others(results, [
          r.best for r in rivals[len(alike):]
          if r.optimal == rivals[0].optimal and not r.best.lost.any
      ], best),
      *_as_good(results, [
          r.best for r in rivals if r.optimal < rivals[0].optimal
      ], best),
      *doubts(results, best, free),
  ]


def _others(
    results: Results, tied: Sequence[Trade], best: Trade
) -> list[str]:
  """A sentence on those of the winner's score that leak, or cost, more."""
  said = []
  for trade in tied:
    alike = trade.order[2] == best.order[2]
    far = ranks.dearer if alike else ranks.less
    more, what = far(results, best, trade), 'costs' if alike else 'leaks'
    open_ = more.count > 1 and abs(more.mean) <= more.half
    doubt = ', which these seeds cannot tell from zero' if open_ else ''
    said.append(
        f'{name(trade)} ({what} {ranks.shown(more.mean):.1f}{plus(more)} more'
        f'{doubt})'
    )
  have = 'have' if len(said) > 1 else 'has'
  return [f'{together(said)} {have} the same score.'] if said else []


def _as_good(
    results: Results, rivals: Sequence[Trade], best: Trade
) -> list[str]:
  """A sentence on rivals that these seeds do not show to be worse.

  Scores are steps: 5.0 points and 5.1 have two.
  """
  names = [
      name(trade) for trade in rivals
      if not trade.lost.any and not _is_worse(results, best, trade)
  ]
  if not names or best.loss.count < 2:  # One seed has a sentence of its own.
    return []
  more = 'they leak or cost' if len(names) > 1 else 'it leaks or costs'
  return [
      f'{listing(names, 3)} may be as good: these seeds do not show that '
      f'{more} more.'
  ]


def _is_worse(results: Results, best: Trade, trade: Trade) -> bool:
  """Whether the seeds show that a rival leaks more, or that it costs more."""
  apart = (f(results, best, trade) for f in (ranks.less, ranks.dearer))
  return any(more.mean > more.half for more in apart)


def _beats(trade: Trade, free: Trade) -> bool:
  """Whether a defense has a better score, or the same and leaks less."""
  leaks = [
      max(ranks.shown(t.leakage[t.worst].mean), 0.0) for t in (trade, free)
  ]
  return trade.score > free.score or (
      trade.score == free.score and leaks[0] < leaks[1]
  )


def _helps_most(
    results: Results, best: Trade, free: Trade | None
) -> list[str]:
  """If no defense is good enough: the best at any price, and at a fair one."""
  said = [f'{name(best)} helps most. ' + _why(results, best, free)]
  fair = [
      t for t in ranks.trades(results)
      if t.cell[0] != 'none' and not t.lost.any and _is_fair(t)
      and (not free or _beats(t, free))
  ]
  if not _is_fair(best) and fair:
    cheap = min(fair, key=lambda t: t.order)
    said.append(
        f'At a loss of at most {LOSS_RANGES[-1]:g} points it is '
        f'{name(cheap)}. ' + _why(results, cheap, free)
    )
  return said


def _is_fair(trade: Trade) -> bool:
  """Whether the utility loss, as shown, has a score above 0."""
  return loss_score(ranks.shown(trade.loss.mean)) > 0


def doubts(
    results: Results, best: Trade, free: Trade | None
) -> list[str]:
  """Sentences on what the seeds leave in doubt; [] if nothing.

  That is whether the defense leaks less than having none, and whether its
  leakage differs from chance.
  """
  return [*_doubts(results, best, free), *chance.sentences(results, best)]


def _doubts(
    results: Results, best: Trade, free: Trade | None
) -> list[str]:
  if best.loss.count < 2:
    return [ONE_SEED]
  if not free:
    return []
  gain = ranks.less(results, best, free)
  if gain.count < 2:
    return [
        'How much less it leaks than no defense is known of '
        f'{counted(gain.count, "seed")} alone.'
    ]
  if gain.mean > gain.half:
    return []
  if gain.mean < -gain.half:  # Where no defense lacks seeds, others decided.
    return [
        f'In the {gain.count} seeds of both it leaks {-gain.mean:.1f}'
        f'{plus(gain)} points more than no defense.'
    ]
  return [
      'The interval is wider than the effect: it leaks '
      f'{ranks.shown(gain.mean):.1f}'
      f'{plus(gain)} points less than no defense, which '
      f'{counted(gain.count, "seed")} cannot tell from zero. More seeds '
      '(--config.seeds) would.'
  ]


def _why(results: Results, trade: Trade, free: Trade | None) -> str:
  """What a defense leaks and costs, compared with the undefended run."""
  last = reading.in_last_epoch(results, trade.cell, trade.worst)
  best = f' ({last.mean:.1f} in the last epoch)' if last.count else ''
  metric = f'test {words.name(results.metric)}'
  use = reading.summarize(reading.utility(results, trade.cell).values())
  loss = ranks.shown(trade.loss.mean)
  change = 'costs' if loss >= 0 else 'gains'
  return (
      f'The worst attack on it, {reading.pretty(trade.worst)}, '
      f'{does(results, trade)}{best}{_against(results, trade, free)}. '
      f'It {change} {abs(loss):.1f}{plus(trade.loss)} points'
      f'{of_seeds(trade.loss)} of {metric}, which is then {use.mean:.3f}.'
  )


def _against(results: Results, trade: Trade, free: Trade | None) -> str:
  """What leaks without a defense; the kind of leak too if it differs."""
  if not free:
    return ''
  if _form(results, free) == _form(results, trade):
    return f', against {points(free.leakage[free.worst])} without a defense'
  return (
      f'. Without a defense the worst, {reading.pretty(free.worst)}, '
      f'{does(results, free)}'
  )


def does(results: Results, trade: Trade) -> str:
  """'infers labels 3.7 points better than guessing', or than a baseline.

  If it is compared with a baseline, the gain over guessing follows in
  parentheses where it is known, because the attacker has that in any case.
  """
  said = _form(results, trade).format(points(trade.leakage[trade.worst]))
  if not reading.is_paired(results, trade.cell, trade.worst):
    return said
  chance = reading.summarize(
      reading.over_guessing(results, trade.cell, trade.worst).values()
  )
  beside = f' ({chance.mean:.1f} better than guessing)' if chance.count else ''
  return said + beside


def _form(results: Results, trade: Trade) -> str:
  """What the worst attack does, with '{}' where the points go."""
  own = results.about(trade.worst).score
  alone = own.over and not reading.is_paired(results, trade.cell, trade.worst)
  return LABELS.does if alone else own.does


def name(trade: Trade) -> str:
  """'iso at strength 5', or 'max norm'."""
  value = reading.strength(trade.cell)
  at = f' at strength {value}' if value else ''
  return reading.pretty(trade.cell[0]) + at


def whom(trade: Trade) -> str:
  """'the worst of 5 attacks'."""
  tried = len(trade.leakage)
  return f'the worst of {tried} attacks' if tried > 1 else 'the only attack'


def points(s: Summary) -> str:
  """'3.7 ± 1.6 points', with a remark if seeds are missing."""
  return f'{ranks.shown(s.mean):.1f}{plus(s)} points' + of_seeds(s)


def plus(s: Summary) -> str:
  """' ± 1.6', half of the 95 % interval; '' for a single seed."""
  return f' ± {s.half:.1f}' if math.isfinite(s.half) else ''


def together(names: Iterable[str]) -> str:
  """'a', 'a and b', 'a, b and c'."""
  *first, last = names
  return f'{", ".join(first)} and {last}' if first else last


def _price(loss: Summary) -> str:
  """'at a cost of 0.6 ± 0.2 points'."""
  mean = ranks.shown(loss.mean)
  what = 'at a cost of' if mean >= 0 else 'with a gain of'
  return f'{what} {abs(mean):.1f}{plus(loss)}{of_seeds(loss)}'


def of_seeds(s: Summary) -> str:
  """' (3 of 4 seeds)' if seeds are missing; '' otherwise."""
  return f' ({s.count} of {s.count + s.missing} seeds)' if s.missing else ''
