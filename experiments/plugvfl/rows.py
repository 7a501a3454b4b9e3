"""A record's rows: their names in the tables, their means, their attackers.

'few' is the accuracy of a network completed with 40 labels, by the better of
the two heads; 'all' is that with all labels.
"""
from collections.abc import Callable, Iterable
from contextvars import ContextVar
import math
from typing import NamedTuple

import numpy as np

from experiments import evidence
from experiments.claims import Verdict
from experiments.readers import AT_GUESSING
from vfljax.report import reading
from vfljax.report.reading import Cell, PerSeed, Results

PAPER = 'plugvfl'
PASSIVE, ACTIVE = 'model_completion', 'active_completion'
FEW, ALL = ('', ':linear'), (':all',)
DROPPED = 'plugvfl drop='
_LAMBDA = ('plugvfl', '5 psi steps', 'without L_R', 'wide psi', 'slow psi',
           'slow psi, without L_R')
_SEED: ContextVar[int | None] = ContextVar('seed', default=None)
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


def results(record: str) -> Results:
  """A record's results; those of a seed within `of_seed`."""
  kept, seed = evidence.load(PAPER, record).results, _SEED.get()
  if seed is None:
    return kept
  return kept._replace(values={
      key: {seed: by_seed[seed]} for key, by_seed in kept.values.items()
      if seed in by_seed
  })


def of_seed(seed: int, judge: Callable[[], Verdict]) -> Verdict:
  """The verdict of `judge` on one seed's trainings alone."""
  before = _SEED.set(seed)
  try:
    return judge()
  finally:
    _SEED.reset(before)


def read(kept: Results, cell: Cell, attack: str) -> PerSeed:
  """A completed network's accuracy in percent, by seed.

  NaN where the federation diverged: the attacker who scales its input took such
  embeddings for constants, and guessed, when these records were made.
  """
  whole = evidence.quantity(kept, cell, 'accuracy')
  found = evidence.quantity(kept, cell, f'{attack}/accuracy_last')
  return {
      s: x if math.isfinite(whole.get(s, 0)) else math.nan
      for s, x in found.items()
  }


def rows(record: str, kind: str = PASSIVE) -> dict[str, Row]:
  """A record's rows by what the tables call them."""
  kept = results(record)
  found: dict[str, Row] = {}
  for cell in kept.cells:
    one = lambda what, c=cell: mean(
        evidence.quantity(kept, c, what).values()
    )
    best = lambda heads, c=cell: max((
        mean(read(kept, c, kind + head).values())
        for head in heads if kind + head in kept.attacks
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
  return 100 * mean(evidence.alone(results(record)).values())


def untrained(record: str) -> dict[str, float]:
  """What few and all labels read in an extractor that never trained."""
  kept = results(record)
  none = kept.cells[0]
  return {
      attacker: mean(read(kept, none, attack).values())
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


def at_p(found: dict[str, Row], p: float) -> list[Row]:
  """PlugVFL's rows at one p, with a step of psi a round, as its figures have
  them.
  """
  return [r for r in found.values() if r.label == f'{DROPPED}{p:g}']


def named_limit(record: str, attacker: str) -> str:
  """What 'at guessing' is, and how near it is without a defense."""
  free = untrained(record)[attacker]
  near = ', nearly the limit without a defense' if (
      free <= AT_GUESSING + 1) else ''
  return (f'at guessing is at most {AT_GUESSING:g} %, in the paper 10; an '
          f'untrained extractor {free:.1f}{near}')
