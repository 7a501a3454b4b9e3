"""From the rows of a work directory to what the report says about them.

Leakage and utility loss are those of Kang et al. (2022), Table 7, in percentage
points, computed seed by seed: an attack's score minus guessing's (or, for model
completion, minus that of a local model trained on the same labels), and the
undefended federation's utility minus the defended one's. Eq. 21 and 22 then
score a defense. One difference: the folded leak AUC is used, since an attacker
who always guesses wrong needs only to turn his guesses around.

Attacks that do not infer labels are put on the same scale: a backdoor by the
triggered samples that it diverts, noisy and missing samples by the accuracy
that they cost, rebuilt images by their SSIM. An attack that replays rounds of
the start and of the end of training counts where it learns more.
"""
import numpy as np

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
_STAGES = ('', '_start', '_end')  # Suffixes of what is seen of training.


def utility(results: Results, cell: Cell) -> PerSeed:
  """The main metric of a defense at a strength, by seed."""
  return find(results, cell, None, results.metric)


def baseline(results: Results) -> Cell | None:
  """The undefended federation."""
  none = [cell for cell in results.cells if cell[0] == 'none']
  return none[0] if none else None


def utility_loss(results: Results, cell: Cell) -> PerSeed:
  """What a defense costs, in percentage points, by seed; {} if unknown."""
  none = baseline(results)
  free = utility(results, none) if none else {}
  return _points(free, utility(results, cell))


def leak_metric(results: Results, attack: str) -> str:
  """By which metric an attack's leakage is measured; '' if by none."""
  seen = results.measured.get(attack, ())
  known = lambda name: any(name + stage in seen for stage in _STAGES)
  return next(filter(known, _metrics(results, attack)), '')


def is_paired(results: Results, cell: Cell, attack: str) -> bool:
  """Whether leakage is over what a baseline reaches, and not over guessing."""
  metric, over = leak_metric(results, attack), results.about(attack).score.over
  return bool(over and metric and _without(results, cell, attack, metric))


def _metrics(results: Results, attack: str) -> list[str]:
  """The metrics of an attack's score, the first that was measured counts."""
  names = results.about(attack).score.metrics
  return [name.format(utility=results.metric) for name in names]


def leakage(
    results: Results, cell: Cell, attack: str, epoch: str = ''
) -> PerSeed:
  """What an attacker learns, in percentage points, by seed; {} if unknown.

  Args:
    epoch: 'last' or 'max' for that of an attack in training, {} of others; ''
      for the one that counts (`Results.when`).
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
  """The same over guessing alone, of an attack that has a baseline, too.

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
    # An AUC is there for two classes only.
    classes = 2 if results.metric == 'auc' else results.classes
    if not classes:
      return {}
    chance = 1 / classes
  return _points(learned, dict.fromkeys(learned, chance))


def at_epoch(results: Results, epoch: str) -> Results:
  """The same results, of attacks in training those of another epoch.

  Args:
    epoch: 'last', or 'max' for the one in which an attack learns most.
  """
  values = dict(results.values)
  for (cell, attack, metric, split), found in results.values.items():
    plain = metric.removesuffix(f'_{epoch}')
    if attack and plain != metric and (key := (cell, attack, plain, split)):
      if key in values:
        values[key] = found
  return results._replace(values=values, when=epoch)


def in_last_epoch(results: Results, cell: Cell, attack: str) -> Summary:
  """An attack's leakage in the last epoch, where another one counts.

  No value where the last one counts, and of attacks on the trained federation.
  """
  if results.when in ('', 'last'):
    return summarize(())
  return summarize(leakage(results, cell, attack, 'last').values())


def pretty(name: str | None) -> str:
  """A registry name for people."""
  if name == 'none':
    return 'no defense'
  return (name or '').replace('_', ' ')


def strength(cell: Cell) -> str:
  """A strength as typed; '' for a defense without one."""
  return '' if cell[1] is None else f'{cell[1]:g}'


def named(cell: Cell) -> str:
  """'iso (5)', or 'max norm'."""
  value = strength(cell)
  return pretty(cell[0]) + (f' ({value})' if value else '')


def base(attack: str) -> str:
  """'local_model' of 'local_model:all@2', a variant that party 2 mounts."""
  return AttackName.parse(attack).base


def _points(high: PerSeed, low: PerSeed) -> PerSeed:
  return {s: 100 * (high[s] - low[s]) for s in high if s in low}


def _most(
    results: Results, cell: Cell, attack: str, metric: str
) -> PerSeed:
  """A metric by seed, at the stage of training where it is largest.

  NaN if it has no number at one of them: it may have been larger there.
  """
  stages = [find(results, cell, attack, metric + s) for s in _STAGES]
  seeds = dict.fromkeys(seed for found in stages for seed in found)
  return {s: float(np.max([f[s] for f in stages if s in f])) for s in seeds}


def _without(results, cell, attack, metric) -> PerSeed:
  """What the same attacker has without the federation, by the same metric.

  That is the same under any defense, so an undefended one serves as well. A
  variant that knows what the others know has no baseline of its own: theirs
  is its.
  """
  own = AttackName.parse(attack)._replace(base=results.about(attack).score.over)
  for name in dict.fromkeys(map(str, (own, own._replace(variant='')))):
    for place in [cell, baseline(results), *results.cells]:
      for wanted in (metric, metric.removesuffix('_last')):
        if place and (found := find(results, place, name, wanted)):
          return found
  return {}
