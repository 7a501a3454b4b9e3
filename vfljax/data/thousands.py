"""Points that may separate thousands: 1.100 beside 950 may be 1100."""
from collections.abc import Callable
import pathlib
from typing import Any, TYPE_CHECKING

from vfljax.data.dialect import Dialect
from vfljax.data.files import brief
from vfljax.data.options import flag

if TYPE_CHECKING:
  import pandas as pd

_LOOKED_AT = 10_000  # In these rows most columns have another number.
_GROUPED = r'[+-]?(?:\d{1,3}|[1-9]\d{0,2}(?:\.\d{3})+)'


def refuse_file(
    frame: 'pd.DataFrame', file: pathlib.Path, way: Dialect,
    emptied: Callable[['pd.Series'], 'pd.Series'],
) -> None:
  """Refuses a CSV file whose numbers may have points between thousands.

  Only where semicolons part cells, as a comma often is the decimal mark there,
  and no number says that a point is: 2.5 anywhere in the file.

  Args:
    frame: What was read of it, with decimal points.
    file: The file.
    way: How it was read.
    emptied: Puts gaps in place of blank cells, and of words for gaps.

  Raises:
    ValueError: (one line) names the options that decide.
  """
  import pandas as pd

  columns = [*frame.select_dtypes('floating').columns]
  if way.sep != ';' or not columns:
    return
  # A sorted file has its points at one end: what may be so far is read to it.
  for rows in (_LOOKED_AT, None):
    written: Any = pd.read_csv(
        file, index_col=False, dtype=str, usecols=columns, nrows=rows,
        **way._asdict(),
    )
    cells = {name: _cells(written[name], emptied) for name in columns}
    if any(map(_have_decimals, cells.values())):
      return
    columns = [
        name for name in columns if cells[name].str.fullmatch(_GROUPED).all()
    ]
    if not columns:
      return
  for name in columns:
    refuse(written[name], cells[name])


def _cells(column: Any, emptied: Callable[[Any], Any]) -> Any:
  """Its different numbers as written, with an ordinary minus sign."""
  some = emptied(column.drop_duplicates()).dropna()  # Fewer than cells.
  return some.str.strip().str.replace('\u2212', '-')


def _have_decimals(cells: Any) -> bool:
  """Whether a point cannot separate thousands in one of them."""
  return bool((
      cells.str.contains('.', regex=False) & ~cells.str.fullmatch(_GROUPED)
  ).any())


def refuse(column: 'pd.Series', cells: Any) -> None:
  """Refuses numbers whose points may separate thousands.

  Each point has three digits after it and no leading zero, and a cell has two
  points, or none. If all cells have one, as 1.100 and 2.500, points are decimal
  ones.

  Args:
    column: Of which the name is told.
    cells: Its cells as they are written, without gaps.

  Raises:
    ValueError: (one line) names the options that decide.
  """
  found = cells[cells.str.contains('.', regex=False)]
  if len(found) and cells.str.fullmatch(_GROUPED).all() and (
      len(found) < len(cells) or (found.str.count(r'\.') > 1).any()
  ):
    name = str(column.name)
    raise ValueError(
        f'Column {name!r} has numbers with a point, like'
        f' {brief(found.iloc[0], 30)}, that may separate thousands. If so, type'
        f' {flag(decimal="comma")}; if it is a decimal point,'
        f' {flag(decimal="point")}; if every value is a category,'
        f' {flag(text=name)}'
    )
