"""Tables from the records of GAFM's own scripts, and of its benchmark."""
from collections.abc import Mapping, Sequence
import json
from typing import Any

import numpy as np

from experiments import evidence, studies
from experiments.gafm import ablations, common, paper
from experiments.gafm.measured import EPOCHS, NAMES, PAPER, load, ratio

SPANS = (
    'gradient, last', 'gradient, last 50', 'gradient, all 300',
    'residual, last', 'residual, first 10', 'residual, first 50',
    'residual, all 300', 'f(x), last epoch',
)


def read(name: str) -> dict[str, Any]:
  """Reads a script's record."""
  return studies.read(evidence.HERE / PAPER / 'records' / f'{name}.json')


def by_seed(epoch: str, record: str = 'table10') -> np.ndarray:
  """[Deltas, seeds]: leak AUC over test AUC, mean of three attacks."""
  results = load(record)
  cells = [c for c in results.cells if c[0] in ('gafm', 'gafm_delta')]
  return np.array([
      np.mean([1 / ratio(results, cell, attack, epoch)
               for attack in common.ATTACKS], axis=0)
      for cell in sorted(cells, key=lambda c: c[1] or 0)
  ])


def all_data(epoch: str, record: str = 'table10') -> list[float]:
  """By Delta: the mean over the seeds."""
  return by_seed(epoch, record).mean(1).tolist()


def delta() -> str:
  """The rule that chooses Delta, on all data and on a tenth."""
  found: dict[str, tuple[float, ...]] = {
      f'paper, {what}': row for what, row in paper.CHOSEN.items()
  }
  found |= _ours('table10')
  tenth = read('delta_tenth')['ratios'][0]
  found['ours, a tenth, 5 times, last epoch'] = tuple(tenth)
  return _by_delta(found) + written('delta_tenth')


def delta_on_reviews() -> str:
  """The same rule on reviews; Delta 0.1 is the row GAFM."""
  return _by_delta(
      {'paper, IMDB, all data': paper.CHOSEN_IMDB} | _ours('reviews')
  )


def _ours(record: str) -> dict[str, tuple[float, ...]]:
  """The ratios on all data by either epoch; none without the record."""
  if not evidence.exists(PAPER, record):
    return {}
  return {
      f'ours, all data, over the test AUC, {which} epoch': tuple(
          all_data(epoch, record)
      ) for epoch, which in EPOCHS.items()
  }


def _by_delta(found: Mapping[str, Sequence[float]]) -> str:
  """A row for each of these, and the Delta of the lowest ratio."""
  deltas = ablations.DELTAS
  rows = [
      [what, *(f'{r:.3f}' for r in row), f'{deltas[int(np.argmin(row))]:g}']
      for what, row in found.items()
  ]
  return evidence.markdown(
      ('', *(f'{d:g}' for d in deltas), 'chosen'), rows
  )


def averaging() -> str:
  """Attackers who keep gradients, beside their own embeddings' prediction."""
  found = read('averaging')['leak_auc']
  rows = [
      [span, *(evidence.spread(100 * x for x in by_span[span])
               for by_span in found.values())]
      for span in SPANS
  ]
  named = [
      NAMES.get(d) or d.replace('gafm', 'GAFM').replace('delta', 'Delta')
      for d in found
  ]
  return evidence.markdown(('leak AUC', *named), rows) + written('averaging')


def speed() -> str:
  """300 epochs beside a PyTorch loop of the same algorithm."""
  file = evidence.HERE / 'bench' / 'gafm.json'
  found = json.loads(file.read_text('utf-8'))['gafm']
  rows = []
  for name, took in found.items():
    if isinstance(took, dict):
      threads = name.partition(', ')[2]
      by = found.get(f'ratio to torch, {threads}, fastest')
      rows.append([
          name, f'{took["seeds"]}', f'{took["wall_min"]:.2f}',
          f'{took["rounds_per_second"]}', f'{by:.1f}' if by else '',
      ])
  head = ('', 'repetitions', 'seconds, fastest', 'rounds a second',
          'ours, times as fast')
  return evidence.markdown(head, rows)


def written(name: str) -> str:
  """The line that says where a script's numbers come from."""
  return '\n\n' + evidence.told(name, read(name))
