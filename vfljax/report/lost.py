"""Which numbers are missing: seeds that diverged, did not finish or never ran.

A mean over the remaining seeds hides the others: a federation that diverges in
three of four seeds may look good in the fourth. So the report counts missing
seeds, names them first, and ranks a defense with any of them last. It also
ranks a defense last if an attack has no number for it but has one for others:
the worst of the remaining attacks may not be the worst of all.
"""
import math
from typing import NamedTuple

from vfljax.data.table import listing
from vfljax.report import reading
from vfljax.report.reading import Cell, Results, find

# How metrics of the federation start; any other is a defense's own report.
_MEASURED = 'auc', 'accuracy', 'loss', 'alone_', 'quit_'


class Lost(NamedTuple):
  """How many seeds of a defense at one strength lack a number.

  Attributes:
    diverged: Seeds whose utility is not a number.
    unfinished: Seeds without a result.
    of: Seeds asked for.
    spared: Seeds without an attack that other defenses faced in the same seed:
      the worst of fewer attacks is not comparable with the worst of all.
    blind: Seeds in which an attack has no number here, but has one for another
      defense in the same seed.
  """

  diverged: int
  unfinished: int
  of: int
  spared: int = 0
  blind: int = 0

  @property
  def any(self) -> int:
    return self.diverged + self.unfinished + self.spared + self.blind

  @property
  def leaves_some(self) -> bool:
    """Whether a mean is over some of the seeds: not over all, nor none."""
    whole = self.of - self.diverged - self.unfinished
    return 0 < whole < self.of or 0 < self.blind < whole

  def __str__(self) -> str:
    """'diverged in 3 of 4 seeds'; '' if nothing is missing."""
    said = [
        f'{what} in {count} of {self.of} seeds'
        for what, count in (('diverged', self.diverged),
                            ('did not finish', self.unfinished),
                            ('not attacked by all', self.spared),
                            ('an attack without a number', self.blind))
        if count
    ]
    return ' and '.join(said)


def of_cell(results: Results, cell: Cell) -> Lost:
  """Counts what is missing of a defense at a strength."""
  asked = set(results.asked) or set(results.seeds)
  if not results.metric:
    return Lost(0, 0, len(asked))
  found = reading.utility(results, cell)
  whole = {seed for seed, value in found.items() if math.isfinite(value)}
  return Lost(
      len(found) - len(whole), len(asked - set(found)), len(asked | set(found)),
      len(whole & set().union(*_spared(results, cell).values())),
      len(whole & set().union(*(
          seeds & _known(results, attack)
          for attack, seeds in _numberless(results, cell).items()
      ))),
  )


def _spared(results: Results, cell: Cell) -> dict[str, set[int]]:
  """Scored attacks by name: the seeds in which only other defenses met them."""
  return {
      attack: missing for attack in results.attacks
      if reading.leak_metric(results, attack) and (missing := (
          results.faced.get((None, attack), set())
          - results.faced.get((cell, attack), set())
      ) & set(reading.utility(results, cell)))
  }


def sentences(results: Results) -> list[str]:
  """Sentences that name all that is missing or not run; [] if nothing is."""
  found, left, later = [], False, not_run(results)
  rest = [f'Not run yet: {listing(later, 20)}.'] if later else []
  rest += _fewer(results) + _untold(results)
  for cell in results.cells:
    lost = of_cell(results, cell)
    left |= lost.leaves_some
    lost = lost._replace(spared=0, blind=0)
    if lost.any:
      found.append(f'{reading.named(cell)} {lost}')
    found += _blind(results, cell)
  if not found:
    return rest
  means = 'Means are over the other seeds. ' if left else ''
  return rest + [
      f'Without a number: {listing(found, 8)}. {means}A defense ranks last if '
      'it diverged, did not finish, or lacks a number that an attack has for '
      'other defenses.'
  ]


def _untold(results: Results) -> list[str]:
  """A sentence that names measurements a defense failed to make of itself.

  An example is the success of the attack that VMask simulates: it is missing
  if that attack diverged or had no samples to be scored on.
  """
  told = sorted(
      metric for metric in results.measured.get(None, ())
      if not metric.startswith(_MEASURED)
  )
  said = []
  for cell in results.cells:
    utility = reading.utility(results, cell)
    for metric in told:
      found = find(results, cell, None, metric)
      gone = [s for s, value in found.items() if math.isnan(value)
              and math.isfinite(utility.get(s, math.nan))]
      if gone:
        said.append(f'{reading.pretty(metric)} of {reading.named(cell)} in '
                    f'{len(gone)} of {len(found)} seeds')
  return [
      f'Numbers that a defense could not give of itself: {listing(said, 8)}.'
  ] if said else []


def undefended(results: Results) -> list[str]:
  """Advice if the undefended federation diverged in every seed; else []."""
  none = reading.baseline(results)
  gone = of_cell(results, none) if none else None
  if not gone or not gone.diverged or gone.diverged < gone.of:
    return []
  return [
      'Without a defense the training diverged in every seed, so nothing can '
      'be compared with it. Try a smaller --config.train.learning_rate in '
      'another --workdir.'
  ]


def _fewer(results: Results) -> list[str]:
  """A sentence that names the rows on which not all attacks were run."""
  said = [
      f'{reading.named(cell)} without {listing(map(reading.pretty, gone))}'
      for cell in results.cells if (gone := _spared(results, cell))
  ]
  return [
      f'Not attacked by all: {listing(said, 8)}. Such rows rank last: the '
      'worst of fewer attacks cannot be compared with the worst of all.'
  ] if said else []


def not_run(results: Results) -> list[str]:
  """Defenses asked for but without results: 'iso', or 'iso (5, 10)'."""
  # Results round a strength to seven digits, so six are compared.
  there = {(cell[0], reading.strength(cell)) for cell in results.cells}
  gone: dict[str, list[str]] = {}
  for cell in results.wanted:
    if (cell[0], reading.strength(cell)) not in there:
      gone.setdefault(cell[0], []).append(reading.strength(cell))
  return [
      reading.pretty(name) + (
          f' ({", ".join(some)})' if name in results.defenses else ''
      ) for name, some in gone.items()
  ]


def _numberless(results: Results, cell: Cell) -> dict[str, set[int]]:
  """Attacks by name: the seeds in which the leakage is not a number."""
  return {
      attack: gone for attack in results.attacks
      if (gone := {
          seed for seed, leak in reading.leakage(results, cell, attack).items()
          if not math.isfinite(leak)
      })
  }


def _known(results: Results, attack: str) -> set[int]:
  """The seeds in which an attack has a number on any row of the results."""
  return {
      seed for cell in results.cells
      for seed, leak in reading.leakage(results, cell, attack).items()
      if math.isfinite(leak)
  }


def _blind(results: Results, cell: Cell) -> list[str]:
  """'norm scoring on iso (5) in 2 of 4 seeds' for each attack without a number.

  Seeds in which the federation itself diverged are left out.
  """
  utility = reading.utility(results, cell)
  return [
      f'{reading.pretty(attack)} on {reading.named(cell)} in {count} of '
      f'{len(reading.leakage(results, cell, attack))} seeds'
      for attack, seeds in _numberless(results, cell).items()
      if (count := sum(math.isfinite(utility.get(s, 0.0)) for s in seeds))
  ]
