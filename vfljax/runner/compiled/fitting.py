"""How many trainings a program runs in a call if memory is short.

One call runs all trainings of a job, unless the compiled program needs more
memory than the device has. Then equal pieces, the largest that fit, run one
after the other. A smaller piece reduces XLA's temporary memory, which is most
of what is needed; the trainings themselves stay on the device. If the user sets
`seeds_per_chunk` or `strengths_per_chunk`, nothing is changed.

Result files do not depend on the choice, so another machine can continue a run.
"""
from typing import Any

import jax

from vfljax.runner.compiled.families import Family, padded
from vfljax.runner.config import Config

SHARE = 0.9  # Share of a device's memory to use; copies need the rest.


def is_chosen(config: Config) -> bool:
  """Whether the user has chosen how many trainings run at a time."""
  return bool(config.seeds_per_chunk or config.strengths_per_chunk)


def limit() -> int:
  """Bytes of the smallest device's memory; 0 if unknown, as on a CPU."""
  found = [device.memory_stats() or {} for device in jax.local_devices()]
  return min(int(stats.get('bytes_limit', 0)) for stats in found)


def most(analysis: Any, cells: int, memory: int) -> int:
  """The largest number of trainings in a call that fits: 1 to `cells`.

  Args:
    analysis: `memory_analysis` of the program that runs `cells` trainings;
      `None` if the backend has none.
    cells: Trainings in a call so far.
    memory: Bytes of a device's memory; 0 if unknown.
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
  """The family in pieces of at most `wanted` trainings.

  Pieces are equal, and a multiple of the number of devices, so they may be
  smaller than wanted. With one training for each device they may be larger.

  Returns:
    The family, or `None` if its pieces cannot be smaller.
  """
  cells, devices = played(family), jax.local_device_count()
  sizes = [n for n in range(devices, cells, devices) if cells % n == 0]
  fitting = [n for n in sizes if n <= wanted] or sizes[:1]
  return family._replace(cells=fitting[-1]) if fitting else None


def played(family: Family) -> int:
  """The number of trainings in a call."""
  return family.cells or padded(family.job)
