"""Reads measurements of a work directory or a record into `Results`."""
from collections.abc import Iterable, Mapping, Sequence
import functools
import math
import os
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from vfljax import attacks
from vfljax.leakage import AttackName, Known
from vfljax.report import asked
from vfljax.runner.experiment import told
from vfljax.runner.workdir import about, store

Cell = tuple[str, float | None]  # A defense at a strength: one row of a table.
PerSeed = dict[int, float]
_UTILITIES = ('auc', 'accuracy')
_SPLITS = 'test', 'validation', 'train'  # In this order, then any other.


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
  """The results for one data set and algorithm of an experiment.

  Attributes:
    title: (experiment, dataset, algorithm).
    cells: Defenses at their strengths, the undefended federation first, then in
      the order of the measurements.
    attacks: Names of the attacks, without baselines.
    baselines: Names of the attackers' baselines, which use no leak.
    metric: The main utility metric, 'auc' or 'accuracy'; '' if there is none.
    values: (cell, attack or None, metric, split) -> {seed: value}.
    curves: (cell, name) -> [seeds, epochs].
    classes: Number of classes, for the accuracy of guessing; 0 if unknown.
    asked: The configuration's seeds; () if it does not say.
    wanted: The configuration's defenses at their strengths; () if it does not
      say.
    when: Which measured epoch counts for an attack during training: 'last',
      'max' or 'mean'; '' if the configuration does not say.
    splits: The splits with values ('test', ...), the preferred one first.
    measured: Attack, or None for the federation -> names of its metrics.
    faced: (cell, attack) -> seeds in which the cell met that attack; under
      (None, attack), the seeds of any cell.
    known: What the work directory says about attacks from outside vfljax, by
      the names under which they were registered.
    shares: Class name -> its share of all samples; {} if unknown.
    training: About how many training samples of each class are scored together
      in an epoch; () if unknown.
    epochs: Number of measured epochs; 0 if the configuration does not say.
    batch: Samples a round; 0 if the configuration does not say.
    attackers: What the configuration says of attackers, see `asked.attackers`.
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
  splits: tuple[str, ...] = ()
  measured: Mapping[str | None, frozenset[str]] = MappingProxyType({})
  faced: Mapping[tuple[Cell | None, str], set[int]] = MappingProxyType({})
  known: Mapping[str, Known] = MappingProxyType({})
  shares: Mapping[str, float] = MappingProxyType({})
  training: tuple[float, ...] = ()
  epochs: int = 0
  batch: int = 0
  attackers: Mapping[str, Mapping[str, Any]] = MappingProxyType({})

  @property
  def seeds(self) -> list[int]:
    return sorted({s for v in self.values.values() for s in v})

  def about(self, attack: str) -> Known:
    """What is known of an attack: from the work directory, else from here."""
    return _about(self.known, attack)

  @property
  def defenses(self) -> list[str]:
    return list(dict.fromkeys(defense for defense, _ in self.cells))


def read(path: str | os.PathLike, classes: int = 0) -> list[Results]:
  """The results of a work directory, one for each data set and algorithm.

  Args:
    path: The work directory.
    classes: Number of classes, 0 if unknown. For attacks without a leak AUC,
      guessing has an accuracy of 1/classes.
  """
  return of_rows(
      store.read_results(path), store.read_config(path), classes,
      store.read_curves(path), told.read(store.read_timings(path)),
      about.read(path),
  )


def of_rows(
    rows: Sequence[Mapping], config: Mapping, classes: int = 0,
    curves: Sequence[tuple[Mapping, Mapping]] = (),
    known: Mapping[str, Known] = MappingProxyType({}),
    said: Mapping[str, Any] = MappingProxyType({}),
) -> list[Results]:
  """Like `read`, from measurements in memory, such as those of a record.

  Args:
    rows: Measurements as in results.jsonl.
    config: The configuration that made them; {} if unknown.
    classes: As in `read`.
    curves: (row that names the defense, name -> [seeds, epochs]) pairs.
    known: What `told.read` returns for the timings.
    said: The contents of about.json; {} if unknown.
  """
  titles = dict.fromkeys(_title(row) for row in rows)
  owned = [(row, found) for row, found in curves if not _alone(row['metric'])]
  found = [
      _results(
          title, [r for r in rows if _title(r) == title],
          [(r, c) for r, c in owned if _title(r) == title], classes, known,
      ) for title in titles
  ]
  return [
      results._replace(
          asked=asked.seeds(config),
          # Only data of two classes have an AUC.
          wanted=asked.cells(config, 2 if results.metric == 'auc' else 3),
          when=config.get('attack', {}).get('when', ''),
          shares=about.shares(said), epochs=asked.epochs(config),
          batch=asked.batch(config), attackers=asked.attackers(config),
          training=about.training(said) if asked.pooled(config) else (),
      ) for results in found
  ]


def summarize(values: Iterable[float]) -> Summary:
  """The mean of some values and its 95 % Student-t interval."""
  return _summary(tuple(values))


@functools.lru_cache(4096)  # A report needs each summary several times.
def _summary(given: tuple[float, ...]) -> Summary:
  from scipy import special  # Imported late: it takes a sixth of a second.
  x = np.asarray([v for v in given if math.isfinite(v)], float)
  nan = math.nan
  if not len(x):
    return Summary(nan, nan, nan, 0, len(given))
  std = float(x.std(ddof=1)) if len(x) > 1 else nan
  t = float(special.stdtrit(len(x) - 1, 0.975)) if len(x) > 1 else nan
  half = t * std / math.sqrt(len(x))
  return Summary(float(x.mean()), half, std, len(x), len(given) - len(x))


def find(
    results: Results, cell: Cell, attack: str | None, metric: str
) -> PerSeed:
  """A metric by seed, of the first split that has it; {} if none has."""
  for split in results.splits:
    if found := results.values.get((cell, attack, metric, split)):
      return found
  return {}


def _about(known: Mapping[str, Known], attack: str) -> Known:
  return known.get(AttackName.parse(attack).base) or attacks.known(attack)


def _results(title, rows, owned, classes, known) -> Results:
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
  measured: dict = {}
  faced: dict = {}
  for (cell, attack, name, _), by_seed in values.items():
    measured.setdefault(attack, set()).add(name)
    for whose in (cell, None) if attack else ():
      faced.setdefault((whose, attack), set()).update(by_seed)
  curves: dict = {}
  for row, found in owned:
    for name, curve in found.items():
      key = ((row['defense'], row['strength']), name)
      curves.setdefault(key, []).append(curve)
  return Results(
      title, sorted(cells, key=lambda cell: cell[0] != 'none'),
      [a for a in names if not _about(known, a).is_baseline],
      [a for a in names if _about(known, a).is_baseline], metric, values,
      {key: np.concatenate(parts) for key, parts in curves.items()}, classes,
      splits=tuple(dict.fromkeys([*_SPLITS, *(split for *_, split in values)])),
      measured={attack: frozenset(seen) for attack, seen in measured.items()},
      faced=faced,
      known=known,
  )


def _title(row: Mapping) -> tuple[str, str, str]:
  return row['experiment'], row['dataset'], row['algorithm']


def _alone(metric: str) -> bool:
  return metric.startswith('alone_')
