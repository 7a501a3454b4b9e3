"""The report's sentences: who wins and why, what the words mean."""
from collections.abc import Sequence

from vfljax.report import reading as data
from vfljax.report.reading import LEAKAGE_LIMITS, LOSS_LIMITS, Results, Summary
from vfljax.report.ranks import Ranked, Trade


# What an attack does, by what it is measured by; {} are points.
_DOES = {
    'backdoor_accuracy': (
        'has {} more of the triggered samples taken for its target than '
        'without the trigger'
    ),
    'drop': 'costs {} of accuracy on what it touches',
    'ssim': 'rebuilds images to {} of structural similarity',
}


def headline(results: Results) -> str:
  """What was run, in one line."""
  experiment, dataset, algorithm = results.title
  defenses = [d for d in results.defenses if d != 'none']
  counts = [
      count(len(defenses), 'defense'), count(len(results.attacks), 'attack'),
      count(len(results.seeds), 'seed'),
  ]
  return (
      f'{experiment}: {algorithm.upper()} on {data.pretty(dataset)}, '
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
        f'({data.pretty(free.worst)}) {_does(results, free)} '
        f'(PU score {free.score} of 5).',
        f'The best defense is {_name(best)}. ' + _why(results, best, free),
    ]
  if best.optimal == 0:
    return [
        'No defense protects at an acceptable price: every one leaks more than '
        f'{LEAKAGE_LIMITS[-1]} points or costs more than {LOSS_LIMITS[-1]:g}.',
        f'{_name(best)} comes closest. ' + _why(results, best, free),
    ]
  others = ', '.join(data.pretty(r.defense) for r in tied[1:])
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


def _does(results: Results, trade: Trade) -> str:
  """'infers labels 3.7 points better than guessing'."""
  text = _DOES.get(
      data.leak_metric(results, trade.worst),
      'infers labels {} better than guessing',
  )
  return text.format(_points(trade.leakage[trade.worst]))


def _leakage(results: Results) -> str:
  """What leakage means for the attacks that there are."""
  measured = {data.leak_metric(results, a) for a in results.attacks}
  kinds = {
      'drop': 'how much accuracy an attack costs on what it touches',
      'backdoor_accuracy': 'how many more of the triggered samples are taken '
      'for the target than without the trigger',
      'ssim': 'the structural similarity (times 100) of rebuilt images',
  }
  said = [text for metric, text in kinds.items() if metric in measured]
  if measured - set(kinds):
    said.insert(0, (
        'how much better than guessing an attacker infers the labels, in '
        'percentage points; for model completion, how much better than a local '
        'model trained on the same known labels'
    ))
  return '; '.join(said) + '. The worst attack counts.'


def _name(r: Ranked) -> str:
  value = data.strength(r.best.cell)
  at = f' at strength {value}' if value else ''
  return data.pretty(r.defense) + at


def _why(results: Results, r: Ranked, free: Trade | None) -> str:
  """What a defense leaks and costs, against what no defense does."""
  trade = r.best
  against = (
      f', against {_points(free.leakage[free.worst])} without a defense'
      if free else ''
  )
  metric = f'test {name(results.metric)}'
  use = data.summarize(data.utility(results, trade.cell).values())
  change = 'costs' if trade.loss.mean >= 0 else 'gains'
  return (
      f'The worst attack on it, {data.pretty(trade.worst)}, '
      f'{_does(results, trade)}{against}. '
      f'It {change} {abs(trade.loss.mean):.1f} points of {metric}, which is '
      f'then {use.mean:.3f}.'
  )


def about(results: Results, attack: str | None) -> str:
  if attack is None:
    return 'What the federation itself predicts.'
  if attack in results.baselines:
    return 'A baseline of the attackers, which uses no leak.'
  metric = data.leak_metric(results, attack)
  return f'Its leakage is measured by {name(metric)}.' if metric else ''
