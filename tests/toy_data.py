"""A data set of somebody else's: registered from outside of the package."""
import numpy as np

from vfljax.data.files import find
from vfljax.data.source import Facts, Source
from vfljax.data.table import Table

HOW = 'Write toy.txt yourself.'


def load(path: str = '', rows: int = 0) -> Table:
  """Two numbers and the class on each line; `rows` of them, 0 all."""
  raw = np.loadtxt(find(path, 'toy.txt', HOW), ndmin=2)
  raw = raw[: rows or None]
  return Table(
      raw[:, :-1].astype(np.float32), raw[:, -1].astype(np.int32),
      tuple(f'x{i}' for i in range(raw.shape[1] - 1)), ('no', 'yes'),
      tuple(range(raw.shape[1] - 1)),
  )


SOURCE = Source(
    load, 'binary', HOW, 'CC0',
    Facts(6, (3, 3), 'toys.example', (2,), whole=(('rows', 0),)),
    files=('toy.txt',), parties='2: a number each',
)
