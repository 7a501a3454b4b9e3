"""The report's sentences: who wins and why, what the words mean."""
from collections.abc import Sequence

from vfljax import attacks
from vfljax.evaluation import LEAKAGE_RANGES, LOSS_RANGES, loss_score
from vfljax.leakage import LABELS
from vfljax.report import lost, ranks, reading
from vfljax.report.ranks import Ranked, Trade
from vfljax.report.reading import Results, Summary


def headline(results: Results) -> str:
  """What was run, in one line."""
  experiment, dataset, algorithm = results.title
  defenses = [d for d in results.defenses if d != 'none']
  counts = [
      count(len(defenses), 'defense'), count(len(results.attacks), 'attack'),
      count(len(results.seeds), 'seed'),
  ]
  return (
      f'{experiment}: {algorithm.upper()} on {reading.pretty(dataset)}, '
      + ', '.join(counts)
  )


def verdict(results: Results, ranked: Sequence[Ranked]) -> list[str]:
  """What has no number; then which defense wins and why."""
  return lost.sentences(results) + _winner(results, ranked)


def _winner(results: Results, ranked: Sequence[Ranked]) -> list[str]:
  free = next((r.best for r in ranked if r.defense == 'none'), None)
  rivals = [r for r in ranked if r.defense != 'none']
  if not rivals:
    return [
        'No defense can be scored: that takes an undefended run, a defended '
        'one, and an attack on each.'
    ]
  best = rivals[0]
  if best.best.lost.any:
    return ['No defense can be judged: none has all of its seeds.']
  if free and not free.lost.any and not _beats(best.best, free):
    return [
        'No defense beats having none here: undefended, the worst attack '
        f'({reading.pretty(free.worst)}) {_does(results, free)} '
        f'(PU score {free.score} of 5).',
        f'The best defense is {_name(best.best)}. '
        + _why(results, best.best, free),
    ]
  if best.optimal == 0:
    return [
        'No defense protects well enough at an acceptable price: every one '
        f'leaks more than {LEAKAGE_RANGES[-1]:g} points or costs more than '
        f'{LOSS_RANGES[-1]:g}.', *_helps_most(results, best.best, free),
    ]
  tied = [r for r in rivals if r.optimal == best.optimal]
  others = ', '.join(reading.pretty(r.defense) for r in tied[1:])
  also = f' Same score, but not less leakage: {others}.' if others else ''
  return [
      f'{_name(best.best)} protects best: PU score {best.optimal} of 5.{also}',
      _why(results, best.best, free),
  ]


def _beats(trade: Trade, free: Trade) -> bool:
  """Whether a defense has a better score, or the same and leaks less."""
  leaks = [round(t.leakage[t.worst].mean, 1) for t in (trade, free)]
  return trade.score > free.score or (
      trade.score == free.score and leaks[0] < leaks[1]
  )


def _helps_most(
    results: Results, best: Trade, free: Trade | None
) -> list[str]:
  """Where nothing is good enough: what leaks least, at any and at a fair price.
  """
  said = [f'{_name(best)} helps most. ' + _why(results, best, free)]
  fair = [
      t for t in ranks.trades(results)
      if t.cell[0] != 'none' and not t.lost.any and loss_score(t.loss.mean) > 0
      and (not free or _beats(t, free))
  ]
  if not loss_score(best.loss.mean) and fair:
    cheap = min(fair, key=lambda t: t.order)
    said.append(
        f'At a loss of at most {LOSS_RANGES[-1]:g} points it is '
        f'{_name(cheap)}. ' + _why(results, cheap, free)
    )
  return said


def not_ranked(results: Results) -> str:
  """Which defenses have no place in the ranking; '' if all have one."""
  gone = [
      f'{reading.pretty(defense)} ({said})'
      for defense, said in ranks.unranked(results)
  ]
  return f'Without a place, last: {", ".join(gone)}.' if gone else ''


def terms(results: Results) -> list[tuple[str, str]]:
  """The words a newcomer needs, and what they mean here."""
  return [
      ('Leakage', _leakage(results)),
      ('Utility loss', f'percentage points of test {name(results.metric)} that '
       'a defense costs against having none, seed by seed.'),
      ('PU score', '5 for a leakage of at most 5 and a loss of at most 0.5 '
       'points, down to 0 for a leakage above 25 or a loss above 6 (Kang et '
       'al. 2022, Table 8, Eq. 21). Each defense is ranked by its best '
       'strength (Eq. 22); of equal scores the one that leaks less is better, '
       'and then the one that costs less.'),
  ]


def name(metric: str) -> str:
  """A metric for people: 'leak_auc_raw' is 'leak AUC raw'."""
  text = metric.replace('_', ' ')
  for word in ('auc', 'ssim', 'psnr'):
    text = ' '.join(w.upper() if w == word else w for w in text.split())
  return text


def count(n: int, noun: str) -> str:
  """'1 seed', '2 seeds'."""
  return f'{n} {noun}' + ('' if n == 1 else 's')


def _points(s: Summary) -> str:
  return f'{s.mean:.1f} points' + _of_seeds(s)


def _of_seeds(s: Summary) -> str:
  """Beside a mean of which seeds are missing."""
  return f' ({s.count} of {s.count + s.missing} seeds)' if s.missing else ''


def _does(results: Results, trade: Trade) -> str:
  """'infers labels 3.7 points better than guessing', or than its baseline."""
  own = attacks.score(trade.worst)
  alone = own.over and not reading.is_paired(results, trade.cell, trade.worst)
  text = LABELS.does if alone else own.does
  return text.format(_points(trade.leakage[trade.worst]))


def _leakage(results: Results) -> str:
  """What leakage means for the attacks that there are."""
  scores = [attacks.score(a) for a in results.attacks]
  said = list(dict.fromkeys(s.means for s in scores))
  return '; '.join(said) + '. The worst attack counts.' + which_epoch(results)


def which_epoch(results: Results) -> str:
  """Which epoch counts of attacks in training, a sentence after a space."""
  which = dict(
      max=' Of an attack in training the measured epoch counts in which it '
      "learns most, for an attacker chooses; the last one's is beside it.",
      mean=' Of an attack in training the mean of the measured epochs counts; '
      "the last one's is beside it.",
      last=' Of an attack in training the last epoch counts.',
  )
  watched = any(m.endswith('_max') for _, a, m, _ in results.values if a)
  return which.get(results.when, '') if watched else ''


def _name(trade: Trade) -> str:
  value = reading.strength(trade.cell)
  at = f' at strength {value}' if value else ''
  return reading.pretty(trade.cell[0]) + at


def _why(results: Results, trade: Trade, free: Trade | None) -> str:
  """What a defense leaks and costs, against what no defense does."""
  against = (
      f', against {_points(free.leakage[free.worst])} without a defense'
      if free else ''
  )
  last = reading.in_last_epoch(results, trade.cell, trade.worst)
  best = f' ({last.mean:.1f} in the last epoch)' if last.count else ''
  metric = f'test {name(results.metric)}'
  use = reading.summarize(reading.utility(results, trade.cell).values())
  change = 'costs' if trade.loss.mean >= 0 else 'gains'
  return (
      f'The worst attack on it, {reading.pretty(trade.worst)}, '
      f'{_does(results, trade)}{best}{against}. '
      f'It {change} {abs(trade.loss.mean):.1f} points{_of_seeds(trade.loss)} '
      f'of {metric}, which is then {use.mean:.3f}.'
  )


def about(results: Results, attack: str | None) -> str:
  if attack is None:
    return 'What the federation itself predicts.'
  if attack in results.baselines:
    return 'A baseline of the attackers, which uses no leak.'
  metric = reading.leak_metric(results, attack)
  return f'Its leakage is measured by {name(metric)}.' if metric else ''
