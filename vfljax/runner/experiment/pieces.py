"""Which seeds are trained together.

A run has them in chunks. A work directory whose number of seeds was raised has
*blocks* besides: those of before, then the new ones. A piece is what lies in
one chunk and one block, so that what was there stays as it is, and the pieces
of a chunk are in order what a run that had all seeds at once makes of it.
"""
from collections.abc import Sequence
from typing import NamedTuple

from vfljax.runner.config import Config


class Piece(NamedTuple):
  """Seeds that are trained together.

  Attributes:
    seeds: Consecutive ones.
    chunk: Which chunk they are in of a run that has all seeds at once.
    block: How many times the seeds had been raised when they came.
    room: The seeds of the largest piece of its block, for which its programs
      are made.
    tail: What the names of its results end with.
  """

  seeds: tuple[int, ...]
  chunk: int
  block: int
  room: int
  tail: str


def pieces(config: Config, raised: Sequence[int] = ()) -> list[Piece]:
  """All seeds, in order.

  Args:
    raised: How many seeds there were, before each time that they were raised.
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
      # As a run is called that has no other seeds.
      whole = (i, j) == (0, ends[0])
      found.append(Piece(
          tuple(range(first, last + 1)), i // size, block,
          max(b - a for a, b in own), '' if whole else f'/seeds{first}-{last}',
      ))
  return found
