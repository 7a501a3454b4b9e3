"""What is worth writing down of an epoch: means over the seeds."""
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

LOSS = 'train_loss'


class Point(NamedTuple):
  """One measured epoch of a unit.

  Attributes:
    epoch: How many are played, from 1.
    seeds: How many trainings the means are of: who stopped early or diverged
      altogether is in none, and the curves of `parts` have each by itself.
    values: By the names of the curves; NaN if one of those trainings has none.
  """

  epoch: int
  seeds: int
  values: dict[str, float]


def points(curves: Mapping[str, np.ndarray], first: int = 0) -> list[Point]:
  """The measured epochs, from `first` on, of curves [seeds, epochs].

  Measured is a training in an epoch of which it has any number but the loss.
  """
  others = [x for name, x in curves.items() if name != LOSS]
  if not others:
    return []
  going = np.logical_or.reduce([~np.isnan(x) for x in others])
  found = []
  for epoch in range(first, going.shape[1]):
    rows = going[:, epoch]
    if rows.any():
      values = {k: float(x[rows, epoch].mean()) for k, x in curves.items()}
      found.append(Point(epoch + 1, int(rows.sum()), values))
  return found
