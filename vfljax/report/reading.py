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
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from vfljax import attacks
from vfljax.leakage import AttackName
from vfljax.report import asked
from vfljax.runner import store

Cell = tuple[str, float | None]  # A defense at a strength: one row of a table.
PerSeed = dict[int, float]
_STAGES = ('', '_start', '_end')  # Suffixes of what is seen of training.
_UTILITIES = ('auc', 'accuracy')


class Summary(NamedTuple):
  """A mean over seeds.

  Attributes:
    mean: NaN if no seed has a value.
    half: Half the width of the 95 % Student-t interval; NaN below two seeds.
    std: Sample standard deviation; NaN below two seeds.
    count: Seeds with a value.
    missing: Seeds whose value is NaN.
  """

  mean: float
  half: float
  std: float
  count: int
  missing: int


class Results(NamedTuple):
  """One data set and algorithm of an experiment.

  Attributes:
    title: (experiment, dataset, algorithm).
    cells: Defenses at their strengths in the order of the results.
    attacks: Attacks without the attackers' baselines.
    baselines: Those.
    metric: The main utility metric; '' if there is none.
    values: (cell, attack or None, metric, split) -> {seed: value}.
    curves: (cell, name) -> [seeds, epochs].
    classes: Number of classes, for guessing's accuracy; 0 if unknown.
    asked: The seeds of the configuration; () if it does not say.
    wanted: Its defenses at their strengths; () if it does not say.
    when: Of an attack in training, which of the measured epochs counts: 'last',
      'max' or 'mean'; '' if it does not say.
  """

  title: tuple[str, str, str]
  cells: list[Cell]
  attacks: list[str]
  baselines: list[str]
  metric: str
  values: dict[tuple[Cell, str | None, str, str], PerSeed]
  curves: dict[tuple[Cell, str], np.ndarray]
  classes: int
  asked: tuple[int, ...] = ()
  wanted: tuple[Cell, ...] = ()
  when: str = ''

  @property
  def seeds(self) -> list[int]:
    return sorted({s for v in self.values.values() for s in v})

  @property
  def defenses(self) -> list[str]:
    return list(dict.fromkeys(defense for defense, _ in self.cells))


def read(path: str | os.PathLike, classes: int = 0) -> list[Results]:
  """Every data set and algorithm of a work directory, in order.

  Args:
    classes: Number of classes, 0 if unknown. Where an attack has no leak AUC,
      guessing's accuracy is 1/classes.
  """
  return of_rows(
      store.read_results(path), store.read_config(path), classes,
      store.read_curves(path),
  )


def of_rows(
    rows: Sequence[Mapping], config: Mapping, classes: int = 0,
    curves: Sequence[tuple[Mapping, Mapping]] = (),
) -> list[Results]:
  """The same from measurements at hand, as those of a record.

  Args:
    rows: Those of results.jsonl.
    config: The configuration that made them; {} if unknown.
    curves: Those over the epochs, each with a row that says whose they are.
  """
  titles = dict.fromkeys(_title(row) for row in rows)
  owned = [(row, found) for row, found in curves if not _alone(row['metric'])]
  found = [
      _results(
          title, [r for r in rows if _title(r) == title],
          [(r, c) for r, c in owned if _title(r) == title], classes,
      ) for title in titles
  ]
  return [
      results._replace(
          asked=asked.seeds(config),
          # Of two classes there is an AUC.
          wanted=asked.cells(config, 2 if results.metric == 'auc' else 3),
          when=config.get('attack', {}).get('when', ''),
      ) for results in found
  ]


def summarize(values: Iterable[float]) -> Summary:
  """The mean of some values and its 95 % Student-t interval."""
  given = list(values)
  x = np.asarray([v for v in given if math.isfinite(v)], float)
  nan = math.nan
  if not len(x):
    return Summary(nan, nan, nan, 0, len(given))
  std = float(x.std(ddof=1)) if len(x) > 1 else nan
  t = float(stats.t.ppf(0.975, len(x) - 1)) if len(x) > 1 else nan
  half = t * std / math.sqrt(len(x))
  return Summary(float(x.mean()), half, std, len(x), len(given) - len(x))


def find(
    results: Results, cell: Cell, attack: str | None, metric: str
) -> PerSeed:
  """A measurement by seed, on test samples if on any; {} if there is none."""
  for split in ('test', 'validation', 'train'):
    if found := results.values.get((cell, attack, metric, split)):
      return found
  others = [
      v for (c, a, m, _), v in results.values.items()
      if (c, a, m) == (cell, attack, metric)
  ]
  return others[0] if others else {}


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
  seen = {m for _, a, m, _ in results.values if a == attack}
  known = lambda name: any(name + stage in seen for stage in _STAGES)
  return next(filter(known, _metrics(results, attack)), '')


def is_paired(results: Results, cell: Cell, attack: str) -> bool:
  """Whether leakage is over what a baseline reaches, and not over guessing."""
  metric, over = leak_metric(results, attack), attacks.score(attack).over
  return bool(over and metric and _without(results, cell, attack, metric))


def _metrics(results: Results, attack: str) -> list[str]:
  """The metrics of an attack's score, the first that was measured counts."""
  names = attacks.score(attack).metrics
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
  own = attacks.score(attack)
  if own.over and (without := _without(results, cell, attack, metric)):
    return _points(learned, without)
  chance = own.chance[_metrics(results, attack).index(metric)]
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


def _results(title, rows, owned, classes) -> Results:
  values: dict = {}
  for r in rows:
    cell = (r['defense'], r['strength'])
    key = (cell, r['attack'], r['metric'], r['split'])
    values.setdefault(key, {})[r['seed']] = r['value']
  cells = dict.fromkeys(
      cell for cell, _, metric, _ in values if not _alone(metric)
  )
  names = list(dict.fromkeys(a for _, a, _, _ in values if a))
  utilities = dict.fromkeys(m for _, a, m, _ in values if a is None)
  metric = next((m for m in _UTILITIES if m in utilities), '')
  curves: dict = {}
  for row, found in owned:
    for name, curve in found.items():
      key = ((row['defense'], row['strength']), name)
      curves.setdefault(key, []).append(curve)
  return Results(
      title, sorted(cells, key=lambda cell: cell[0] != 'none'),
      [a for a in names if not attacks.is_baseline(a)],
      [a for a in names if attacks.is_baseline(a)], metric, values,
      {key: np.concatenate(parts) for key, parts in curves.items()}, classes,
  )


def _title(row: Mapping) -> tuple[str, str, str]:
  return row['experiment'], row['dataset'], row['algorithm']


def _alone(metric: str) -> bool:
  return metric.startswith('alone_')


def base(attack: str) -> str:
  """'local_model' of 'local_model:all@2', a variant that party 2 mounts."""
  return AttackName.parse(attack).base


def _points(high: PerSeed, low: PerSeed) -> PerSeed:
  return {s: 100 * (high[s] - low[s]) for s in high if s in low}


def _most(
    results: Results, cell: Cell, attack: str, metric: str
) -> PerSeed:
  """A metric by seed, at the stage of training where it is largest."""
  stages = [find(results, cell, attack, metric + s) for s in _STAGES]
  seeds = dict.fromkeys(seed for found in stages for seed in found)
  return {s: max(f[s] for f in stages if s in f) for s in seeds}


def _without(results, cell, attack, metric) -> PerSeed:
  """What the same attacker has without the federation, by the same metric.

  That is the same under any defense, so an undefended one serves as well.
  """
  name = attack.replace(base(attack), attacks.score(attack).over)
  for place in [cell, baseline(results), *results.cells]:
    for wanted in (metric, metric.removesuffix('_last')):
      if place and (found := find(results, place, name, wanted)):
        return found
  return {}
