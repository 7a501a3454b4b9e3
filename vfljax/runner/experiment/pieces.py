"""Which seeds are trained together.

A run divides its seeds into chunks (`--config.seeds_per_chunk`). If a work
directory's number of seeds is raised later, the old seeds and the new ones are
also separate *blocks*. A *piece* is the seeds in one chunk and one block. So
results of old seeds stay valid, and the pieces of a chunk, in order, are the
same as the chunk of a run that had all seeds from the start.
"""
from collections.abc import Sequence
from typing import NamedTuple

from vfljax.runner.config import Config


class Piece(NamedTuple):
  """Seeds that are trained together.

  Attributes:
    seeds: Consecutive seeds.
    chunk: The number of their chunk, from 0, in a run with all seeds at once.
    block: The number of their block: how often the seeds were raised before.
    room: Number of seeds in the largest piece of the block. Programs are
      compiled for so many.
    tail: The end of its units' names.
  """

  seeds: tuple[int, ...]
  chunk: int
  block: int
  room: int
  tail: str


def pieces(config: Config, raised: Sequence[int] = ()) -> list[Piece]:
  """Divides all seeds into pieces, in order.

  Args:
    config: The configuration.
    raised: The number of seeds before each time that it was raised.
  """
  ends = [*raised, config.seeds]
  size = config.seeds_per_chunk or config.seeds
  cuts = sorted({0, *ends, *range(0, config.seeds, size)})
  spans = list(zip(cuts, cuts[1:]))
  found = []
  for block, (low, high) in enumerate(zip([0, *raised], ends)):
    own = [(i, j) for i, j in spans if low <= i < high]
    for i, j in own:
      first, last = config.first_seed + i, config.first_seed + j - 1
      # A piece with all seeds of the first run needs no tail.
      whole = (i, j) == (0, ends[0])
      found.append(Piece(
          tuple(range(first, last + 1)), i // size, block,
          max(b - a for a, b in own), '' if whole else f'/seeds{first}-{last}',
      ))
  return found
