"""Finds what tells too much, or nothing: labels, numbers, constants, copies.

A second label, or something that was written down because of the label, makes
any federation perfect and any attack pointless. It seldom has the label's name,
so it is recognised by its values. It is no error: a measurement may tell a
label, too.
"""
from collections.abc import Sequence
import re
from typing import TYPE_CHECKING, Any
import warnings

import numpy as np

from vfljax.data.columns import NUMBERS, column_of, kind_of, numbers
from vfljax.data.dialect import Recognised
from vfljax.data.options import flag
from vfljax.data.table import counted, listing

if TYPE_CHECKING:
  import pandas as pd

_LOOKED_AT = 10_000  # Rows, evenly spaced, that decide.
_MANY = 100  # With fewer rows, or ...
_OF_EACH = 5  # ... fewer rows of a class, a column may tell it by chance.
_TELLS = 0.02  # Share of changes of the label that is left, see `disorder`.
_ROWS_A_WORD = 20  # With fewer, words would be put in order by chance.
_DRAWN = 20  # See `warn_of_numbering`.
_COPIED, _ALIKE = 0.1, 0.99  # See `warn_of_copies`.
_BY_CHANCE = 10
_CODE = re.compile(r'\s*[-+]?0\d')
# 1,5 or 1.234,50 or 1 234: a number, but not for pandas.
_MARKED = re.compile(
    r"[+\u2212-]?(?:(?:\d+|[1-9]\d{0,2}([ .,'’\u00a0\u202f])\d{3}(?:\1\d{3})*)"
    r'(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?'
)
_MARKS = ', once marks of thousands are gone and the decimal one is a point'
_TYPED = 30  # Names that somebody would paste behind --config.data.options.


def warn(frame: 'pd.DataFrame', label: str, y: np.ndarray) -> None:
  """Warns of columns that alone tell the label, and of constant ones.

  Args:
    frame: The features.
    label: The label column's name.
    y: The labels, int [n], 0..classes-1.

  Warns:
    Recognised: (one line) for each of the two kinds.
  """
  rows = np.arange(0, len(y), -(-len(y) // _LOOKED_AT))
  least = np.bincount(y[rows], minlength=y.max() + 1).min()
  if len(rows) < _MANY:
    return
  telling, same = [], []
  for name in frame.columns:
    column = column_of(frame, name)
    some = column.iloc[rows]
    if some.nunique(dropna=False) == 1:
      if column.nunique(dropna=False) == 1:
        same.append(name)
    elif least >= _OF_EACH:
      if disorder(_order(some, y[rows]), y[rows]) < _TELLS:
        telling.append(name)
  if telling:
    each = 'this column' if len(telling) == 1 else 'each of these columns'
    _say(
        f'Label {label!r} is told in nearly every row by {each} alone:'
        f' {listing(map(repr, telling))}. If that is only known once the label'
        f' is, leave it out: {flag(drop=telling)}'
    )
  if same:
    # So many are seldom columns of their own, but words or categories.
    advice = (
        f'To leave them out: {flag(drop=same)}' if len(same) <= _TYPED
        else 'They tell nothing, and cost a little time.'
    )
    _say(
        f'{counted(len(same), "column")} with the same value in every row:'
        f' {listing(map(repr, same))}. {advice}'
    )


def warn_of_numerals(frame: 'pd.DataFrame', text: Sequence[str]) -> None:
  """Warns of columns of text whose every value is a number.

  A frame often has them by mistake. A file's are read as numbers. As
  categories they lose their order, and most of what a network learns of them.

  Args:
    frame: The features.
    text: Names of columns that the user declared to be categories.

  Warns:
    Recognised: (one line) if there are any. Codes with leading zeros are not,
      nor do two categories lose an order.
  """
  import pandas as pd

  found, marked = [], False
  for name in frame.columns:
    column = column_of(frame, name)
    if name in text or kind_of(column) != 'string':
      continue
    words = pd.Series(column.dropna().unique(), dtype=object)
    if len(words) < 3 or any(map(_CODE.match, words)):
      continue
    read = np.asarray(pd.to_numeric(words, errors='coerce'), float)
    other: Any = words[~np.isfinite(read)]
    if other.str.strip().str.fullmatch(_MARKED).all():
      found.append(name)
      marked = marked or len(other) > 0
  if found:
    one = len(found) == 1
    _say(
        f'{"Column" if one else "Columns"} {listing(map(repr, found))} '
        f'{"has" if one else "have"} numbers as text, and each number becomes '
        'a category. If they are measurements, convert them in the data '
        f'(pandas.to_numeric{_MARKS if marked else ""}); if they are '
        f'categories, say so: {flag(text=found)}'
    )


def warn_of_numbering(frame: 'pd.DataFrame') -> None:
  """Warns of a column with another whole number in each row.

  Customers' numbers say when each was recorded, which may give the label away.
  It is no error, because the numbers may also be days or ranks. With few rows,
  as in a table of months, there is no warning.

  Where tables were joined, some numbers are missing. So it counts whether
  measured numbers would repeat: n even draws out of m numbers are all different
  with probability exp(-n^2 / 2m), which is below 1e-4 if m is less than
  n^2 / `_DRAWN`, and lower still for uneven draws.

  Warns:
    Recognised: (one line) for each such column.
  """
  for name in frame.columns if len(frame) >= _MANY else ():
    found = column_of(frame, name)
    if kind_of(found) != 'integer' or found.nunique() < len(frame):
      continue
    first, last = int(found.min()), int(found.max())
    if last - first >= len(frame) ** 2 / _DRAWN:
      continue
    has = 'another whole number in each row'
    if last - first == len(frame) - 1:
      has = f'every whole number from {first} to {last} once'
    warnings.warn(
        f'Column {name!r} has {has}, like numbers of rows or customers. If'
        ' these are no measurements, leave it out:'
        f' {flag(drop=name)}', Recognised, stacklevel=5,
    )


def warn_of_copies(frame: 'pd.DataFrame', label: str, y: np.ndarray) -> None:
  """Warns if many rows are there several times, with their label.

  Of copies one is among the training rows and another among the test rows, so
  that a network that has learned nothing but its training rows looks good.
  Samples of a few categories may be alike by chance. So rows count as copies if
  rows that agree in all features also agree in the label (but for one in a
  hundred), and `_BY_CHANCE` times as many pairs agree as would if each column's
  values were dealt out anew.

  Warns:
    Recognised: (one line) if a tenth of the rows or more are such.
  """
  from pandas.util import hash_pandas_object

  if len(frame) < _MANY:
    return
  rows = hash_pandas_object(frame, index=False)  # pyright: ignore
  _, group, size = np.unique(
      np.asarray(rows), return_inverse=True, return_counts=True
  )
  repeated = size[group] > 1
  if repeated.mean() < _COPIED:
    return
  labeled = group * (int(y.max()) + 1) + y
  _, own, count = np.unique(labeled, return_inverse=True, return_counts=True)
  alike = count[own][repeated] == size[group][repeated]
  pairs = len(frame) * len(frame) * np.prod([
      np.square(column_of(frame, name).value_counts(True, dropna=False)).sum()
      for name in frame.columns
  ])
  if alike.mean() < _ALIKE or np.square(size).sum() < _BY_CHANCE * pairs:
    return
  _say(
      f'{repeated.sum()} of {len(frame)} rows repeat another row, {label!r} '
      'included. If they are copies, most test rows are training rows, too, '
      'and any network looks good: keep one of each (drop_duplicates of pandas)'
  )


def disorder(place: np.ndarray, y: np.ndarray) -> float:
  """How often the label changes along a column: 0 for sorted, 1 for chance.

  Rows are sorted by the column, those of one value by lot. Changes of the label
  between neighbours are counted, and divided by the number to be expected of a
  column that tells nothing. As many changes as sorted labels have do not count.

  Args:
    place: Each row's value, int or float [n].
    y: The labels, int [n], 0..classes-1, of at least two classes.
  """
  lot = np.random.default_rng(0).permutation(len(y))
  ranked = y[lot][np.argsort(place[lot], kind='stable')]
  changes = np.count_nonzero(ranked[1:] != ranked[:-1])
  counts = np.bincount(y)
  shares = counts / len(y)
  expected = len(y) * (1 - np.square(shares).sum())
  return max(changes + 1 - np.count_nonzero(counts), 0) / expected


def _order(column: 'pd.Series', y: np.ndarray) -> np.ndarray:
  """Each row's value as a number; words in the order of their usual label.

  Gaps are values of their own, as a gap may tell a label.
  """
  import pandas as pd

  if kind_of(column) in NUMBERS:
    return numbers(column)  # NaNs are sorted to the end, as equals.
  place, values = pd.factorize(column, use_na_sentinel=False)
  if len(values) * _ROWS_A_WORD > len(y):
    return place
  usual = np.zeros((len(values), y.max() + 1))
  np.add.at(usual, (place, y), 1)
  return usual.argmax(1)[place]


def _say(text: str) -> None:
  warnings.warn(text, Recognised, stacklevel=6)
