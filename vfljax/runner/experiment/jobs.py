"""The jobs of an experiment, in the order in which they run.

A *job* is what is trained together: one defense at all its strengths, or a
chunk of them, with a piece of the seeds. Each strength of a job is a *unit* of
results.
"""
from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple

from vfljax import algorithms, defenses, target
from vfljax.defense import Defense
from vfljax.runner.config import Config, Entry
from vfljax.runner.experiment import sizing
from vfljax.runner.experiment.choosing import entries
from vfljax.runner.experiment.grids import grid, row_name
from vfljax.runner.experiment.pieces import Piece, pieces
from vfljax.runner.experiment.setting import (
    Setting, absent, build, without_baselines,
)

ALONE = 'alone'  # The baseline of the active party without the others.


class Job(NamedTuple):
  """Trainings that run together.

  Attributes:
    name: What progress lines call it.
    entry: The defense, its options and its label.
    strengths: The defense's strengths; (None,) for a defense without one.
    piece: The seeds.
    room: How many strengths the compiled program takes: the size of the largest
      chunk.
    program: The name of the compiled programs; jobs with the same name share
      them.
    units: For each strength, the name under which its results are kept.
    make: (strength or None, **others) -> Defense.
    setting: The setting, with the attacks to run.
    labels: For each strength, the defense's name in the results.
    others: Argument -> its values, one for each strength: arguments of the
      grid, and numbers that stand for words or sizes.
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
    """The number of trainings."""
    return len(self.strengths) * len(self.seeds)

  @property
  def work(self) -> float:
    """How long it takes, compared with other jobs: for the time to go.

    CPUs train one federation after the other, GPUs and TPUs side by side.
    """
    return float(self.count) if target.kind() == 'cpu' else 1.0

  @property
  def attacked(self) -> bool:
    """Whether attacks follow training."""
    return bool(self.setting.after_training or self.setting.replayed)

  @property
  def constant(self) -> bool:
    """Whether the defense has no strength."""
    return self.strengths[0] is None


def jobs(setting: Setting) -> list[Job]:
  """The experiment's jobs.

  First the undefended federation, then the active party alone, then the
  defenses in their order.
  """
  config = setting.config
  found = [job for entry in entries(config, setting.classes)
           for job in _of_entry(setting, entry)]
  # Absent parties send zeros, which make a product zero.
  lost = config.model.aggregation in algorithms.NEEDS_ALL
  if lost or not (setting.vfl.bottoms[0] and config.alone):
    return found
  quiet = setting._replace(
      in_training={}, after_training={}, replayed={}, backdoor=''
  )
  alone = _of_entry(quiet, Entry('none', label=ALONE))
  first = len(alone)  # The undefended federation has as many jobs.
  return found[:first] + alone + found[first:]


def units_of(everything: Sequence[Job]) -> list[str]:
  """The names of all units, in the order of a run that has all seeds at once.

  Args:
    everything: All jobs, as `jobs` returns them.
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
  """One job of an entry, with the points whose indices are `chosen`."""
  config, count = setting.config, len(points)
  points = [points[i] for i in chosen]
  labels = tuple(row_name(entry, g) for _, g in points)
  units = tuple(
      (label if s is None else f'{label}/{s:g}') + piece.tail
      for label, (s, _) in zip(labels, points)
  )
  part = f'{chosen[0] + 1}-{chosen[-1] + 1} of {count}'
  some = f'/strengths {part}' if len(points) < count else ''
  room = _room(config, entry)

  if entry.name != 'none':  # Baselines are measured once, without a defense.
    setting = without_baselines(setting)

  bare = partial(_bare, setting)
  largest, sizes = sizing.largest(config.listed, entry, bare)
  numbers = _worded(setting, entry) | sizes
  swept = *entry.grid, *numbers

  def make(strength, **others):
    if entry.name == ALONE:
      return absent()
    # Callers also pass arguments that this entry does not sweep.
    return build(
        largest, strength, **{k: v for k, v in others.items() if k in swept}
    )

  return Job(
      entry.name + some + piece.tail, entry, tuple(s for s, _ in points), piece,
      room, _program(setting, entry, swept, room)
      + (f', {piece.room} seeds' if setting.raised else ''), units,
      make, setting, labels,
      {k: tuple(g[k] for _, g in points) for k in entry.grid}
      | {k: (n,) * len(points) for k, n in numbers.items()},
  )


def _program(
    setting: Setting, entry: Entry, swept: Sequence[str], room: int
) -> str:
  """The name of an entry's compiled programs.

  Swept values, and words and sizes that are passed as numbers, are arguments of
  a program. So entries that differ only in these share their programs, under
  the name of the first such entry that the experiment lists.
  """
  if not swept:
    return entry.name
  bare = _bare(setting, entry)
  alike = (e.name for e in setting.config.listed if _bare(setting, e) == bare)
  return f'{next(alike, entry.name)}, {room} of {", ".join(swept)}'


def _bare(setting: Setting, entry: Entry) -> tuple:
  """All that an entry's programs depend on, except the number of points."""
  return _but(entry, _worded(setting, entry))


def _but(entry: Entry, words: Collection[str]) -> tuple:
  """The same, if those words are numbers in its programs."""
  options = {
      k: v for k, v in sizing.without(entry).items() if k not in words
  }
  return (
      entry.defense, bool(entry.strengths), options, entry.after,
      tuple(entry.grid), tuple(words),
  )


def _worded(setting: Setting, entry: Entry) -> dict[str, float]:
  """Argument -> the number that stands for its word in compiled programs.

  A light word has one only beside a row that runs the same program with another
  word, and if the trainings of a call run one by one. A word that has only
  light ones beside it has one only together with them.
  """
  own = _words(entry)
  if not own or not defenses.REGISTRY[entry.defense].light:
    return own
  alike = [
      e for e in entries(setting.config, setting.classes)
      if _but(e, _words(e)) == _but(entry, own)
      and _room(setting.config, e) == _room(setting.config, entry)
  ] if target.kind() == 'cpu' and not setting.stream else []

  def shared(name: str) -> bool:
    light = [_is_light(e, name, _words(e)[name]) for e in (entry, *alike)]
    if light[0]:
      return False in light
    return _heavy(entry, name) > 1 or True in light

  return {name: n for name, n in own.items() if shared(name)}


def _is_light(entry: Entry, name: str, number: float) -> bool:
  method = defenses.REGISTRY[entry.defense]
  return method.words[name][int(number)] in method.light


def _heavy(entry: Entry, name: str) -> int:
  """How many of an argument's words are not light."""
  method = defenses.REGISTRY[entry.defense]
  return len(set(method.words[name]) - set(method.light))


def _room(config: Config, entry: Entry) -> int:
  """How many points an entry's programs take."""
  count = len(grid(entry)) * len(entry.strengths or (None,))
  return min(config.strengths_per_chunk or count, count)


def _words(entry: Entry) -> dict[str, float]:
  """Argument -> index of its word, for options that are one of some words."""
  method = defenses.REGISTRY.get(entry.defense)
  found: dict[str, float] = {}
  for name, words in (method.words if method else {}).items():
    word = entry.options.get(name, words[0])
    if name not in entry.grid and word in words:
      found[name] = words.index(word)
  return found
