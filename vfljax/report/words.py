"""The report's sentences: who wins and why, what the words mean."""
from collections.abc import Sequence

from vfljax import attacks
from vfljax.evaluation import LEAKAGE_RANGES, LOSS_RANGES
from vfljax.report import reading
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
  """Which defense wins and why, in two or three sentences."""
  free = next((r.best for r in ranked if r.defense == 'none'), None)
  rivals = [r for r in ranked if r.defense != 'none']
  if not rivals:
    return [
        'No defense can be scored: that takes an undefended run, a defended '
        'one, and an attack on each.'
    ]
  best = rivals[0]
  tied = [r for r in rivals if r.optimal == best.optimal]
  if free and free.score >= best.optimal:
    return [
        'No defense beats having none here: undefended, the worst attack '
        f'({reading.pretty(free.worst)}) {_does(free)} '
        f'(PU score {free.score} of 5).',
        f'The best defense is {_name(best)}. ' + _why(results, best, free),
    ]
  if best.optimal == 0:
    return [
        'No defense protects at an acceptable price: every one leaks more '
        f'than {LEAKAGE_RANGES[-1]:g} points or costs more than '
        f'{LOSS_RANGES[-1]:g}.',
        f'{_name(best)} comes closest. ' + _why(results, best, free),
    ]
  others = ', '.join(reading.pretty(r.defense) for r in tied[1:])
  also = f' Same score, at a higher price in sum: {others}.' if others else ''
  return [
      f'{_name(best)} protects best: PU score {best.optimal} of 5.{also}',
      _why(results, best, free),
  ]


def terms(results: Results) -> list[tuple[str, str]]:
  """The words a newcomer needs, and what they mean here."""
  return [
      ('Leakage', _leakage(results)),
      ('Utility loss', f'percentage points of test {name(results.metric)} that '
       'a defense costs against having none, seed by seed.'),
      ('PU score', '5 for a leakage of at most 5 and a loss of at most 0.5 '
       'points, down to 0 for a leakage above 25 or a loss above 6 (Kang et '
       'al. 2022, Table 8, Eq. 21). Each defense is ranked by its best '
       'strength (Eq. 22).'),
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
  return f'{s.mean:.1f} points'


def _does(trade: Trade) -> str:
  """'infers labels 3.7 points better than guessing'."""
  text = attacks.score(trade.worst).does
  return text.format(_points(trade.leakage[trade.worst]))


def _leakage(results: Results) -> str:
  """What leakage means for the attacks that there are."""
  scores = [attacks.score(a) for a in results.attacks]
  said = list(dict.fromkeys(s.means for s in scores))
  return '; '.join(said) + '. The worst attack counts.'


def _name(r: Ranked) -> str:
  value = reading.strength(r.best.cell)
  at = f' at strength {value}' if value else ''
  return reading.pretty(r.defense) + at


def _why(results: Results, r: Ranked, free: Trade | None) -> str:
  """What a defense leaks and costs, against what no defense does."""
  trade = r.best
  against = (
      f', against {_points(free.leakage[free.worst])} without a defense'
      if free else ''
  )
  metric = f'test {name(results.metric)}'
  use = reading.summarize(reading.utility(results, trade.cell).values())
  change = 'costs' if trade.loss.mean >= 0 else 'gains'
  return (
      f'The worst attack on it, {reading.pretty(trade.worst)}, '
      f'{_does(trade)}{against}. '
      f'It {change} {abs(trade.loss.mean):.1f} points of {metric}, which is '
      f'then {use.mean:.3f}.'
  )


def about(results: Results, attack: str | None) -> str:
  if attack is None:
    return 'What the federation itself predicts.'
  if attack in results.baselines:
    return 'A baseline of the attackers, which uses no leak.'
  metric = reading.leak_metric(results, attack)
  return f'Its leakage is measured by {name(metric)}.' if metric else ''
