"""Turns a data frame's label column into classes.

What is no class is refused: a missing label, a measurement, a stray word among
numbers.
"""
from typing import TYPE_CHECKING, Any

import numpy as np

from vfljax.data import spelling
from vfljax.data.columns import MOST, NUMBERS, kind_of, numbers
from vfljax.data.options import flag
from vfljax.data.table import few_classes, listing

if TYPE_CHECKING:
  import pandas as pd


# What stands for no label; '-' may be a class beside '+', 'none' beside 'mild'.
_GAPS = '', '?', '??', 'na', 'n.a.', 'n.a', 'n/a', 'nan', 'null', '#n/a', '#na'
_NARROW = {
    'float16': np.float16, 'halffloat[pyarrow]': np.float16,
    'float32': np.float32, 'float[pyarrow]': np.float32,
}


def labels(
    column: 'pd.Series', positive: str = '', text: bool = False, most: int = 0
) -> tuple[np.ndarray, tuple[str, ...]]:
  """(int32 [n], the classes' names), classes in numeric or alphabetical order.

  Args:
    column: One value for each row.
    positive: The class that becomes 1, of two classes; '' for the last.
    text: Whether the user declared values to be classes: then words among
      numbers, and up to `most` classes in few rows, are accepted.
    most: See `text`.

  Raises:
    ValueError: for missing labels, a `positive` that is not one of two classes,
      a column of measurements, or a few words among numbers.
  """
  kind, name, rows = kind_of(column), column.name, len(column)
  gone = column.isna().to_numpy()
  if kind in NUMBERS:
    gone = ~np.isfinite(numbers(column))
  if gone.any():
    raise ValueError(
        f'Label column {name!r}: {gone.mean():.1%} of its values are missing'
        f' ({gone.sum()} of {rows} rows). Every row needs a label: leave the'
        ' others out of the data.'
    )
  if kind == 'categorical' and column.cat.categories.dtype.kind in 'iuf':
    # Numbers that the user declared to be classes; as words, 10 is before 9.
    column, text = column.astype(column.cat.categories.dtype), True
    kind = kind_of(column)
  if kind not in NUMBERS and not text:
    spelling.refuse_stray(column)
  values = numbers(column) if kind in NUMBERS else column.astype(str)
  order, index = np.unique(np.asarray(values), return_inverse=True)
  if kind in NUMBERS:
    order = _as_classes(column, order, text)
  elif not text:
    spelling.refuse_alike('Label column', name, map(str, order))
    _refuse_gaps(name, order, np.bincount(index))
  few_classes(
      len(order), rows, f'Label column {name!r}', most if text else 0,
      flag(text=str(name), categories=str(len(order))),
  )
  classes = tuple(map(str, order))
  index = index.astype(np.int32)
  if positive == '':
    return index, classes
  found = [i for i, one in enumerate(classes) if _same(one, positive)]
  if len(classes) != 2 or not found:
    raise ValueError(
        f'positive={positive!r}: the classes in {name!r} are'
        f' {listing(classes)}; positive must name one of two classes, as in'
        f' {flag(positive=classes[0])}'
    )
  return (1 - index, classes[::-1]) if found[0] == 0 else (index, classes)


def _as_classes(
    column: 'pd.Series', order: np.ndarray, text: bool
) -> list[int | float]:
  """A label column's different numbers, whole numbers as integers.

  Raises:
    ValueError: if they look like measurements. Whole numbers are accepted if
      the user declared them to be classes (`text`).
  """
  name = column.name
  if kind_of(column) == 'integer' and len(order) < column.nunique():
    raise ValueError(
        f'Label column {name!r} has whole numbers beyond 2^53, which cannot be'
        ' told apart; write the classes as words.'
    )
  if (order != np.round(order)).any():
    if len(order) > MOST:
      raise ValueError(
          f'Label column {name!r} has {len(order)} different fractional'
          ' numbers: it is a measurement, not a class. Write a column of'
          ' classes into the data, such as 1 where it is above some value and 0'
          ' elsewhere, and leave this column out, because it gives them away:'
          f' --config.data.label=<name> {flag(drop=str(name))}'
      )
    return [_short(value, column.dtype) for value in order]
  if len(order) > MOST and not text:
    raise ValueError(
        f'Label column {name!r} has {len(order)} different whole numbers. If'
        ' they are measurements, write a column of classes, such as ranges of'
        f' them, into the data. If they are classes: {flag(text=str(name))}'
    )
  return [int(v) if abs(v) < 2**63 else float(v) for v in order]


def _short(value: float, kind: Any) -> float:
  """0.1 for what float32, say, has in place of 0.1."""
  narrow: Any = _NARROW.get(str(kind).lower())  # pandas says Float32, too.
  return float(str(narrow(value))) if narrow else value


def _refuse_gaps(name: object, order: np.ndarray, counts: np.ndarray) -> None:
  """Refuses a word for a missing label, which would be one class more.

  Raises:
    ValueError: (one line) with the option that makes it a class.
  """
  for word, count in zip(map(str, order), counts):
    if word.strip().casefold() in _GAPS:
      raise ValueError(
          f'Label column {name!r} has {word!r} in {count} of {counts.sum()}'
          ' rows. If that means a missing label, leave these rows out of the'
          f' data; if it is a class: {flag(text=str(name))}'
      )


def _same(one: str, other: str) -> bool:
  """Whether two words are equal, or the same number: '1' and '1.0'."""
  try:
    return one == other or float(one) == float(other)
  except (ValueError, OverflowError):
    return False
