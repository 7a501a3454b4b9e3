"""VMask's records: of runs, of its scripts (studies.py), and older ones.

Columns of Table II are records of runs: `table2_tm`, and `authors_tm` with the
authors' settings. `rows` reads what variations.py writes, `sets` what table1.py
does, `adaptive` what adaptive.py does. All return {row: {measure: [a value for
each training]}} in percent. Attack runs of a training are averaged, so
deviations are over trainings.
"""
from collections.abc import Iterable, Mapping, Sequence
import contextlib
import functools
import json
import math
from typing import Any

import numpy as np

from experiments import evidence
from vfljax.report.reading import Cell, Results

PAPER = 'vmask'
AGAIN = 'TM', 'TFM'
LOST = 12.0  # Main accuracy of ten classes up to which a training diverged.
Row = dict[str, list[float]]
_NAMES = {
    'accuracy': 'main', 'alone_accuracy': 'alone',
    'model_completion/accuracy_best': 'attack',
    'scratch/accuracy_best': 'scratch',
    'local_model/accuracy_best': 'local_model',
}


@functools.cache
def record(name: str) -> dict[str, Any]:
  """records/NAME.json."""
  file = evidence.HERE / PAPER / 'records' / f'{name}.json'
  return json.loads(file.read_text('utf-8'))


def bench(name: str) -> dict[str, Any]:
  """experiments/bench/NAME.json."""
  file = evidence.HERE / 'bench' / f'{name}.json'
  return json.loads(file.read_text('utf-8'))


def percent(values: Sequence) -> list[float]:
  """[trainings] of [trainings] or [trainings, attack runs]."""
  return [100 * float(np.mean(value)) for value in values]


def row(found: Mapping[str, Sequence]) -> Row:
  """A row's measures; a diverged training's accuracies are NaN."""
  made = {
      _NAMES.get(name, name): percent(values)
      for name, values in found.items() if values
  }
  lost = [value <= LOST for value in made.get('main', ())]
  for name in made:
    if name == 'main' or name.startswith('attack'):
      made[name] = [
          math.nan if gone else value for gone, value in zip(lost, made[name])
      ]
  return made


def column(name: str, of: str = 'table2') -> dict[str, Row]:
  """TM, TFM, M or FM, by defense; of='authors': with the authors' settings."""
  return of_run(f'{of}_{name.lower()}')


def layers(column: str) -> int:
  """Of a column's network: MLP3 or LeNet5."""
  return 3 if column.startswith('T') else 5


def again() -> dict[str, dict[str, Row]]:
  """By column: rows of Table II's trainings, with other attack runs."""
  found = {}
  for name in AGAIN:
    both = rows(f'transcript_{name.lower()}')['as in Table II']
    plain, masked = both.get('vanilla', {}), both.get('VMask', {})
    found[name] = dict(
        none=_as(plain, attack='attack 1', scratch='scratch 1'),
        VMask=_as(masked, attack='attack 1'),
    )
  return found


def _as(found: Row, **names: str) -> Row:
  return {new: found[old] for new, old in names.items() if old in found}


def of_cells(name: str) -> dict[Cell, Row]:
  """The same of a run's own record, by defense and strength."""
  results = evidence.load(PAPER, name).results
  return {cell: row(_measured(results, cell)) for cell in results.cells}


def of_run(name: str) -> dict[str, Row]:
  """The same by defense, each at one strength."""
  return {cell[0]: found for cell, found in of_cells(name).items()}


def _measured(results: Results, cell: Cell) -> dict[str, list[float]]:
  """What there is of `_NAMES` and of masking: a value a training."""
  names = _NAMES if cell[0] == 'none' else [
      name for name in _NAMES if name != 'alone_accuracy'
  ]
  found = {}
  for name in (*names, 'mask_ratio', 'masked', 'simulated_leakage'):
    what = 'alone' if name == 'alone_accuracy' else name
    with contextlib.suppress(ValueError):  # Not measured.
      values = evidence.quantity(results, cell, what).values()
      found[name] = [value / 100 for value in values]
  return found


def budgets(name: str) -> dict[str, Row]:
  """'20 epochs 0.25', 'VMask 50x5 0.25' and so on, and 'none None'."""
  return {
      f'{label} {strength}': found
      for (label, strength), found in of_cells(name).items()
  }


def rows(name: str) -> dict[str, dict[str, Row]]:
  """{what was varied: {'vanilla' or 'VMask': its row}}."""
  return {
      what: {who: row(found) for who, found in both.items()}
      for what, both in record(name)['rows'].items()
  }


def sets(name: str) -> dict[str, list[float]]:
  """Attack accuracy by the set of layers hidden."""
  return {
      which: percent(values)
      for which, values in record(name)['attack_accuracy'].items()
  }


def adaptive(name: str) -> dict[str, dict[str, dict[str, Any]]]:
  """By protocol and attacker: `best`, percent by training, and mean errors."""
  return {
      mode: {who: _attacker(found) for who, found in rows.items()}
      for mode, rows in record(name).items() if mode in ('T3', 'T4')
  }


def _attacker(found: Mapping[str, Any]) -> dict[str, Any]:
  best = found['best']
  return dict(
      best=best['by_seed'] if isinstance(best, dict) else percent(best),
      errors={k: float(np.mean(x)) for k, x in found['errors'].items()},
  )


def less(a: Iterable[float], b: Iterable[float]) -> list[float]:
  """Training by training."""
  return [x - y for x, y in zip(a, b, strict=True)]


def signed(values: Iterable[float], digits: int = 1) -> str:
  """'+1.2 +- 0.3'."""
  text = evidence.spread(values, digits)
  bare = text.split()[0].strip('0.')  # '' of what rounds to nothing.
  return f'+{text}' if bare[:1].isdigit() else text


def mean(values: Iterable[float]) -> float:
  """Of the trainings that did not diverge."""
  known = [value for value in values if math.isfinite(value)]
  return float(np.mean(known)) if known else math.nan


def says(found: Row, measure: str, digits: int = 1) -> str:
  """'' for what was not measured."""
  return evidence.spread(found[measure], digits) if measure in found else ''


def source(*names: str) -> str:
  """What stands under a table: when records were made, if they say so."""
  told = [n for n in names if 'command' in record(n)]
  links = ', '.join(
      f'[`records/{n}.json`](records/{n}.json)' for n in names if n not in told
  )
  lines = [f'From {links}.'] if links else []
  lines += [evidence.told(n, record(n)).rstrip('\n') for n in told]
  return '\n\n' + '\n\n'.join(lines)
