"""Leakage and utility loss, computed from the measurements of a run.

Both follow Kang et al. (2022), Table 7, in percentage points and seed by seed.
Leakage is an attack's score minus that of guessing; for model completion, minus
that of a local model trained on the same labels. Utility loss is the undefended
federation's utility minus the defended one's. `ranks` scores them. Unlike the
paper, this uses the folded leak AUC: an attacker who always guesses wrong needs
only to invert the guesses.

Attacks that do not infer labels are on the same scale: a backdoor by the share
of triggered samples that it diverts, noisy and missing samples by the accuracy
that they cost, rebuilt images by their SSIM. An attack that replays rounds of
both the start and the end of training counts where it learns more.
"""
import math

from vfljax.leakage import AttackName
from vfljax.report.results import (
    Cell, PerSeed, Results, Summary, find, of_rows, read, summarize,
)

__all__ = [
    'Cell', 'PerSeed', 'Results', 'Summary', 'at_epoch', 'base', 'baseline',
    'find', 'in_last_epoch', 'is_paired', 'leak_metric', 'leakage', 'named',
    'of_rows', 'over_guessing', 'pretty', 'read', 'strength', 'summarize',
    'utility', 'utility_loss',
]
_STAGES = ('', '_start', '_end')  # Metric suffixes: part of training replayed.


def utility(results: Results, cell: Cell) -> PerSeed:
  """The main utility metric of a defense at a strength, by seed."""
  return find(results, cell, None, results.metric)


def baseline(results: Results) -> Cell | None:
  """The cell of the undefended federation; `None` if it was not run."""
  none = [cell for cell in results.cells if cell[0] == 'none']
  return none[0] if none else None


def utility_loss(results: Results, cell: Cell) -> PerSeed:
  """The utility that a defense costs, in points, by seed; {} if unknown.

  NaN in seeds that the undefended federation lacks.
  """
  none = baseline(results)
  free = utility(results, none) if none else {}
  kept = utility(results, cell)
  return _points({s: free.get(s, math.nan) for s in kept}, kept) if free else {}


def leak_metric(results: Results, attack: str) -> str:
  """The metric that measures an attack's leakage; '' if none was measured."""
  seen = results.measured.get(attack, ())
  known = lambda name: any(name + stage in seen for stage in _STAGES)
  return next(filter(known, _metrics(results, attack)), '')


def is_paired(results: Results, cell: Cell, attack: str) -> bool:
  """Whether leakage is measured above a baseline instead of above guessing."""
  metric, over = leak_metric(results, attack), results.about(attack).score.over
  return bool(over and metric and _without(results, cell, attack, metric))


def _metrics(results: Results, attack: str) -> list[str]:
  """The metrics of an attack's score; the first that was measured counts."""
  names = results.about(attack).score.metrics
  return [name.format(utility=results.metric) for name in names]


def leakage(
    results: Results, cell: Cell, attack: str, epoch: str = ''
) -> PerSeed:
  """What an attacker learns, in percentage points, by seed; {} if unknown.

  Args:
    results: Holds the measurements.
    cell: The defense and its strength.
    attack: The attack.
    epoch: '' for the leakage that counts (`Results.when`). 'last' or 'max' for
      an attack during training in that epoch; {} for other attacks.
  """
  metric = leak_metric(results, attack)
  if not metric:
    return {}
  if epoch:
    learned = find(results, cell, attack, f'{metric}_{epoch}')
  else:
    learned = _most(results, cell, attack, metric)
  own = results.about(attack).score
  if own.over and (without := _without(results, cell, attack, metric)):
    return _points(learned, without)
  return _over_chance(results, attack, metric, cell, learned)


def over_guessing(results: Results, cell: Cell, attack: str) -> PerSeed:
  """Leakage above guessing, also for an attack that has a baseline.

  In percentage points, by seed; {} if unknown.
  """
  metric = leak_metric(results, attack)
  if not metric:
    return {}
  learned = _most(results, cell, attack, metric)
  return _over_chance(results, attack, metric, cell, learned)


def _over_chance(
    results: Results, attack: str, metric: str, cell: Cell, learned: PerSeed
) -> PerSeed:
  chance = results.about(attack).score.chance[
      _metrics(results, attack).index(metric)
  ]
  if isinstance(chance, str):
    return _points(learned, find(results, cell, attack, chance))
  if chance is None:
    # An AUC as utility means that there are two classes.
    classes = 2 if results.metric == 'auc' else results.classes
    if not classes:
      return {}
    chance = 1 / classes
  return _points(learned, dict.fromkeys(learned, chance))


def at_epoch(results: Results, epoch: str) -> Results:
  """The same results, with attacks during training read at another epoch.

  Args:
    results: Read with the epoch that the configuration chose.
    epoch: 'last', or 'max' for the epoch in which an attack learns most.
  """
  values = dict(results.values)
  for (cell, attack, metric, split), found in results.values.items():
    plain = metric.removesuffix(f'_{epoch}')
    if attack and plain != metric and (key := (cell, attack, plain, split)):
      if key in values:
        values[key] = found
  return results._replace(values=values, when=epoch)


def in_last_epoch(results: Results, cell: Cell, attack: str) -> Summary:
  """An attack's leakage in the last epoch, if another epoch counts.

  Without a value if the last epoch counts, and for attacks after training.
  """
  if results.when in ('', 'last'):
    return summarize(())
  return summarize(leakage(results, cell, attack, 'last').values())


def pretty(name: str | None) -> str:
  """A registry name as readers see it: 'norm scoring'."""
  if name == 'none':
    return 'no defense'
  return (name or '').replace('_', ' ')


def strength(cell: Cell) -> str:
  """A strength as one would type it; '' for a defense without one."""
  return '' if cell[1] is None else f'{cell[1]:g}'


def named(cell: Cell) -> str:
  """'iso (5)', or 'max norm'."""
  value = strength(cell)
  return pretty(cell[0]) + (f' ({value})' if value else '')


def base(attack: str) -> str:
  """The registry name: 'local_model' for 'local_model:all@2'.

  'all' is a variant, 2 is the attacking party.
  """
  return AttackName.parse(attack).base


def _points(high: PerSeed, low: PerSeed) -> PerSeed:
  """By seed of `high`; {} without any of `low`."""
  # NaN, and not left out: a mean over some of the seeds has to be told as such.
  low = low and dict.fromkeys(high, math.nan) | low
  return {s: 100 * (high[s] - low[s]) for s in high if low}


def _most(
    results: Results, cell: Cell, attack: str, metric: str
) -> PerSeed:
  """A metric by seed, at the stage of training where it is largest.

  NaN if one stage has no number, because it may have been the largest.
  """
  stages = [find(results, cell, attack, metric + s) for s in _STAGES]
  seeds = dict.fromkeys(seed for found in stages for seed in found)
  return {s: _largest([f[s] for f in stages if s in f]) for s in seeds}


def _largest(values: list[float]) -> float:
  """As np.max: NaN if one is; of few numbers it takes a tenth of the time."""
  return math.nan if any(map(math.isnan, values)) else max(values)


def _without(results, cell, attack, metric) -> PerSeed:
  """What the same attacker reaches without the federation, by the same metric.

  No defense changes it, so a value of the undefended federation, or of any
  other row, serves too. A variant without a baseline of its own takes that of
  the plain attack.
  """
  own = AttackName.parse(attack)._replace(base=results.about(attack).score.over)
  for name in dict.fromkeys(map(str, (own, own._replace(variant='')))):
    for place in [cell, baseline(results), *results.cells]:
      for wanted in (metric, metric.removesuffix('_last')):
        if place and (found := find(results, place, name, wanted)):
          return found
  return {}
