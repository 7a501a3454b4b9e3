"""Turns a data frame's columns into numbers.

Columns that would change their meaning are refused by name: a stray word among
numbers would make each number a category, and float32 would make different
large whole numbers equal.
"""
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vfljax.data import spelling
from vfljax.data.files import brief, fits, one_line
from vfljax.data.options import flag
from vfljax.data.table import listing, single

if TYPE_CHECKING:
  import pandas as pd

NUMBERS = ('integer', 'floating', 'mixed-integer-float', 'decimal')
TEXT = ('string', 'categorical', 'mixed-integer')
MOST = 20  # Up to so many different numbers are classes, not measurements.
_BLANK = '(missing)'  # The category of missing values, when imputing.
_BLOCK = 1 << 22  # Cells that are written at a time: 16 MiB.


class _Part(NamedTuple):
  """What one column becomes: numbers, or a 0/1 column for each category.

  Attributes:
    names: The new columns' names.
    values: float32 [n]: numbers; int [n]: the index of each row's category.
  """

  names: list[str]
  values: np.ndarray

  def of(self, rows: slice) -> np.ndarray:
    """The new columns in these rows: [rows, columns]."""
    values = self.values[rows, None]
    if values.dtype == np.float32:
      return values
    return values == np.arange(len(self.names))


def features(
    frame: 'pd.DataFrame', missing: str = 'refuse', categories: int = 100,
    text: Sequence[str] = (), rounded: Sequence[str] | None = None,
) -> tuple[np.ndarray, tuple[str, ...], tuple[int, ...]]:
  """(float32 [n, columns], names, groups) of every column of a frame.

  With missing='impute' numbers keep their NaNs, which `table.impute` fills.

  Args:
    frame: The features.
    missing, categories, text: As in `frame.csv`.
    rounded: As in `frame.csv`; `None` if the loader has no such option.

  Raises:
    ValueError: as `frame.csv`, for the columns.
  """
  if not 1 <= categories <= 100_000:
    raise ValueError(
        f'categories must be 1 to 100000; got {brief(categories)}.'
    )
  gaps: Any = frame.isna().sum()
  gaps = gaps[gaps > 0]
  if len(gaps) and missing != 'impute':
    parts = (f'{name!r} in {count}' for name, count in gaps.items())
    raise ValueError(
        f'Missing values: {listing(parts)} of {len(frame)} rows.'
        ' --config.data.missing=impute fills them;'
        f' {flag(drop=str(gaps.index[0]))} leaves a column out.'
    )
  parts, names, groups = [], [], []
  for group, name in enumerate(frame.columns):
    found = column_of(frame, name)
    try:
      part = _expand(found, categories, name in text, rounded)
    except ValueError as error:
      _refuse_all(frame, str(name), str(error), lambda column, name: _expand(
          column, categories, name in text, rounded
      ))
      raise
    parts.append(part)
    names += part.names
    groups += [group] * len(part.names)
    fits(4 * len(names) * len(frame), 'The one-hot columns')
  return _joined(parts, len(frame)), tuple(names), tuple(groups)


def _refuse_all(
    frame: 'pd.DataFrame', first: str, said: str,
    expand: Callable[['pd.Series', str], Any],
) -> None:
  """Names what else would be refused, as a large file takes long to read.

  Args:
    frame: The features.
    first: The column that is refused.
    said: Why.
    expand: (column, name) -> anything; raises a ValueError for such a column.

  Raises:
    ValueError: if any column after `first` would be refused, too.
  """
  others, names = [], [*frame.columns]
  for name in names[names.index(first) + 1 :]:
    try:
      expand(column_of(frame, name), name)
    except ValueError:
      others.append(name)
  if others:
    raise ValueError(
        f'{said.rstrip(".")}. Refused, too: {listing(map(repr, others))}; to'
        f' leave out all of them: {flag(drop=[first, *others])}'
    )


def _joined(parts: Sequence[_Part], rows: int) -> np.ndarray:
  """The parts' columns side by side, float32 [rows, columns].

  They are written block by block of rows, so that the 0/1 columns exist once.
  """
  ends = np.cumsum([0, *(len(part.names) for part in parts)])
  x = np.empty((rows, ends[-1]), np.float32)
  step = max(_BLOCK // max(int(ends[-1]), 1), 1)
  for first in range(0, rows, step):
    block = slice(first, first + step)
    for part, start, end in zip(parts, ends, ends[1:]):
      x[block, start:end] = part.of(block)
  return x


def column_of(frame: 'pd.DataFrame', name: str) -> 'pd.Series':
  """`frame[name]` with the type of a column, for type checkers."""
  place = frame.columns.get_loc(name)
  if not isinstance(place, int):  # Of equal names, the first.
    place = list(frame.columns).index(name)
  return frame.iloc[:, place]


def kind_of(column: 'pd.Series') -> str:
  """The kind of a column's values, as pandas names it: 'integer', 'string'."""
  import pandas as pd

  return pd.api.types.infer_dtype(column, skipna=True)


def _expand(
    column: 'pd.Series', most: int, text: bool, rounded: Sequence[str] | None
) -> _Part:
  """The numbers, or the categories, that one column becomes."""
  kind, name = kind_of(column), column.name
  if column.isna().all():
    raise ValueError(
        f'Column {name!r} has no value at all; drop it: {flag(drop=str(name))}'
    )
  if kind in NUMBERS and not text:
    values = numbers(column)
    if name not in (rounded or ()):
      _refuse_lost(column, values, rounded is not None)
    return _Part([str(name)], single(values))
  if kind == 'boolean' and not text and not column.isna().any():
    return _Part([str(name)], column.to_numpy(np.float32))
  if kind not in (*TEXT, *NUMBERS, 'boolean'):
    raise ValueError(
        f'Column {name!r} has values of kind {kind}; numbers, booleans and text'
        f' are understood. Convert or drop it: {flag(drop=str(name))}'
    )
  if not text:
    spelling.refuse_stray(column)
  codes, values = _categories(column)
  if not text:
    words = [v for v in values if v != _BLANK]
    spelling.refuse_signs(str(name), words)
    if len(values) > min(most, MOST):
      spelling.refuse_dates(str(name), words)
    _refuse_names(column, values)
    spelling.refuse_alike('Column', name, values)
  if len(values) > most:
    raise ValueError(
        f'Text column {name!r} has {len(values)} different values, more than'
        f' {most}: drop it, {flag(drop=str(name))}, or raise the limit,'
        f' {flag(categories=str(len(values)))}'
    )
  fits(4 * len(values) * len(codes), f'The categories of column {name!r}')
  return _Part([f'{name}={value}' for value in values], codes)


def _categories(column: 'pd.Series') -> tuple[np.ndarray, list[str]]:
  """(int [n], names): each row's category, and all of them in order.

  A gap is a category of its own.
  """
  import pandas as pd

  if kind_of(column) not in ('string', 'categorical', 'integer'):
    # Other values may be equal and yet written in two ways: 0.0 and -0.0.
    column = column.map(str, na_action='ignore').astype(object)
  index, found = pd.factorize(column)  # Gaps are -1.
  words = [*map(str, found)] + ([_BLANK] if (index < 0).any() else [])
  names = sorted(set(words))
  place = {name: k for k, name in enumerate(names)}
  return np.array([place[word] for word in words])[index], names


def numbers(column: 'pd.Series') -> np.ndarray:
  """A column's numbers, float64 [n]; gaps are NaN.

  Raises:
    ValueError: for a number that has no such form.
  """
  try:
    return column.to_numpy(dtype=np.float64, na_value=np.nan)
  except (OverflowError, ValueError, TypeError) as error:
    row = next((i for i, v in enumerate(column) if not _as_float(v)), 0)
    raise ValueError(
        f'Column {column.name!r}, row {row + 1}: {brief(column.iloc[row], 30)}'
        f' is no number of 64 bits ({one_line(error)}).'
    ) from None


def _as_float(value) -> bool:
  try:
    float(value)
  except (OverflowError, ValueError, TypeError):
    return False
  return True


def _refuse_names(column: 'pd.Series', values: Sequence[str]) -> None:
  """Refuses text that has another value in nearly every row.

  Raises:
    ValueError: (one line) with the option that leaves it out.
  """
  count, rows, name = len(values), len(column), str(column.name)
  if count > max(MOST, rows // 2):
    raise ValueError(
        f'Text column {name!r} has {count} different values in {rows} rows: it'
        f' seems to name each row. Drop it, {flag(drop=name)}; or, if its'
        ' values are categories,'
        f' {flag(text=name, categories=str(max(count, 100)))}'
    )


def _refuse_lost(
    column: 'pd.Series', values: np.ndarray, optional: bool
) -> None:
  """Refuses numbers that float32 cannot tell apart.

  Args:
    column: The column as it was read.
    values: Its numbers, [n].
    optional: Whether the loader has the option `rounded`, which accepts them.

  Raises:
    ValueError: says what to do instead.
  """
  collapsed = lost(values) or (
      kind_of(column) == 'integer' and abs(values[~np.isnan(values)]).max()
      >= 2**53 and lost(values, column.nunique())
  )
  if collapsed:
    accept = f' To have them rounded: {flag(rounded=str(column.name))}.'
    raise ValueError(
        f'Column {column.name!r} has numbers so far from 0 that float32 cannot'
        ' tell many apart. Subtract its smallest value, or drop'
        f' it: {flag(drop=str(column.name))}.{accept if optional else ""}'
    )


def lost(values: np.ndarray, different: int = 0) -> bool:
  """Whether float32 loses much of a column, as of times since 1970.

  It merges more than a tenth of the whole numbers, or moves others by more than
  three hundredths of their deviation.

  Args:
    values: The numbers, [n]; NaNs are ignored.
    different: How many different numbers the column had, if `values` (64-bit
      floats) no longer has them all; else 0.
  """
  if not len(values := values[np.isfinite(values)]):
    return False
  low, high = float(values.min()), float(values.max())
  most = max(high, -low)
  if low == high and not different or not np.isfinite(single(np.array(most))):
    return False  # Too large for float32: `table.check` says so.
  if values.dtype.kind == 'f' and (values != np.round(values)).any():
    if high - low < 1e-12 * most:
      return False  # The same number, computed in several ways.
    full = values.astype(float)
    moved = single(full).astype(float) - full
    return bool(moved.std() > 0.03 * (full - low).std())
  if most <= 2**24:
    return False
  kept = len(np.unique(single(values)))
  return kept < 0.9 * (different or len(np.unique(values))) and kept < 2**20
