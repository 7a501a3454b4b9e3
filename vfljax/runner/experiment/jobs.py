"""What an experiment consists of, in the order in which it runs.

A *job* is what runs together: one defense, its strengths or a chunk of them, a
piece of the seeds. Each of a job's strengths is a *unit* of results.
"""
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple

from vfljax import algorithms, defenses
from vfljax.defense import Defense
from vfljax.runner.config import Config, Entry
from vfljax.runner.experiment import sizing
from vfljax.runner.experiment.choosing import entries
from vfljax.runner.experiment.grids import grid, row_name
from vfljax.runner.experiment.pieces import Piece, pieces
from vfljax.runner.experiment.setting import (
    Setting, absent, build, without_baselines,
)

ALONE = 'alone'  # The active party without the others.


class Job(NamedTuple):
  """What runs together.

  Attributes:
    name: For people.
    entry: The defense; its label for the results.
    strengths: Its strengths; (None,) for a defense without one.
    piece: Its seeds.
    room: For how many strengths its program is made: as many as its largest
      chunk has.
    program: Jobs that have the same name here have the same programs.
    units: The names under which the strengths' results are kept.
    make: (strength or None, **others) -> Defense.
    setting: With the attacks to run.
    labels: What the results call the defense, for each of the strengths.
    others: The values of other arguments that are swept with them, or could be.
  """

  name: str
  entry: Entry
  strengths: tuple[float | None, ...]
  piece: Piece
  room: int
  program: str
  units: tuple[str, ...]
  make: Callable[..., Defense]
  setting: Setting
  labels: tuple[str, ...]
  others: dict[str, tuple[float, ...]]

  @property
  def seeds(self) -> tuple[int, ...]:
    return self.piece.seeds

  @property
  def block(self) -> int:
    return self.piece.block

  @property
  def count(self) -> int:
    """How many trainings."""
    return len(self.strengths) * len(self.seeds)

  @property
  def constant(self) -> bool:
    """Whether there is no strength."""
    return self.strengths[0] is None


def jobs(setting: Setting) -> list[Job]:
  """The experiment's jobs: the undefended federation, the active party alone,
  then the defenses in the order of the table."""
  config = setting.config
  found = [job for entry in entries(config, setting.classes)
           for job in _of_entry(setting, entry)]
  # Absent parties are zeros, which a product does not survive.
  lost = config.model.aggregation in algorithms.NEEDS_ALL
  if lost or not (setting.vfl.bottoms[0] and config.alone):
    return found
  quiet = setting._replace(
      in_training={}, after_training={}, replayed={}, backdoor=''
  )
  alone = _of_entry(quiet, Entry('none', label=ALONE))
  first = len(alone)  # As many chunks as the undefended federation has.
  return found[:first] + alone + found[first:]


def units_of(everything: Sequence[Job]) -> list[str]:
  """The names of all results, in the order of a run that has all seeds at once.

  Args:
    everything: What `jobs` returned.
  """
  found: list[str] = []
  for _, some in groupby(everything, lambda job: (
      job.entry.name, job.labels, job.strengths, job.piece.chunk
  )):
    found += [unit for same in zip(*(job.units for job in some))
              for unit in same]
  return found


def _of_entry(setting: Setting, entry: Entry) -> list[Job]:
  config, values = setting.config, entry.strengths or (None,)
  points = [(s, g) for g in grid(entry) for s in values]
  return [
      _job(setting, entry, points, some, piece)
      for some in _chunks(range(len(points)), config.strengths_per_chunk)
      for piece in pieces(config, setting.raised)
  ]


def _chunks(values: Sequence, size: int) -> list[tuple]:
  size = size or len(values)
  return [tuple(values[i : i + size]) for i in range(0, len(values), size)]


def _job(setting: Setting, entry: Entry, points, chosen, piece: Piece) -> Job:
  """One of an entry's, with those of its points that are chosen."""
  config, count = setting.config, len(points)
  points = [points[i] for i in chosen]
  labels = tuple(row_name(entry, g) for _, g in points)
  units = tuple(
      (label if s is None else f'{label}/{s:g}') + piece.tail
      for label, (s, _) in zip(labels, points)
  )
  part = f'{chosen[0] + 1}-{chosen[-1] + 1} of {count}'
  some = f'/strengths {part}' if len(points) < count else ''
  room = min(config.strengths_per_chunk or count, count)

  if entry.name != 'none':  # Whose baselines are everybody's.
    setting = without_baselines(setting)

  largest, sizes = sizing.largest(config.listed, entry, _bare)
  numbers = _worded(entry) | sizes
  swept = *entry.grid, *numbers

  def make(strength, **others):
    if entry.name == ALONE:
      return absent()
    # Which of a family's it is, is told of those that have nothing swept, too.
    return build(
        largest, strength, **{k: v for k, v in others.items() if k in swept}
    )

  return Job(
      entry.name + some + piece.tail, entry, tuple(s for s, _ in points), piece,
      room, _program(config, entry, swept, room)
      + (f', {piece.room} seeds' if setting.raised else ''), units,
      make, setting, labels,
      {k: tuple(g[k] for _, g in points) for k in entry.grid}
      | {k: (n,) * len(points) for k, n in numbers.items()},
  )


def _program(
    config: Config, entry: Entry, swept: Sequence[str], room: int
) -> str:
  """The name of an entry's programs.

  What is swept is no part of them, nor are words and sizes for which numbers
  stand, so rows that differ in nothing else have the same. Their name is that
  of the first such row that the experiment lists, whichever of them run.
  """
  if not swept:
    return entry.name
  alike = (e.name for e in config.listed if _bare(e) == _bare(entry))
  return f'{next(alike, entry.name)}, {room} of {", ".join(swept)}'


def _bare(entry: Entry) -> tuple:
  """What an entry's programs are made of, but for how many points they have."""
  words = _worded(entry)
  options = {
      k: v for k, v in sizing.without(entry).items() if k not in words
  }
  return (
      entry.defense, bool(entry.strengths), options, entry.after,
      tuple(entry.grid), tuple(words),
  )


def _worded(entry: Entry) -> dict[str, float]:
  """The numbers that stand for words among an entry's options, by argument."""
  method = defenses.REGISTRY.get(entry.defense)
  found: dict[str, float] = {}
  for name, words in (method.words if method else {}).items():
    word = entry.options.get(name, words[0])
    if name not in entry.grid and word in words:
      found[name] = words.index(word)
  return found
