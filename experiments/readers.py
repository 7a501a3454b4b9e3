"""Attackers who read labels in cut-layer gradients, where a paper has none.

PlugVFL and VMask defend a trained network against completion. Their passive
parties receive a gradient for each sample as well, which neither changes on
purpose. Two attackers keep those of some rounds, before training and after it,
and know a few of their labels: one learns a classifier (`learned_gradient`),
one clusters them (`gradient_clustering`).
"""
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from experiments import evidence
from vfljax.report.reading import Cell, PerSeed, Results

READERS = dict(
    learned='learned_gradient', clustered='gradient_clustering'
)
TIMES = dict(start='accuracy_start', end='accuracy_end')
AT_GUESSING = 15.0  # Percent, of ten classes; guessing is right in 10.


class Reading(NamedTuple):
  """What is read in a row's gradients by the better attacker, in percent.

  Attributes:
    start: Before training.
    end: After training.
    all: At the better of both times.
  """

  start: float
  end: float

  @property
  def all(self) -> float:
    return float(np.max([self.start, self.end]))


def read(results: Results, cell: Cell) -> Reading:
  """Means over seeds, of the attacker who reads more."""
  mean = lambda found: float(np.mean([*found.values()]))
  # NumPy's maximum: an attacker without a number must not pass unseen.
  return Reading(*(
      float(np.max([
          mean(evidence.quantity(results, cell, f'{attack}/{metric}'))
          for attack in READERS.values()
      ])) for metric in TIMES.values()
  ))


def by_seed(results: Results, cell: Cell) -> PerSeed:
  """What the better attacker reads at the better time, each seed by itself."""
  found = [
      evidence.quantity(results, cell, f'{attack}/{metric}')
      for attack in READERS.values() for metric in TIMES.values()
  ]
  return {
      seed: float(np.max([one[seed] for one in found])) for seed in found[0]
  }


def table(
    results: Results, named: Callable[[Cell], str],
    completion: Callable[[Cell], str], scratch: str = '',
) -> str:
  """Accuracy, what completion reads, and what gradients tell, in percent.

  The last rows have the active party alone, and completion from scratch.

  Args:
    results: Those of a record.
    named: A row's name.
    completion: What completion reads with the same labels.
    scratch: What it reads in an untrained network; '' if that is not known.
  """
  head = ['', 'accuracy', 'completion', *(
      f'{name}: {time}' for name in READERS for time in TIMES
  )]
  rows = [
      [named(cell), _spread(results, cell, 'accuracy'), completion(cell), *(
          _spread(results, cell, f'{attack}/{metric}')
          for attack in READERS.values() for metric in TIMES.values()
      )] for cell in results.cells
  ]
  if alone := [100 * v for v in evidence.alone(results).values()]:
    rows.append(['the active party alone', evidence.spread(alone), *[''] * 5])
  if scratch:
    rows.append(['an untrained network', '', scratch, *[''] * 4])
  return evidence.markdown(head, rows)


def _spread(results: Results, cell: Cell, what: str) -> str:
  return evidence.spread(evidence.quantity(results, cell, what).values())
