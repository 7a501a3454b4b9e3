"""`Table`: a data set in memory, before it is divided among parties.

Every loader returns one, and no later step (vertical splits, scaling, training)
depends on files. Data that cannot be trained on are refused here, in one line
that names the column.
"""
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# Largest and smallest spread of a column whose squares float32 can hold.
_MOST, _LEAST = 1e15, 1e-15


class Table(NamedTuple):
  """A data set.

  Attributes:
    features: float32 [n, columns], or images [n, height, width, channels] of
      uint8 (0..255) or float32.
    labels: int32 [n], 0..classes-1.
    names: A name for each column; () for images.
    classes: The classes' names, in the order of `labels`.
    groups: For each column, the index of the original column it came from. The
      one-hot columns of a categorical column have the same number, and a
      vertical split keeps them with one party. () for images.
    test: bool [n], true for rows of the official test set; `None` if the data
      set has none.
    holders: For each column, the number of the party that has it, if the data
      say so, as a file of each party does; 0 is the active party.
  """

  features: np.ndarray
  labels: np.ndarray
  names: tuple[str, ...]
  classes: tuple[str, ...]
  groups: tuple[int, ...]
  test: np.ndarray | None = None
  holders: tuple[int, ...] | None = None


def check(table: Table) -> Table:
  """Returns the table as it is, if a federation can be trained on it.

  Raises:
    ValueError: (one line) for an empty table, shapes or dtypes that disagree,
      labels outside 0..classes-1, a single class, NaN or infinite features.
  """
  _check_kinds(table)
  _check_shapes(table)
  _check_labels(table)
  _check_finite(table)
  return table


def impute(table: Table) -> Table:
  """Replaces the NaNs of each column by its median.

  Medians are taken over the training rows if there is an official test set,
  else over all rows, because no seed has drawn a split yet. In the latter case
  test rows have a small influence on them. Infinities stay; `check` refuses
  them.

  Raises:
    ValueError: if a column has only NaNs in its training rows, or the test mask
      is not a mask.
  """
  _check_kinds(table)
  _check_test(table)
  x = table.features
  if x.dtype.kind != 'f' or x.ndim != 2 or not np.isnan(x).any():
    return table
  x = x.copy()
  for column in np.flatnonzero(np.isnan(x).any(axis=0)):
    values = x[:, column]
    train = values if table.test is None else values[~table.test]
    if np.isnan(train).all():
      raise ValueError(
          f'Column {table.names[column]!r} has no values to impute from; leave'
          ' the column out.'
      )
    values[np.isnan(values)] = np.nanmedian(train)
  return table._replace(features=x)


def listing(words, most: int = 5) -> str:
  """'a, b, c and 7 more', for messages: one line, with long words cut off."""
  words = list(words)
  rest = len(words) - most
  shown = [' '.join(str(w)[:200].split()) for w in words[:most]]
  return ', '.join(shown) + (f' and {rest} more' if rest > 0 else '')


def counted(number: int, noun: str) -> str:
  """'1 seed', '2 seeds'."""
  return f'{number} {noun}' + ('' if number == 1 else 's')


def bare(name: str) -> str:
  """A column's name without blanks or a byte order mark around it."""
  return name.strip('\ufeff \t\r\n')


def few_classes(
    count: int, rows: int, what: str, most: int = 0, how: str = ''
) -> None:
  """Checks that `count` different labels in so many rows can be classes.

  Args:
    count: Number of different labels.
    rows: Number of rows.
    what: The label, for the message.
    most: Up to so many labels are accepted, because the user declared them to
      be classes.
    how: How to declare that, for the message.

  Raises:
    ValueError: if there are more than `most`, more than 20, and more than half
      of the rows.
  """
  if count > max(20, rows // 2, most):
    raise ValueError(
        f'{what} has {count} different values in {rows} rows: it seems to be a'
        f' measurement or a name of each row, not a class.'
        f'{how and f" If it is a class: {how}."}'
    )


def single(x: np.ndarray) -> np.ndarray:
  """x as float32; overflow becomes infinite, which `check` refuses by name."""
  with np.errstate(over='ignore'):
    return x.astype(np.float32)


def _check_kinds(table: Table) -> None:
  """Refuses what cannot be asked for its shape, as lists and tables are."""
  for name, dtype in (('features', 'float32'), ('labels', 'int32')):
    value = getattr(table, name)
    if isinstance(value, np.ma.MaskedArray):
      raise ValueError(
          f'{name} must have no mask, under which cells still count: type '
          'features=features.filled(np.nan) for gaps, and leave out rows '
          'without a label.'
      )
    # A column of pandas is indexed by its labels, not by the rows' places.
    if not isinstance(value, np.ndarray):
      from vfljax import check as checks  # Tables need no JAX.
      raise ValueError(
          f'{name} must be a NumPy array; got {checks.kind(value)}: type '
          f'{name}=np.asarray({name}, np.{dtype}).'
      )
  for name in ('names', 'classes', 'groups'):
    value = getattr(table, name)
    if not isinstance(value, Sequence):  # An array has no truth value.
      from vfljax import check as checks
      how = f': type {name}=tuple({name})' if hasattr(value, '__iter__') else ''
      raise ValueError(
          f'{name} must be a tuple, see vfljax.data.Table; got '
          f'{checks.kind(value)}{how}.'
      )
    if name != 'groups' and not all(isinstance(x, str) for x in value):
      raise ValueError(
          f'{name} must be texts; got {listing(map(repr, value))}: type '
          f'{name}=tuple(map(str, {name})).'
      )


def _check_shapes(table: Table) -> None:
  x, y = table.features, table.labels
  if x.ndim not in (2, 4) or y.ndim != 1:
    raise ValueError(
        'Features must be [rows, columns] or [rows, height, width, channels]'
        f' and labels [rows]; got shapes {x.shape} and {y.shape}.'
    )
  if x.dtype not in (np.float32, np.uint8) or y.dtype != np.int32:
    raise ValueError(
        'Features must be float32 (or uint8 images) and labels int32; got'
        f' {x.dtype} and {y.dtype}: type features.astype(np.float32) and '
        'labels.astype(np.int32).'
    )
  if len(x) != len(y):
    raise ValueError(f'There are {len(x)} rows of features, {len(y)} labels.')
  _check_test(table)
  if not len(x):
    raise ValueError('The data set has no rows.')
  if not x[0].size:
    raise ValueError('The data set has no feature columns.')
  columns = x.shape[1] if x.ndim == 2 else 0
  if not len(table.names) == len(table.groups) == columns:
    raise ValueError(
        f'There are {columns} columns, {len(table.names)} column names and'
        f' {len(table.groups)} groups.'
    )
  for group in table.groups:
    if isinstance(group, bool) or not isinstance(group, (int, np.integer)):
      raise ValueError(
          'groups must be whole numbers, the index of the original column for '
          f'each column; got {group!r}.'
      )
  if table.holders is not None:
    _check_holders(table.holders, table.groups)


def _check_holders(holders: tuple[int, ...], groups: tuple[int, ...]) -> None:
  """Refuses holders that are not one party for each original column."""
  found = {*holders}
  whole = all(isinstance(k, (int, np.integer)) for k in found)
  if not whole or found | {0} != {*range(max(found, default=0) + 1)}:
    raise ValueError(
        'holders must be numbers of parties, from 0, of which each but the '
        f'active one has a column; got {listing(sorted(found))}.'
    )
  if len(holders) != len(groups) or len({*zip(groups, holders)}) > len(
      {*groups}
  ):
    raise ValueError(
        'holders must have one party for each column, and the same for columns '
        'of one group.'
    )


def _check_test(table: Table) -> None:
  """Raises ValueError unless the test mask is one, or `None`."""
  test, y = table.test, table.labels
  if test is None:
    return
  array = isinstance(test, np.ndarray)
  if not array or test.dtype != np.bool_:
    kind = test.dtype if array else type(test).__name__
    raise ValueError(
        f'The test mask must be bool, true at the test rows; got {kind}: type '
        'test=np.asarray(mask, bool).'
    )
  if test.shape != y.shape:
    raise ValueError(
        f'The test mask has shape {test.shape}, the labels {y.shape}.'
    )
  if not 0 < test.sum() < max(len(y), 1):
    raise ValueError(
        f'The test mask has {test.sum()} of {len(y)} rows, which leaves none to'
        ' train or to test on. With test=None a test set is drawn.'
    )


def _check_labels(table: Table) -> None:
  y, classes = table.labels, len(table.classes)
  if y.min() < 0 or y.max() >= classes:
    raise ValueError(
        f'Labels run from {y.min()} to {y.max()}; with {classes} classes they'
        f' must lie in 0..{classes - 1}.'
    )
  if (y == y[0]).all():
    raise ValueError(
        f'All {len(y)} labels are {table.classes[y[0]]!r}: at least two classes'
        ' are needed.'
    )


def _check_finite(table: Table) -> None:
  x = table.features
  # uint8 cannot hold NaN, and a large image set is not worth a pass over it.
  if x.dtype == np.uint8:
    return
  if np.isfinite(x).all():
    _check_spread(table)
    return
  if x.ndim == 4:
    rows = (~np.isfinite(x)).any(axis=(1, 2, 3)).sum()
    raise ValueError(f'{rows} of {len(x)} images have NaN or infinite pixels.')
  bad = (~np.isfinite(x)).sum(axis=0)
  columns = (f'{table.names[i]!r} in {bad[i]}' for i in np.flatnonzero(bad))
  raise ValueError(
      f'Features that are no finite float32: {listing(columns)} of {len(x)} '
      f'rows. Correct these cells or drop the columns.'
  )


def _check_spread(table: Table) -> None:
  """Refuses columns whose variance overflows or underflows in float32.

  Scaling would turn them into zeros: squares of numbers above 1e19 are
  infinite, and squares of numbers below 1e-22 are 0.
  """
  x = table.features
  if x.ndim != 2:
    return
  spread = x.max(0).astype(float) - x.min(0)
  far = np.flatnonzero((spread > _MOST) | (spread > 0) & (spread < _LEAST))
  if len(far):
    said = (f'{table.names[i]!r} over {spread[i]:.1e}' for i in far)
    raise ValueError(
        f'Features spread too far, or too little, for float32: {listing(said)}.'
        ' Use a unit in which the spread is between '
        f'{_LEAST:g} and {_MOST:g}, correct single cells that are no'
        ' measurements, or drop the columns.'
    )
