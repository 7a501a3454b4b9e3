"""Ids of the parties' rows: which rows all parties have.

Ids are compared as they are written. Often one system writes 00123 or 123.0 and
another one 123; rows that are lost for that alone are told of.
"""
from collections.abc import Iterator, Sequence
import contextlib
import re
from typing import TYPE_CHECKING, Any
import warnings

import numpy as np

from vfljax.data.columns import column_of, kind_of, numbers
from vfljax.data.dialect import Recognised
from vfljax.data.files import brief

if TYPE_CHECKING:
  import pandas as pd

# What one system writes and another does not, besides case and leading zeros.
_AS_FLOAT = re.compile(r'\.0+$')
_BETWEEN = re.compile(r'(?<=\d)[\s\-_./]+(?=\d)')  # 39-23 is not 3-923.
_SIGN = re.compile(r'^-(?=\d)')
_OWN = re.compile(r'[\s\-_./]')
# A row that a message names, outside of the cells that it quotes.
_ROW = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(?<=\bin )row (\d+)(?=\. )"""
    r"""|(?<=, )row (\d+)(?=: )"""
)


@contextlib.contextmanager
def named(name: str) -> Iterator[None]:
  """A context where errors say of which table they are."""
  try:
    yield
  except ValueError as error:
    if name in str(error):
      raise
    raise ValueError(f'{name}: {error}') from error


@contextlib.contextmanager
def rows_named(ids: 'pd.Index') -> Iterator[None]:
  """A context where errors name rows by their ids.

  Rows of a joined table have other numbers in the files.

  Args:
    ids: Of the joined table's rows.
  """
  def by_id(found: re.Match) -> str:
    row = int(found[1] or found[2] or 0)
    known = 1 <= row <= len(ids)
    return f'the row of id {brief(ids[row - 1])}' if known else found[0]

  try:
    yield
  except ValueError as error:
    said = _ROW.sub(by_id, str(error))
    if said == str(error):
      raise
    raise ValueError(said) from error


def by_id(one: 'pd.DataFrame', ids: str, name: str) -> 'pd.DataFrame':
  """The table with its ids as index, as text.

  Raises:
    ValueError: if an id is missing, or there twice.
  """
  column: Any = column_of(one, ids)
  if column.isna().any():
    row = int(column.isna().to_numpy().argmax()) + 1
    raise ValueError(f'{name}: row {row} has no id in {ids!r}.')
  if kind_of(column) in ('floating', 'mixed-integer-float'):
    with named(name):
      column = _whole(column)
  text = column.astype(str).str.strip()
  if len(double := text[text.duplicated()]):
    raise ValueError(
        f'{name}: {len(double)} of {len(text)} rows have the id of another '
        f'one, as {brief(double.iloc[0])} in {ids!r}. Keep one row of each.'
    )
  return one.set_axis(text.to_numpy(), axis=0)


def _whole(column: 'pd.Series') -> Any:
  """Ids as whole numbers, of floats as pandas has them beside a gap.

  Raises:
    ValueError: if one has a fraction, or is so large that another id may have
      been rounded to it.
  """
  import pandas as pd

  values = numbers(column)
  if (values != np.round(values)).any() or not np.isfinite(values).all():
    raise ValueError(f'{column.name!r} has fractions, which are no ids.')
  bits = {2: 11, 4: 24}.get(getattr(column.dtype, 'itemsize', 8), 53)
  if (abs(values) >= 2**bits).any():
    raise ValueError(
        f'{column.name!r} has floats, like {abs(values).max():g}, to which '
        "other ids may have been rounded: read it as text or 'Int64'."
    )
  return pd.Series(values.astype(np.int64))


def in_all(
    indexes: 'Sequence[pd.Index]', names: Sequence[str]
) -> 'pd.Index':
  """The ids that all tables have, in the order of the first.

  Args:
    indexes: Each table's ids, as text and each once.
    names: What messages call the tables.

  Raises:
    ValueError: if no id is in all of them.

  Warns:
    Recognised: (one line) if some rows are not in all, and how many more would
      be if ids were written alike.
  """
  common = indexes[0]
  for one in indexes[1:]:
    common = common[common.isin(one)]
  sizes = ', '.join(map('{} in {}'.format, map(len, indexes), names))
  lost = [one[~one.isin(common)] for one in indexes]
  near = _nearly(lost, common)
  if not len(common):
    first = ', '.join(brief(one[0]) for one in indexes if len(one))
    raise ValueError(
        f'No id is in all tables ({sizes}). Are they written alike? The first '
        f'ones are {first}.{near}'
    )
  if any(map(len, lost)):
    warnings.warn(
        f'{len(common)} rows are in all tables, and used ({sizes}).{near}',
        Recognised, stacklevel=3,
    )
  return common


def _nearly(lost: 'Sequence[pd.Index]', common: 'pd.Index') -> str:
  """What is said of ids that are in all tables, but for how they are written.

  Args:
    lost: Each table's other ids.
    common: Those that all tables have.
  """
  if not all(map(len, lost)):
    return ''
  # Of ids that are plainly one, the first stands there, and last in the dict.
  rows = [one.tolist()[::-1] for one in lost]
  plain = [dict(zip(_plain(one), one)) for one in rows]
  taken = {'', *_plain(common.tolist())}
  alike = [
      id_ for id_ in plain[0]
      if id_ not in taken and all(id_ in one for one in plain[1:])
  ]
  if not alike:
    return ''
  written = [one[alike[-1]] for one in plain]
  shown = ' and '.join(brief(id_) for id_ in dict.fromkeys(written))
  return (
      f' {len(alike)} more would be if ids were written alike: case, leading '
      f'zeros, .0, blanks and signs between make {shown} different ids. Write '
      'them alike in the files.'
  )


def _plain(ids: Sequence[str]) -> list[str]:
  """The ids without what systems write in their own ways."""
  found = []
  for id_ in ids:
    joined = _BETWEEN.sub('|', _SIGN.sub('~', _AS_FLOAT.sub('', id_)))
    found.append(_OWN.sub('', joined).lower().lstrip('0'))
  return found
