"""Tables and sentences that fit the width of a terminal."""
from collections.abc import Sequence
import io
import shutil
import textwrap

from vfljax.report.tables import Table
from vfljax.report.text import printable

WIDEST = 110  # Columns; longer lines are hard to read.
NARROWEST = 40
_GAP = 2  # Between columns.
_SHORT = 8  # Words up to so long are kept whole, if numbers can be.
_LEAST = 2  # Letters in a line of a cell; with less nobody can read it.


def width() -> int:
  """The number of columns to write in."""
  columns = shutil.get_terminal_size((100, 24)).columns
  return max(min(columns, WIDEST), NARROWEST)


def paragraphs(sentences: Sequence[str], columns: int = 0) -> str:
  """A paragraph for each sentence."""
  return '\n'.join(
      textwrap.fill(printable(s), columns or width(), break_on_hyphens=False)
      for s in sentences
  )


def table(t: Table, columns: int = 0) -> str:
  """A table at most as wide as the terminal; long cells take several lines.

  Of a table with too many columns there is only the title, and that it has.
  """
  from rich import box
  from rich.console import Console
  from rich.table import Table as Grid
  from rich.text import Text

  columns, title = columns or width(), printable(t.title)
  if len(t.columns) * (_LEAST + _GAP) > columns + _GAP:
    many = f'{len(t.columns)} columns, too many for lines of {columns}'
    return f'{title}: {many} characters.'
  grid = Grid(
      box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0),
      show_edge=False,
  )
  # An interval stays on one line.
  rows = [
      [printable(cell.text).replace(' ± ', '±') for cell in row]
      for row in t.rows
  ]
  cells = [
      [printable(name), *(row[i] for row in rows)]
      for i, name in enumerate(t.columns)
  ]
  for column, own in zip(cells, _widths(cells, columns)):
    grid.add_column(Text(column[0]), overflow='fold', width=own)
  for row in rows:
    grid.add_row(*map(Text, row))
  target = io.StringIO()
  console = Console(
      file=target, width=columns + _GAP, color_system=None,
      force_terminal=False, force_jupyter=False, legacy_windows=False,
  )
  console.print(grid)
  lines = [line.rstrip() for line in target.getvalue().splitlines()]
  return '\n'.join([title, *lines]).rstrip()


def _widths(cells: Sequence[Sequence[str]], columns: int) -> list[int]:
  """Each column's width. Where there is little room, cells take several lines.

  First the widest are broken between words, then within words, the longest
  first, and numbers only after these are short.

  Args:
    cells: Each column's header and cells.
    columns: The terminal's width.
  """
  room = columns - _GAP * (len(cells) - 1)
  widths = [max(map(len, column)) or 1 for column in cells]
  whole = [
      max((len(word) for cell in column for word in cell.split()), default=1)
      for column in cells
  ]
  words = [
      any(c.isalpha() for cell in column[1:] for c in cell) for column in cells
  ]
  while sum(widths) > room and max(widths) > 1:
    everyone = range(len(cells))
    wide = (
        [i for i in everyone if widths[i] > whole[i]]
        or [i for i in everyone if words[i] and widths[i] > _SHORT]
        or everyone
    )
    widths[max(wide, key=lambda i: widths[i])] -= 1
  return widths
