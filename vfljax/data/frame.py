"""CSV and Parquet files with a named label column, through pandas.

Numbers stay as they are, and booleans become 0 and 1. A column of text becomes
one 0/1 column for each category, in alphabetical order; a vertical split keeps
these together. Nothing is guessed: missing values, dates, identifiers with
thousands of values, numbers with a stray word among them and columns with the
same name are refused by name, unless an option says what to do.
"""
from collections.abc import Sequence
import difflib
import pathlib
import re
import shlex
from typing import TYPE_CHECKING, Any
import warnings

from vfljax.data import namesakes, spelling, telling, thousands
from vfljax.data.columns import column_of, features, kind_of
from vfljax.data.dialect import Dialect, dialect
from vfljax.data.files import at, brief, find, fits, reading
from vfljax.data.labels import labels
from vfljax.data.options import Names, flag, several
from vfljax.data.source import OWN, Source
from vfljax.data.table import Table, listing
from vfljax.need import extra

if TYPE_CHECKING:
  import pandas as pd

HOW = (
    "Give the file's path and the label column's name:"
    ' --config.data.path=my.csv --config.data.label=target'
)

_IMAGES = (
    '. A folder of images is not read: save them with numpy, for'
    ' --config.data.name=npz'
)

_LONGER = re.compile(r'Expected (\d+) fields in line (\d+), saw (\d+)')
_TYPE_SEP = (
    'If the separator is another one, type it, as in'
    f' {flag(sep="semicolon")}'
)
_MANY = 100  # With so many rows a column does not count them by chance.


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
      one that splits the header into most columns, the label among them.
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
  with extra():
    import pandas as pd
    del pd  # Only checks that it is installed; functions below import it.

  file = find(path, '', _how(path))
  fits(file.stat().st_size, str(file))
  way = dialect(file, label, sep, decimal, encoding)
  meant = [n for names in (drop, text, rounded) for n in several(names)]
  namesakes.refuse_twice(_header(file, way), label, meant)
  frame = _frame(file, way, several(text), several(gaps))
  _refuse_shape(frame, file, way, label, meant)
  kept = [name for name in frame.columns if name not in several(drop)]
  for name in kept:
    frame[name] = _spelled(
        column_of(frame, name), way, name in several(text), gaps, bool(decimal)
    )
  if not decimal:
    thousands.refuse_file(frame[kept], file, way)
  return table(frame, label, missing, drop, positive, categories, text, rounded)


def _spelled(
    column: 'pd.Series', way: Dialect, text: bool, gaps: Names, said: bool
) -> 'pd.Series':
  """A column of text as numbers, if all its cells are, and it may not stay."""
  if kind_of(column) != 'string':
    return column
  column = spelling.emptied(column, several(gaps))
  return column if text else spelling.read(column, way.decimal, said)


def _how(path: str) -> str:
  """What to give in place of `path`, if it is no file."""
  return HOW + (_IMAGES if path and at(path).is_dir() else '')


def _refuse_shape(
    frame: 'pd.DataFrame', file: pathlib.Path, way: Dialect, label: str,
    meant: Sequence[str],
) -> None:
  """Refuses a file that was not split, and an unnamed column of row numbers.

  pandas and R write such a column. If rows are, or were, sorted by label, it
  would give the label away.

  Raises:
    ValueError: (one line) with the option that helps.
  """
  if label not in frame.columns and len(frame.columns) == 1:
    raise ValueError(
        f'{file} has a single column when split at {way.sep!r}. Type its'
        ' separator, as in '
        f'{flag(sep="comma" if way.sep == ";" else "semicolon")}'
    )
  for name in frame.columns:
    if name.startswith('Unnamed: ') and name not in meant:
      found = column_of(frame, name)
      if kind_of(found) != 'integer':
        continue
      if (found.diff()[1:] == 1).all():
        raise ValueError(
            f'A column without a name, {name!r}, numbers the rows. Leave it'
            f' out: {flag(drop=name)}'
        )
      if len(found) >= _MANY and found.nunique() == len(found):
        raise ValueError(
            f'A column without a name, {name!r}, has another whole number in'
            ' each row, like row numbers of a table that was shuffled. Leave it'
            f' out: {flag(drop=name)}. If it is measured, name it in the file.'
        )


def _frame(
    file: pathlib.Path, way: Dialect, words: Sequence[str],
    gaps: Sequence[str] = (),
) -> 'pd.DataFrame':
  """A file's cells; those of the columns `words` stay text.

  Raises:
    ValueError: (one line) if it is no CSV, or has rows longer than its header.
  """
  import pandas as pd

  kinds: Any = dict.fromkeys(words, str)
  try:
    with warnings.catch_warnings():
      # Without index_col, surplus first columns would become the rows' names.
      warnings.simplefilter('error', pd.errors.ParserWarning)
      with reading(file, 'cannot be read as CSV'):
        # Read in pieces, a column could be words in one and numbers in another.
        return pd.read_csv(
            file, index_col=False, low_memory=False, dtype=kinds,
            na_values=[*gaps], **way._asdict(),
        )
  except ValueError as error:
    if isinstance(error.__cause__, pd.errors.ParserWarning):
      raise ValueError(
          f'{file}: split at {way.sep!r}, rows have more fields than the'
          f' header. {_TYPE_SEP}'
      ) from error
    if longer := _LONGER.search(str(error)):
      fewer, line, more = longer.groups()
      raise ValueError(
          f'{file}: split at {way.sep!r}, line {line} has {more} fields and a'
          f' line above it {fewer}. {_TYPE_SEP}; a file of texts, `label TAB'
          ' text` in each line, is read by --config.data.name=reviews'
      ) from error
    raise


def parquet(
    path: str = '', label: str = '', missing: str = 'refuse', drop: Names = '',
    positive: str = '', categories: int = 100, text: Names = '',
    rounded: Names = '',
) -> Table:
  """A Parquet file; arguments and errors as in `csv`."""
  with extra():
    import pandas as pd
    from pyarrow import parquet as arrow  # pandas reads Parquet with it.

  file = find(path, '', _how(path))
  with reading(file, 'cannot be read as Parquet'):
    about = arrow.read_metadata(file)
    # A few bytes can stand for any number of equal cells.
    fits(8 * about.num_rows * about.num_columns, 'The cells that it declares')
    frame = pd.read_parquet(file, engine='pyarrow')
  # pandas may have stored a column as its index: make it a column again.
  kept = [name for name in frame.index.names if name is not None]
  frame = frame.reset_index(kept, allow_duplicates=True)
  return table(frame, label, missing, drop, positive, categories, text, rounded)


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
    _require(frame, name, '--config.data.label' if name == label else '')
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


def _header(file: pathlib.Path, way: Dialect) -> list[str]:
  """The columns' names as in the file; pandas would rename equal ones."""
  import pandas as pd

  with reading(file, 'cannot be read as CSV'):
    first = pd.read_csv(
        file, sep=way.sep, encoding=way.encoding, header=None, nrows=1,
        dtype=str, index_col=False, keep_default_na=False,
    )
    return [str(name) for name in first.iloc[0]]


def _require(frame: 'pd.DataFrame', name: str, typed: str) -> None:
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


CSV = Source(csv, 'any', HOW, OWN, own=True)
PARQUET = Source(
    parquet, 'any', HOW.replace('my.csv', 'my.parquet'), OWN, own=True
)
