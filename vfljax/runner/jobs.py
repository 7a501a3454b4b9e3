"""What an experiment consists of, in the order in which it runs.

A *job* is what runs together: one defense, its strengths or a chunk of them, a
chunk of the seeds. Each of a job's strengths is a *unit* of results.
"""
from collections.abc import Callable, Sequence
from typing import NamedTuple

from vfljax.defense import Defense
from vfljax.runner.choosing import entries
from vfljax.runner.config import Config, Entry
from vfljax.runner.setting import (
    Setting, absent, build, grid, without_baselines,
)

ALONE = 'alone'  # The active party without the others.


class Job(NamedTuple):
  """What runs together.

  Attributes:
    name: For people.
    entry: The defense; its label for the results.
    strengths: Its strengths; (None,) for a defense without one.
    seeds: The chunk's seeds.
    room: For how many strengths its program is made: as many as its largest
      chunk has.
    units: The names under which the strengths' results are kept.
    make: (strength or None, **others) -> Defense.
    setting: With the attacks to run.
    labels: What the results call the defense, for each of the strengths.
    others: The values of other arguments that are swept with them.
  """

  name: str
  entry: Entry
  strengths: tuple[float | None, ...]
  seeds: tuple[int, ...]
  room: int
  units: tuple[str, ...]
  make: Callable[..., Defense]
  setting: Setting
  labels: tuple[str, ...]
  others: dict[str, tuple[float, ...]]

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
  possible = config.model.aggregation != 'product' and config.alone
  if not (setting.vfl.bottoms[0] and possible):
    return found
  quiet = setting._replace(
      in_training={}, after_training={}, replayed={}, backdoor=''
  )
  alone = _of_entry(quiet, Entry('none', label=ALONE))
  first = len(alone)  # As many chunks as the undefended federation has.
  return found[:first] + alone + found[first:]


def _of_entry(setting: Setting, entry: Entry) -> list[Job]:
  config, values = setting.config, entry.strengths or (None,)
  points = [(s, g) for g in grid(entry) for s in values]
  return [
      _job(setting, entry, points, some, seeds)
      for some in _chunks(range(len(points)), config.strengths_per_chunk)
      for seeds in _chunks(_seeds(config), config.seeds_per_chunk)
  ]


def _seeds(config: Config) -> range:
  return range(config.first_seed, config.first_seed + config.seeds)


def _chunks(values: Sequence, size: int) -> list[tuple]:
  size = size or len(values)
  return [tuple(values[i : i + size]) for i in range(0, len(values), size)]


def _job(setting: Setting, entry: Entry, points, chosen, seeds) -> Job:
  """One of an entry's, with those of its points that are chosen."""
  config, count = setting.config, len(points)
  points = [points[i] for i in chosen]
  chunked = len(seeds) < config.seeds
  tail = f'/seeds{seeds[0]}-{seeds[-1]}' if chunked else ''
  labels = tuple(
      ' '.join([entry.name, *(f'{k}={v:g}' for k, v in g.items())])
      for _, g in points
  )
  units = tuple(
      (label if s is None else f'{label}/{s:g}') + tail
      for label, (s, _) in zip(labels, points)
  )
  part = f'{chosen[0] + 1}-{chosen[-1] + 1} of {count}'
  some = f'/strengths {part}' if len(points) < count else ''

  if entry.name != 'none':  # Whose baselines are everybody's.
    setting = without_baselines(setting)

  def make(strength, **others):
    if entry.name == ALONE:
      return absent()
    return build(entry, strength, **others)

  return Job(
      entry.name + some + tail, entry, tuple(s for s, _ in points), seeds,
      min(config.strengths_per_chunk or count, count), units, make, setting,
      labels, {k: tuple(g[k] for _, g in points) for k in entry.grid},
  )
