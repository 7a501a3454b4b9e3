"""What has no number: what diverged, did not finish or never ran, and more.

A mean over the seeds that are left says nothing of those that are not: a
federation that diverges in three of four seeds may look good in the fourth. So
they are counted, named first, and what diverged ranks last. So does what an
attack has no number for that it has for others: the worst of the rest is not
the worst.
"""
import math
from typing import NamedTuple

from vfljax.data.table import listing
from vfljax.report import reading
from vfljax.report.reading import Cell, Results, find

# Of the federation, not of what its defense tells.
_MEASURED = 'auc', 'accuracy', 'loss', 'alone_', 'quit_'


class Lost(NamedTuple):
  """A defense at a strength: how many of its seeds have no utility.

  Attributes:
    diverged: Seeds whose utility is not a number.
    unfinished: Seeds without a result.
    of: Seeds asked for.
    spared: Seeds in which an attack was not run that others had to bear then:
      the worst of fewer attacks says nothing beside that of all.
    blind: Seeds in which an attack has no number that it has for others then.
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
    """Whether a mean is of some seeds only, and not of none."""
    whole = self.of - self.diverged - self.unfinished
    return 0 < whole < self.of or 0 < self.blind < whole

  def __str__(self) -> str:
    """'diverged in 3 of 4 seeds'; '' if nothing is lost."""
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
  """What is lost of a defense at a strength."""
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
  """Attacks that count, by name: the seeds in which others alone bore them."""
  return {
      attack: missing for attack in results.attacks
      if reading.leak_metric(results, attack) and (missing := (
          results.faced.get((None, attack), set())
          - results.faced.get((cell, attack), set())
      ) & set(reading.utility(results, cell)))
  }


def sentences(results: Results) -> list[str]:
  """Sentences that name all that is lost, or not run; none if nothing is."""
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
  means = 'Means are of the other seeds. ' if left else ''
  return rest + [
      f'Without a number: {listing(found, 8)}. {means}What diverged, did not '
      'finish, or lacks a number that an attack has for others ranks last.'
  ]


def _untold(results: Results) -> list[str]:
  """A sentence that names what defenses do not know of themselves.

  Such as how much the attack gets that VMask imagines, where that attack has
  nothing to be scored by, or diverged.
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
      f'What a defense could not tell of itself: {listing(said, 8)}.'
  ] if said else []


def undefended(results: Results) -> list[str]:
  """What to do if nothing can be told beside no defense, which diverged."""
  none = reading.baseline(results)
  gone = of_cell(results, none) if none else None
  if not gone or not gone.diverged or gone.diverged < gone.of:
    return []
  return [
      'Without a defense the training diverged in every seed, so that nothing '
      'can be told beside it. A smaller --config.train.learning_rate, in '
      'another --workdir, is what to try.'
  ]


def _fewer(results: Results) -> list[str]:
  """A sentence that names whom not all attacks were run on."""
  said = [
      f'{reading.named(cell)} without {listing(map(reading.pretty, gone))}'
      for cell in results.cells if (gone := _spared(results, cell))
  ]
  return [
      f'Not attacked by all: {listing(said, 8)}. That ranks last: the worst of '
      'fewer attacks cannot be compared.'
  ] if said else []


def not_run(results: Results) -> list[str]:
  """Defenses asked for that have no results: 'iso', or 'iso (5, 10)'."""
  # Results have seven digits of a strength; six tell them apart.
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
  """Attacks by name: the seeds in which their leakage is not a number."""
  return {
      attack: gone for attack in results.attacks
      if (gone := {
          seed for seed, leak in reading.leakage(results, cell, attack).items()
          if not math.isfinite(leak)
      })
  }


def _known(results: Results, attack: str) -> set[int]:
  """The seeds in which an attack has a number for any defense, or for none."""
  return {
      seed for cell in results.cells
      for seed, leak in reading.leakage(results, cell, attack).items()
      if math.isfinite(leak)
  }


def _blind(results: Results, cell: Cell) -> list[str]:
  """Attacks without a number where the federation has one."""
  utility = reading.utility(results, cell)
  return [
      f'{reading.pretty(attack)} on {reading.named(cell)} in {count} of '
      f'{len(reading.leakage(results, cell, attack))} seeds'
      for attack, seeds in _numberless(results, cell).items()
      if (count := sum(math.isfinite(utility.get(s, 0.0)) for s in seeds))
  ]
