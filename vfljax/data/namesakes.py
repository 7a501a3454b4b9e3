"""Columns that are called alike: two of one name, or a second label.

One of them could tell the label among the features.
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
  """Refuses columns with one name, of which one could be the label again.

  Names that differ in the blanks around them, or in a byte order mark, are one
  if it is the label's, or that of a column that is asked for.

  Args:
    names: The columns', as they stand in the file.
    label: Which of them is the label.
    meant: Names of columns that an option speaks of.

  Raises:
    ValueError: naming them.
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
        ' one in the file.'
    )


def refuse_label_again(
    frame: 'pd.DataFrame', label: str, y: np.ndarray
) -> None:
  """Refuses a feature that is called as the label, and tells it.

  Args:
    frame: The features.
    label: The label column's name.
    y: int [n], the labels.

  Raises:
    ValueError: naming it.
  """
  for name in frame.columns:
    if bare(name).casefold() == bare(label).casefold() and _tells(
        column_of(frame, name), y
    ):
      raise ValueError(
          f'Column {name!r} is called as the label {label!r} but for capitals,'
          f' and each of its values goes with one label: leave it out,'
          f' {flag(drop=name)}'
      )


def _tells(column: 'pd.Series', y: np.ndarray) -> bool:
  """Whether a column's values say what the label is, where there are any.

  Either each value has one label, unless nearly every row has a value of its
  own, which would always be so. Or each label has a range of numbers of its
  own, as where it was made of them.
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
