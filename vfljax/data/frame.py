"""CSV and Parquet files with a named label column, through pandas.

Numbers stay as they are, booleans become 0 and 1, a column of text becomes one
0/1 column per category, in the categories' alphabetical order, all with the
same group so that a vertical split keeps them together. Nothing is guessed:
missing values, dates and identifiers with thousands of values are refused with
the column's name, unless an option says what to do.
"""
import difflib
from typing import TYPE_CHECKING
import warnings

import numpy as np

from vfljax.data.files import find, one_line
from vfljax.data.need import extra
from vfljax.data.source import OWN, Source
from vfljax.data.table import Table, listing

if TYPE_CHECKING:
  import pandas as pd

HOW = "Give the file's path and the label column's name (label)."
_NUMBERS = ('integer', 'floating', 'mixed-integer-float', 'decimal')
_TEXT = ('string', 'categorical', 'mixed-integer')
_BLANK = '(missing)'  # The category of missing values, when imputing.


def csv(
    path: str = '', label: str = '', missing: str = 'refuse', sep: str = ',',
    drop: str = '', positive: str = '', categories: int = 100,
) -> Table:
  """A CSV file with a header line.

  Args:
    path: The file, compressed or not.
    label: Name of the label column.
    missing: 'refuse' or 'impute': the median for numbers, a category of its own
      for text and booleans. A missing label is always an error.
    sep: The separator, one character.
    drop: Names of columns to leave out, separated by commas.
    positive: In a binary task, the class that becomes 1; by default the last in
      order (numeric or alphabetical).
    categories: The most categories a text column may have.

  Raises:
    FileNotFoundError: if it is not there.
    ValueError: if it cannot be read, for any of the above, or if a package
      that reads it is not installed.
  """
  with extra():
    import pandas as pd

  file = find(path, '', HOW)
  try:
    with warnings.catch_warnings():
      # Without index_col, surplus first columns would become the rows' names.
      warnings.simplefilter('error', pd.errors.ParserWarning)
      frame = pd.read_csv(file, sep=sep, index_col=False)
  except pd.errors.ParserWarning as error:
    raise ValueError(
        f'{file}: the rows have more fields than the header.'
    ) from error
  except (ValueError, EOFError, OSError, TypeError) as error:
    raise ValueError(
        f'{file} cannot be read as CSV: {one_line(error)}'
    ) from error
  if label not in frame.columns and len(frame.columns) == 1:
    raise ValueError(
        f'{file} has a single column when split at {sep!r}; give the separator'
        ' (sep).'
    )
  return table(frame, label, missing, drop, positive, categories)


def parquet(
    path: str = '', label: str = '', missing: str = 'refuse', drop: str = '',
    positive: str = '', categories: int = 100,
) -> Table:
  """A Parquet file; arguments and errors as in `csv`."""
  with extra():
    import pandas as pd
    import pyarrow  # noqa: F401  (What pandas reads it with.)

  file = find(path, '', HOW)
  try:
    frame = pd.read_parquet(file, engine='pyarrow')
  except (ValueError, OSError) as error:
    raise ValueError(
        f'{file} cannot be read as Parquet: {one_line(error)}'
    ) from error
  return table(frame, label, missing, drop, positive, categories)


def table(
    frame: 'pd.DataFrame', label: str, missing: str = 'refuse', drop: str = '',
    positive: str = '', categories: int = 100,
) -> Table:
  """The table of a data frame; arguments and errors as in `csv`."""
  frame = frame.set_axis([str(c) for c in frame.columns], axis=1)
  double = frame.columns[frame.columns.duplicated()]
  if len(double):
    raise ValueError(f'Two columns have the same name: {listing(double)}.')
  dropped = [name.strip() for name in drop.split(',') if name.strip()]
  if not label:
    raise ValueError(
        f'Which column is the label? Columns: {listing(frame.columns, 10)}.'
    )
  for name in (label, *dropped):
    _require(frame, name)
  if not len(frame):
    raise ValueError('The data set has no rows.')
  y, classes = labels(_column(frame, label), positive)
  x, names, groups = features(
      frame.drop(columns=[label, *dropped]), missing, categories
  )
  return Table(x, y, names, classes, groups)


def labels(
    column: 'pd.Series', positive: str = ''
) -> tuple[np.ndarray, tuple[str, ...]]:
  """(int32 [n], the classes' names), classes in numeric or alphabetical order.

  Raises:
    ValueError: for missing labels, a `positive` that is not one of two classes,
      and a column of measurements.
  """
  kind, name, rows = _kind(column), column.name, len(column)
  gone = column.isna().to_numpy()
  if kind in _NUMBERS:
    gone = ~np.isfinite(_numbers(column))
  if gone.any():
    raise ValueError(
        f'Label column {name!r}: {gone.mean():.1%} of its values are missing'
        f' ({gone.sum()} of {rows} rows). Every row needs a label.'
    )
  values = _numbers(column) if kind in _NUMBERS else column.astype(str)
  order, index = np.unique(np.asarray(values), return_inverse=True)
  if kind in _NUMBERS:
    if (order == np.round(order)).all():
      order = order.astype(np.int64)
    elif len(order) > 20:
      raise ValueError(
          f'Label column {name!r} has {len(order)} different fractional'
          ' numbers: it is a measurement, not a class.'
      )
  classes = tuple(map(str, order))
  index = index.astype(np.int32)
  if positive:
    if len(classes) != 2 or positive not in classes:
      raise ValueError(
          f'positive={positive!r}: the classes in {name!r} are'
          f' {listing(classes)}; a positive class is one of two.'
      )
    if positive == classes[0]:
      return 1 - index, classes[::-1]
  return index, classes


def features(
    frame: 'pd.DataFrame', missing: str = 'refuse', categories: int = 100
) -> tuple[np.ndarray, tuple[str, ...], tuple[int, ...]]:
  """(float32 [n, columns], names, groups) of every column of a frame.

  Numbers keep their NaNs with missing='impute': `table.impute` fills them.

  Raises:
    ValueError: as `csv`, for the columns.
  """
  gaps = frame.isna().sum()
  gaps = gaps[gaps > 0]
  if len(gaps) and missing != 'impute':
    parts = (f'{name!r} in {count}' for name, count in gaps.items())
    raise ValueError(
        f'Missing values: {listing(parts)} of {len(frame)} rows.'
        " missing='impute' fills them; drop leaves columns out."
    )
  columns, names, groups = [], [], []
  for group, name in enumerate(frame.columns):
    for new, values in _expand(_column(frame, name), categories):
      columns.append(values)
      names.append(new)
      groups.append(group)
  with np.errstate(over='ignore'):  # An infinity is refused later, by name.
    x = np.array(columns, np.float64).astype(np.float32)
  x = np.ascontiguousarray(x.T) if columns else np.zeros((len(frame), 0), 'f4')
  return x, tuple(names), tuple(groups)


def _expand(column: 'pd.Series', most: int) -> list[tuple[str, np.ndarray]]:
  """The (name, values) of the numeric columns that stand for one column."""
  import pandas as pd

  kind, name = _kind(column), column.name
  if column.isna().all():
    raise ValueError(f'Column {name!r} has no value at all; drop it.')
  if kind in _NUMBERS:
    return [(str(name), _numbers(column))]
  if kind == 'boolean' and not column.isna().any():
    return [(str(name), column.to_numpy(np.float64))]
  if kind not in (*_TEXT, 'boolean'):
    raise ValueError(
        f'Column {name!r} has values of kind {kind}; numbers, booleans and text'
        ' are understood. Convert or drop it.'
    )
  text = np.array([_BLANK if pd.isna(v) else str(v) for v in column], object)
  values = sorted(set(text))
  if len(values) > most:
    raise ValueError(
        f'Text column {name!r} has {len(values)} different values, more than'
        f' {most}: drop it, or raise the limit (categories).'
    )
  return [(f'{name}={v}', (text == v).astype(np.float64)) for v in values]


def _column(frame: 'pd.DataFrame', name: str) -> 'pd.Series':
  """`frame[name]`, which pandas types as a column or a frame of namesakes."""
  return frame.iloc[:, list(frame.columns).index(name)]


def _kind(column: 'pd.Series') -> str:
  import pandas as pd

  return pd.api.types.infer_dtype(column, skipna=True)


def _numbers(column: 'pd.Series') -> np.ndarray:
  return column.to_numpy(dtype=np.float64, na_value=np.nan)


def _require(frame: 'pd.DataFrame', name: str) -> None:
  if name in frame.columns:
    return
  lower = {c.lower(): c for c in frame.columns}
  close = difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.7)
  if close:
    hint = f'did you mean {" or ".join(repr(lower[c]) for c in close)}?'
  else:
    hint = f'the columns are {listing(frame.columns, 10)}.'
  raise ValueError(f'There is no column {name!r}; {hint}')


CSV = Source(csv, 'any', HOW, OWN, own=True)
PARQUET = Source(parquet, 'any', HOW, OWN, own=True)
