"""A record's rows: what the tables call them, their means, their attackers.

'few' is what 40 labels read, by the better of the two heads; 'all' what all
labels read.
"""
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from experiments import evidence
from vfljax.report import reading
from vfljax.report.reading import Cell, PerSeed, Results

PAPER = 'plugvfl'
PASSIVE, ACTIVE = 'model_completion', 'active_completion'
FEW, ALL = ('', ':linear'), (':all',)
DROPPED = 'plugvfl drop='
_LAMBDA = ('plugvfl', '5 psi steps', 'without L_R', 'wide psi', 'slow psi',
           'slow psi, without L_R')
_PLAIN = dict(none='no defense', multi_head='multi-head')


class Row(NamedTuple):
  """Means of a table's row, in percent."""

  name: str
  label: str  # of the defense
  strength: float | None
  accuracy: float
  after: float  # party 2 has quit
  loss: float  # points of accuracy
  few: float  # what 40 labels read, the better head
  all: float  # what all labels read


def named(cell: Cell) -> str:
  """'lambda 0.03, p = 0.05'."""
  label, _, drop = cell[0].partition(' drop=')
  parts = [] if label == 'plugvfl' else [_PLAIN.get(label, label)]
  if strength := reading.strength(cell):
    parts.append(f'lambda {strength}' if label in _LAMBDA else strength)
  if drop:
    parts.append(f'p = {drop}')
  return ', '.join(parts)


def read(results: Results, cell: Cell, attack: str) -> PerSeed:
  """A completed network's accuracy in percent, by seed."""
  return evidence.quantity(results, cell, f'{attack}/accuracy_last')


def rows(record: str, kind: str = PASSIVE) -> dict[str, Row]:
  """A record's rows by what the tables call them."""
  results = evidence.load(PAPER, record).results
  found: dict[str, Row] = {}
  for cell in results.cells:
    one = lambda what, c=cell: mean(
        evidence.quantity(results, c, what).values()
    )
    best = lambda heads, c=cell: max((
        mean(read(results, c, kind + head).values())
        for head in heads if kind + head in results.attacks
    ), default=float('nan'))
    name, accuracy = named(cell), one('accuracy')
    free = next(iter(found.values())).accuracy if found else accuracy
    found[name] = Row(
        name, *cell, accuracy, one('quit_accuracy'), free - accuracy,
        best(FEW), best(ALL),
    )
  return found


def alone(record: str) -> float:
  """The active party by itself, in percent."""
  results: Results = evidence.load(PAPER, record).results
  return 100 * mean(evidence.alone(results).values())


def untrained(record: str) -> dict[str, float]:
  """What few and all labels read in an extractor that never trained."""
  results = evidence.load(PAPER, record).results
  none = results.cells[0]
  return {
      attacker: mean(read(results, none, attack).values())
      for attacker, attack in (('few', 'scratch'), ('all', 'scratch:all'))
  }


def mean(values: Iterable[float]) -> float:
  return float(np.mean([*values]))


def defended(found: dict[str, Row]) -> list[Row]:
  """PlugVFL's own rows as it is meant to be."""
  return [
      r for r in found.values()
      if r.label.startswith((DROPPED, '5 psi')) or r.label == 'plugvfl'
  ]
