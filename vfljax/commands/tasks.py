"""What an engine is told of the tasks that it runs."""
from typing import NamedTuple


class Resources(NamedTuple):
  """What one experiment of a grid gets.

  Attributes:
    cpus: Cores; 0 for all of a machine's.
    gpus: Accelerators.
  """

  cpus: int = 0
  gpus: int = 0
