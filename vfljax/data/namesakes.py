"""Refuses columns with the same name, and a second label among the features.

Such a column could give the label away.
"""
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from vfljax.data.columns import NUMBERS, column_of, kind_of
from vfljax.data.options import flag
from vfljax.data.table import bare, listing

if TYPE_CHECKING:
  import pandas as pd


def refuse_twice(
    names: list[str], label: str, meant: Sequence[str]
) -> None:
  """Refuses columns with the same name, as one could be the label again.

  Names that differ only in blanks around them or a byte order mark count as the
  same if one of them is the label's or is named in an option.

  Args:
    names: The columns' names as in the file.
    label: The label column.
    meant: Names of columns in options.

  Raises:
    ValueError: names them.
  """
  count = Counter(names)
  alike, asked = Counter(map(bare, names)), {bare(n) for n in (label, *meant)}
  double = [
      repr(name) for name in names
      if bare(name) and (
          count[name] > 1 or alike[bare(name)] > 1 and bare(name) in asked
      )
  ]
  if double:
    raise ValueError(
        f'Two columns have the same name: {listing(double)}. Rename or remove'
        ' one in the data.'
    )


def refuse_label_again(
    frame: 'pd.DataFrame', label: str, y: np.ndarray
) -> None:
  """Refuses a feature that has the label's name and determines the label.

  Names are compared without regard to capitals.

  Args:
    frame: The features.
    label: The label column's name.
    y: The labels, int [n].

  Raises:
    ValueError: names the feature.
  """
  for name in frame.columns:
    if bare(name).casefold() == bare(label).casefold() and _tells(
        column_of(frame, name), y
    ):
      raise ValueError(
          f'Column {name!r} has the same name as the label {label!r} except for'
          f' capitals, and its values determine the label. Leave it out:'
          f' {flag(drop=name)}'
      )


def _tells(column: 'pd.Series', y: np.ndarray) -> bool:
  """Whether a column's values determine the label, in rows that have a value.

  They do if each value goes with one label only. If most rows have a value of
  their own, that proves nothing; then each label must have its own range of
  numbers.
  """
  import pandas as pd

  there = column.notna().to_numpy()
  y = y[there]
  values, order = pd.factorize(column[there], sort=kind_of(column) in NUMBERS)
  both = len(np.unique(np.stack([values, y]), axis=1).T)
  if not len(y) or both > len(order):
    return False
  if len(order) <= max(20, len(y) // 2):
    return True
  ranked = y[np.argsort(values)]
  changes = int(np.count_nonzero(ranked[1:] != ranked[:-1]))
  return kind_of(column) in NUMBERS and changes < len(np.unique(y))
