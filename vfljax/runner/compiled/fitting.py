"""How many trainings a call of a program plays, where memory is short.

A job's trainings are all played by one call, unless the compiled program says
that it needs more than the device has: then in equal pieces, one after the
other, of the most that fit. What grows with a call's trainings is what XLA
needs besides arguments and results, and most of it; the trainings themselves
stay on the device all the while. Whoever sets `seeds_per_chunk` or
`strengths_per_chunk` has chosen.

Results have the same files whatever is chosen, so a run may go on elsewhere.
"""
from typing import Any

import jax

from vfljax.runner.compiled.families import Family, padded
from vfljax.runner.config import Config

SHARE = 0.9  # Of a device's memory; the rest is for what is copied meanwhile.


def is_chosen(config: Config) -> bool:
  """Whether somebody has said how many trainings there are at a time."""
  return bool(config.seeds_per_chunk or config.strengths_per_chunk)


def limit() -> int:
  """Bytes of the smallest device; 0 if one does not say, as a CPU."""
  found = [device.memory_stats() or {} for device in jax.local_devices()]
  return min(int(stats.get('bytes_limit', 0)) for stats in found)


def most(analysis: Any, cells: int, memory: int) -> int:
  """The most trainings a call that fit, `cells` or fewer; at least 1.

  Args:
    analysis: `memory_analysis` of the program that plays `cells`; `None` if the
      backend has none.
    memory: Bytes of a device; 0 if that is not known.
  """
  if analysis is None or not memory:
    return cells
  grows = analysis.temp_size_in_bytes
  stays = (
      analysis.argument_size_in_bytes + analysis.output_size_in_bytes
      - analysis.alias_size_in_bytes
  )
  room = SHARE * memory - stays
  if grows <= room:
    return cells
  return max(1, int(cells * max(room, 0) / grows))


def fewer(family: Family, wanted: int) -> Family | None:
  """The family in pieces of at most so many trainings; `None` if it is.

  Pieces are equal, and divide by the number of devices: where nothing else
  does, they are smaller than wanted, or (a training for each device) larger.
  """
  cells, devices = played(family), jax.local_device_count()
  sizes = [n for n in range(devices, cells, devices) if cells % n == 0]
  fitting = [n for n in sizes if n <= wanted] or sizes[:1]
  return family._replace(cells=fitting[-1]) if fitting else None


def played(family: Family) -> int:
  """Trainings a call."""
  return family.cells or padded(family.job)
