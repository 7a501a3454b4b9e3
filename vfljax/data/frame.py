"""CSV and Parquet files with a named label column, through pandas.

Numbers stay as they are, and booleans become 0 and 1. A column of text becomes
one 0/1 column for each category, in alphabetical order; a vertical split keeps
these together. Nothing is guessed: missing values, dates, identifiers with
thousands of values, numbers with a stray word among them and columns with the
same name are refused by name, unless an option says what to do.
"""
import difflib
import shlex
from typing import TYPE_CHECKING

from vfljax.data import cells, namesakes, telling
from vfljax.data.columns import column_of, features
from vfljax.data.files import brief
from vfljax.data.labels import labels
from vfljax.data.options import Names, several
from vfljax.data.source import OWN, Source
from vfljax.data.table import Table, listing

if TYPE_CHECKING:
  import pandas as pd


def csv(
    path: str = '', label: str = '', missing: str = 'refuse', sep: str = '',
    drop: Names = '', positive: str = '', categories: int = 100,
    text: Names = '', rounded: Names = '', decimal: str = '',
    encoding: str = '', gaps: Names = '',
) -> Table:
  """A CSV file with a header line.

  Args:
    path: The file, compressed or not.
    label: Name of the label column.
    missing: 'refuse' or 'impute': the median for numbers, a category of its own
      for text and booleans. A missing label is always an error.
    sep: The separator: one character that is no letter, digit or quote, or
      'comma', 'semicolon', 'tab', 'bar' or 'blanks' (one or more). '' for the
      one that splits the header into most columns, the label among them, or
      that a first line 'sep=;' names, as Excel writes it.
    drop: Names of columns to leave out, separated by commas.
    positive: In a binary task, the class that becomes 1; by default the last in
      order (numeric or alphabetical).
    categories: The most categories a text column may have, 1 to 100000.
    text: Names of columns, separated by commas, whose every value is a
      category, also if it is a number. If the label is named, its values are
      classes: up to `categories` of them, even in few rows.
    rounded: Names of columns, separated by commas, whose numbers may be rounded
      to float32 even if that makes some of them equal.
    decimal: 'point' or 'comma'; '' for a point. Marks between thousands are
      recognised: the other one of the two, a blank or an apostrophe.
    encoding: A name that Python knows. '' for UTF-8, UTF-16 with a byte order
      mark, or else latin-1, with a warning.
    gaps: Words that stand for a missing value, separated by commas, besides an
      empty cell, 'NA', 'NULL' and the like: '?,-999'.

  Raises:
    FileNotFoundError: if it is not there.
    ValueError: if it cannot be read, for a column that is refused (see the
      module), an invalid option, or a package that is not installed.

  Warns:
    Recognised: (one line) if it is read as latin-1 without the option, and for
      columns that number the rows, tell the label alone or are constant.
  """
  how = cells.Written(sep, decimal, encoding, gaps)
  found = cells.csv(path, label, drop, text, rounded, how, '')
  return table(found, label, missing, drop, positive, categories, text, rounded)


def parquet(
    path: str = '', label: str = '', missing: str = 'refuse', drop: Names = '',
    positive: str = '', categories: int = 100, text: Names = '',
    rounded: Names = '',
) -> Table:
  """A Parquet file; arguments and errors as in `csv`."""
  found = cells.parquet(path)
  return table(found, label, missing, drop, positive, categories, text, rounded)


def table(
    frame: 'pd.DataFrame', label: str, missing: str = 'refuse',
    drop: Names = '', positive: str = '', categories: int = 100,
    text: Names = '', rounded: Names = '',
) -> Table:
  """The table of a data frame; arguments and errors as in `csv`."""
  frame = frame.set_axis([str(c) for c in frame.columns], axis=1)
  dropped, words, large = several(drop), several(text), several(rounded)
  namesakes.refuse_twice(list(frame.columns), label, (*dropped, *words, *large))
  if not label:
    raise ValueError(
        'Which column is the label? Type --config.data.label=<name>; the'
        f' columns are {listing(frame.columns, 10)}.'
    )
  for name in (label, *dropped, *words, *large):
    require(frame, name, '--config.data.label' if name == label else '')
  if {label, *words, *large} & set(dropped):
    which = 'a column that text or rounded names'
    if label in dropped:
      which = 'the label'
    raise ValueError(
        f'drop names {which}: a column is one or the other; got {brief(drop)}.'
    )
  if not len(frame):
    raise ValueError('The data set has no rows.')
  y, classes = labels(
      column_of(frame, label), positive, label in words, categories
  )
  frame = frame.drop(columns=[label, *dropped])
  x, names, groups = features(frame, missing, categories, words, large)
  namesakes.refuse_label_again(frame, label, y)
  telling.warn_of_numbering(frame)
  telling.warn_of_numerals(frame, words)
  telling.warn_of_copies(frame, label, y)
  telling.warn(frame, label, y)
  return Table(x, y, names, classes, groups)


def require(frame: 'pd.DataFrame', name: str, typed: str = '') -> None:
  """Raises a ValueError, with names that are alike, if there is no column."""
  if name in frame.columns:
    return
  lower = {c.lower(): c for c in frame.columns}
  close = difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.7)
  if close:
    hint = f'did you mean {" or ".join(repr(lower[c]) for c in close)}?'
    hint += typed and f' {typed}={shlex.quote(lower[close[0]])}'
  else:
    hint = f'the columns are {listing(frame.columns, 10)}.'
  raise ValueError(f'There is no column {name!r}; {hint}')


CSV = Source(csv, 'any', cells.HOW, OWN, own=True)
PARQUET = Source(
    parquet, 'any', cells.HOW.replace('my.csv', 'my.parquet'), OWN, own=True
)
