"""Means over the seeds in each measured epoch."""
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

LOSS = 'train_loss'


class Point(NamedTuple):
  """One measured epoch of a unit.

  Attributes:
    epoch: Number of epochs played, from 1.
    seeds: Number of trainings in the means. Trainings that stopped early or
      diverged are left out; the curves of `parts` have each training's.
    values: Curve name -> mean; NaN if one of those trainings has no value.
  """

  epoch: int
  seeds: int
  values: dict[str, float]


def points(curves: Mapping[str, np.ndarray], first: int = 0) -> list[Point]:
  """The measured epochs, from `first` on, of curves [seeds, epochs].

  A training is measured in an epoch if it has any number there besides the
  loss.
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
