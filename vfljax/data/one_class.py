"""One class of an image data set against all others: 1 : 9 for ten classes.

It stands in for unbalanced binary data sets that are not available.
"""
from collections.abc import Callable

import numpy as np

from vfljax.data import npz
from vfljax.data.options import whole
from vfljax.data.source import Source
from vfljax.data.table import Table


def against_rest(
    load: Callable[..., Table], default: int
) -> Callable[..., Table]:
  """A loader of `load`'s data set with two classes.

  Args:
    load: The loader of the data set.
    default: The number of the class that is positive by default.
  """

  def load_two(path: str = '', positive: int = default) -> Table:
    table = load(path)
    whole('the classes', 0, len(table.classes) - 1, positive=positive)
    labels = (table.labels == positive).astype(np.int32)
    return table._replace(
        labels=labels, classes=('other', table.classes[positive])
    )

  return load_two


def _shirts(fashion: Source) -> Source:
  assert fashion.facts is not None
  return fashion._replace(
      load=against_rest(fashion.load, npz.FASHION_CLASSES.index('Shirt')),
      task='binary', facts=fashion.facts._replace(counts=(63000, 7000)),
  )


FASHION_MNIST_BINARY = _shirts(npz.FASHION_MNIST)
