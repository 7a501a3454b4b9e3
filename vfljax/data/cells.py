"""Reads a CSV or Parquet file as a data frame, its numbers as numbers."""
from collections.abc import Sequence
import pathlib
import re
from typing import TYPE_CHECKING, Any, NamedTuple
import warnings

from vfljax.data import namesakes, spelling, thousands
from vfljax.data.columns import NUMBERS, column_of, kind_of
from vfljax.data.dialect import FILTERS, Dialect, dialect
from vfljax.data.files import at, find, fits, reading
from vfljax.data.options import Names, flag, several
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

_MANY = 100  # With so many rows a column does not count them by chance.
_LONGER = re.compile(r'Expected (\d+) fields in line (\d+), saw (\d+)')


class Written(NamedTuple):
  """How a CSV file is written: options of `frame.csv`."""

  sep: str = ''
  decimal: str = ''
  encoding: str = ''
  gaps: Names = ''


def csv(
    path: str, label: str, drop: Names, text: Names, rounded: Names,
    how: Written, ids: str,
) -> 'pd.DataFrame':
  """What a CSV file has, its numbers as numbers; arguments as in `frame.csv`.

  Columns that are named, the label's too, need not be there. The column `ids`,
  if it is not '', stays text as it is written; blanks around its name count.

  Raises:
    FileNotFoundError, ValueError: as `frame.csv`, for what concerns reading.
  """
  with extra():
    import pandas as pd
    del pd  # Only checks that it is installed; functions below import it.

  file = find(path, '', _how(path))
  fits(file.stat().st_size, str(file))
  sought = label or ids  # A passive party's file has no label.
  way = dialect(file, sought, how.sep, how.decimal, how.encoding)
  words = [*several(text), *filter(None, [ids])]
  meant = [*several(drop), *words, *several(rounded)]
  namesakes.refuse_twice(_header(file, way), label, meant)
  frame = _frame(file, way, words, several(how.gaps))
  _refuse_shape(frame, file, way, sought, meant)
  kept = [name for name in frame.columns if name not in several(drop)]
  for name in kept:
    frame[name] = _spelled(
        column_of(frame, name), way, name in words, how.gaps,
        bool(how.decimal),
    )
  if not how.decimal:
    thousands.refuse_file(
        frame.filter(kept), file, way,
        lambda column: spelling.emptied(column, several(how.gaps)),
    )
  return frame


def parquet(path: str, gaps: Names = '') -> 'pd.DataFrame':
  """What a Parquet file has; an index that pandas stored is a column again.

  Args:
    path: The file.
    gaps: Words, or numbers, that stand for a missing value.
  """
  with extra():
    import pandas as pd
    from pyarrow import parquet as arrow  # pandas reads Parquet with it.

  file = find(path, '', _how(path))
  with reading(file, 'cannot be read as Parquet'):
    about = arrow.read_metadata(file)
    # A few bytes can stand for any number of equal cells.
    fits(8 * about.num_rows * about.num_columns, 'The cells that it declares')
    frame = pd.read_parquet(file, engine='pyarrow')
  kept = [name for name in frame.index.names if name is not None]
  frame = frame.reset_index(kept, allow_duplicates=True)
  return _without(frame, several(gaps)) if several(gaps) else frame


def _without(frame: 'pd.DataFrame', gaps: Sequence[str]) -> 'pd.DataFrame':
  """The frame with gaps in place of what stands for a missing value."""
  import pandas as pd

  numbers: Any = pd.to_numeric(pd.Series(gaps), errors='coerce')
  columns = [frame.iloc[:, :0]]
  for _, column in frame.items():
    kind = kind_of(column)
    if kind == 'string':
      gone = column.str.strip().isin(gaps)
    elif kind in NUMBERS:
      gone = column.isin(numbers.dropna())
    else:
      gone = column.isin([*gaps] if kind == 'categorical' else [])
    if gone.any() and kind == 'integer':  # With gaps pandas makes them floats.
      column = column.convert_dtypes()
    columns.append(column.mask(gone) if gone.any() else column)
  return pd.concat(columns, axis=1)


def _spelled(
    column: 'pd.Series', way: Dialect, text: bool, gaps: Names, said: bool
) -> 'pd.Series':
  """A column of text as numbers, if all its cells are, and it may not stay."""
  if kind_of(column) != 'string':
    return column
  column = spelling.emptied(column, several(gaps))
  return column if text else spelling.read(column, way.decimal, said)


def _type_sep(way: Dialect) -> str:
  other = flag(sep='comma' if way.sep == ';' else 'semicolon')
  return (
      f'If the separator is another one, type it, as in {other}; the first line'
      ' must be the header'
  )


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
        f'{file} has a single column when split at {way.sep!r}.'
        f' {_type_sep(way)}'
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
    with FILTERS, warnings.catch_warnings():
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
          f' header. {_type_sep(way)}'
      ) from error
    if longer := _LONGER.search(str(error)):
      fewer, line, more = longer.groups()
      raise ValueError(
          f'{file}: split at {way.sep!r}, line {line} has {more} fields and a'
          f' line above it {fewer}. {_type_sep(way)}; a file of texts, `label'
          ' TAB text` in each line, is read by --config.data.name=reviews'
      ) from error
    raise


def _header(file: pathlib.Path, way: Dialect) -> list[str]:
  """The columns' names as in the file; pandas would rename equal ones."""
  import pandas as pd

  with reading(file, 'cannot be read as CSV'):
    first = pd.read_csv(
        file, sep=way.sep, encoding=way.encoding, skiprows=way.skiprows,
        header=None, nrows=1, dtype=str, index_col=False, keep_default_na=False,
    )
    return [str(name) for name in first.iloc[0]]
