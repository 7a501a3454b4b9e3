"""Reads text cells of a CSV: numbers with separators, gaps, alike spellings.

A column of text is read as numbers if each cell is a number in some spelling,
or a gap. If two readings are possible, nothing is guessed and the user must set
an option: for '1,244', but not for '1,244.50'.
"""
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from vfljax.data import thousands
from vfljax.data.files import brief
from vfljax.data.options import flag
from vfljax.data.table import bare, listing

if TYPE_CHECKING:
  import pandas as pd

# Words that mean a gap in a column of numbers, however frequent they are.
_GAPS = frozenset((
    '?', '??', '-', '--', '.', '..', '*', 'na', 'n.a.', 'n.a', 'n/a', 'nan',
    'nil', 'null', 'none', 'missing', 'unknown', '#n/a', '#na', '#div/0!',
    '#value!', '#ref!', '#num!', '#null!', '#name?',
))
# Words that pandas reads as gaps, but not if blanks surround them.
_EMPTY = frozenset(('', 'NA', 'N/A', 'n/a', 'NaN', 'nan', 'NULL', 'null',
                    'None', '<NA>', '#N/A', '#NA'))
# 2024-05-31, 31.5.24, 5/31/2024, 20240531T10:00; what follows may be a time.
_DATE = re.compile(
    r'(\d{4}([-/.])\d{1,2}\2\d{1,2}|\d{1,2}([-/.])\d{1,2}\3(\d{4}|\d\d))(?!\d)'
    r'|\d{8}T\d'
)
# 12%, $1,200.50, -3 €: a measurement, which as a category has no order.
_SIGN = r'[%‰$€£¥₹]'
_SIGNED = re.compile(
    rf'[+-]?\s?({_SIGN}\s?[+-]?\d[\d ,.\'’]*|\d[\d ,.\'’]*\s?{_SIGN})'
)
_FEW = 0.1  # Up to this share, cells that are no numbers count as mistakes.
_LOOKED_AT = 1000  # Cells that decide whether a column may be numbers.
_BETWEEN = " ,.'’\u00a0\u202f"  # Marks between thousands.
_NUMBER = r"[+-]?[\d ,.'’\u00a0\u202f]*\d(?:[eE][+-]?\d+)?"  # Written somehow.


def read(column: 'pd.Series', decimal: str, said: bool) -> 'pd.Series':
  """A column of text as numbers if all its cells are numbers; else unchanged.

  Args:
    column: A column that `emptied` returned.
    decimal: The decimal mark, '.' or ','.
    said: Whether the user set it; else it is only likely.

  Raises:
    ValueError: (one line) for numbers with two readings, and for numbers with a
      word that may mean a gap. It names the option that decides.
  """
  cells: Any = column.dropna()
  some = {cell.strip() for cell in cells.head(_LOOKED_AT).astype(str)}
  words = {cell for cell in some if not cell[-1:].isdigit()}
  if len(words) == len(some):
    return column
  # Word processors and web pages write a minus sign of its own.
  cells = cells.astype(str).str.strip().str.replace('\u2212', '-')
  if words:
    _refuse_gaps(column, cells)
    return column
  plain = rf'[+-]?(?:\d+(?:{re.escape(decimal)}\d*)?|{re.escape(decimal)}\d+)'
  plain += r'(?:[eE][+-]?\d+)?'
  for between in _BETWEEN.replace(decimal, ''):
    grouped = rf'[+-]?[1-9]\d{{0,2}}(?:{re.escape(between)}\d{{3}})+'
    whole = rf'{plain}|{grouped}(?:{re.escape(decimal)}\d+)?'
    if cells.str.fullmatch(whole).all():
      parted = cells.str.contains(between, regex=False)
      if between == ',' and not said and parted.any():
        _refuse_either(column, cells, cells[parted])
      return _numbers(column, cells, between, decimal)
  if decimal == '.':
    _refuse_decimal_commas(column, cells)
    if not said:
      thousands.refuse(column, cells)
  return column


def emptied(column: 'pd.Series', gaps: Collection[str]) -> 'pd.Series':
  """The column with gaps in place of blank cells and words for gaps.

  Args:
    column: The column as pandas read it, of kind 'string'.
    gaps: Words that mean a gap, besides those that do in any file.
  """
  import pandas as pd

  empty = _EMPTY | frozenset(gaps)
  index, words = pd.factorize(column)  # Different words are fewer than cells.
  gone = np.array([word.strip() in empty for word in words] + [False])
  return column.mask(gone[index]) if gone.any() else column


def refuse_stray(column: 'pd.Series') -> None:
  """Refuses a column of numbers with a few cells that are no numbers.

  Raises:
    ValueError: names the first of them and its row, from 1.
  """
  import pandas as pd

  if isinstance(column.dtype, pd.CategoricalDtype):
    return  # The user declared its numbers to be names.
  there = column.notna().to_numpy()
  if pd.api.types.infer_dtype(column, skipna=True) == 'string':
    index, words = pd.factorize(column)  # Different words are fewer than cells.
    parsed: Any = pd.to_numeric(pd.Series(words), errors='coerce')
    number = np.append(parsed.notna().to_numpy(), False)[index]
  else:
    parsed = pd.to_numeric(column, errors='coerce')
    number = parsed.notna().to_numpy()
  stray = np.flatnonzero(there & ~number)
  if 0 < len(stray) <= _FEW * there.sum():
    raise ValueError(
        f'Column {column.name!r} has numbers, except in {len(stray)} of'
        f' {there.sum()} cells; the first is'
        f' {brief(column.iloc[stray[0]], 30)} in row {stray[0] + 1}. Correct'
        f' the data, drop the column, {flag(drop=str(column.name))}, or make'
        f' every value a category, {flag(text=str(column.name))}'
    )


def refuse_alike(what: str, name: object, words: Iterable[str]) -> None:
  """Refuses words that differ only in capitals or in blanks around them.

  Args:
    what: The start of the message: 'Label column'.
    name: The column's name.
    words: Its different values.

  Raises:
    ValueError: (one line) with the option that keeps them apart.
  """
  words = [*words]
  like = lambda word: bare(word).casefold()
  count = Counter(map(like, words))
  alike = sorted(
      (word for word in words if count[like(word)] > 1),
      key=lambda word: (like(word), word),
  )
  if alike:
    raise ValueError(
        f'{what} {name!r} has values that differ only in capitals or blanks:'
        f' {listing(map(repr, alike))}. Use one spelling in the data; or, if'
        f' they are different, {flag(text=str(name))}'
    )


def refuse_dates(name: str, values: Sequence[str]) -> None:
  """Refuses text that is a date, or a date and a time, in every row.

  Args:
    name: The column's name.
    values: Its different values, at least one.

  Raises:
    ValueError: (one line) with what to write instead.
  """
  if all(map(_DATE.match, values)):
    raise ValueError(
        f'Column {name!r} has dates, like {brief(values[-1], 30)}. Write them'
        ' as numbers, such as days since the first, or drop the column:'
        f' {flag(drop=name)}; if each is a category,'
        f' {flag(text=name, categories=str(max(len(values), 100)))}'
    )


def refuse_signs(name: str, values: Sequence[str]) -> None:
  """Refuses text that is a number with a percent or currency sign in every row.

  Args:
    name: The column's name.
    values: Its different values, without gaps.

  Raises:
    ValueError: (one line) with what to write instead.
  """
  if values and all(_SIGNED.fullmatch(value.strip()) for value in values):
    raise ValueError(
        f'Column {name!r} has numbers with a sign, like'
        f' {brief(values[-1], 30)}. Write them without it, as'
        " pd.to_numeric(column.str.strip('%$€ ')) does; if each is a category,"
        f' {flag(text=name)}'
    )


def _numbers(
    column: 'pd.Series', cells: Any, between: str, decimal: str
) -> 'pd.Series':
  """The cells as numbers, on the column's rows."""
  import pandas as pd

  cells = cells.str.replace(between, '', regex=False)
  numbers: Any = pd.to_numeric(cells.str.replace(decimal, '.', regex=False))
  return numbers.reindex(column.index).rename(column.name)


def _refuse_gaps(column: 'pd.Series', cells: Any) -> None:
  """Refuses a column of numbers and words if all words may be gaps."""
  number = cells.str.fullmatch(_NUMBER)
  words = cells[~number]
  if number.any() and words.str.casefold().isin(_GAPS).all():
    found = [*words.unique()]
    name = str(column.name)
    raise ValueError(
        f'Column {name!r} has numbers, and {listing(map(repr, found))} in'
        f' {len(words)} of {len(column)} cells. If that means a missing value,'
        f' type {flag(gaps=found)}; if every value is a category,'
        f' {flag(text=name)}'
    )


def _refuse_either(
    column: 'pd.Series', cells: Any, parted: Any
) -> None:
  """Refuses numbers whose comma may separate thousands or be a decimal comma.

  Two commas in a number, or a point anywhere in the column, leave no doubt.
  """
  if not (cells.str.contains('.', regex=False).any()
          or (parted.str.count(',') > 1).any()):
    name = str(column.name)
    raise ValueError(
        f'Column {name!r} has numbers with a comma, like'
        f' {brief(parted.iloc[0], 30)}. If it separates thousands, type'
        f' {flag(decimal="point")}; if it is a decimal comma,'
        f' {flag(decimal="comma")}; if every value is a category,'
        f' {flag(text=name)}'
    )


def _refuse_decimal_commas(column: 'pd.Series', cells: Any) -> None:
  """Refuses numbers with a decimal comma, which need an option."""
  number = r"[+-]?(?:\d+|[1-9]\d{0,2}(?:[. '’\u00a0\u202f]\d{3})+)(?:,\d+)?"
  found = cells[cells.str.contains(',', regex=False)]
  if len(found) and cells.str.fullmatch(number).all():
    name = str(column.name)
    raise ValueError(
        f'Column {name!r} has numbers with a decimal comma, like'
        f' {brief(found.iloc[0], 30)}: read them with'
        f' {flag(decimal="comma")}, or keep each as a category with'
        f' {flag(text=name)}'
    )
