"""The resources of a grid's tasks, for its engines."""
from typing import NamedTuple


class Resources(NamedTuple):
  """The resources of one experiment of a grid.

  Attributes:
    cpus: Cores; 0 for all of a machine's.
    gpus: Accelerators.
  """

  cpus: int = 0
  gpus: int = 0
