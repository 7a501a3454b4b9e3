"""Tables and sentences that fit the width of a terminal."""
from collections.abc import Sequence
import io
import shutil
import textwrap

from vfljax.report.tables import Table
from vfljax.report.text import printable

WIDEST = 110  # Columns; longer lines are hard to read.
NARROWEST = 40


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
  """A table at most as wide as the terminal; long cells take several lines."""
  from rich import box
  from rich.console import Console
  from rich.table import Table as Grid
  from rich.text import Text

  grid = Grid(
      box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False,
  )
  # An interval stays on one line; columns of words shrink before numbers do.
  rows = [
      [printable(cell.text).replace(' ± ', '±') for cell in row]
      for row in t.rows
  ]
  for i, name in enumerate(t.columns):
    longest = max((len(row[i]) for row in rows), default=0)
    words = any(c.isalpha() for row in rows for c in row[i])
    grid.add_column(
        Text(printable(name)), overflow='fold',
        min_width=None if words else min(longest, 16),
    )
  for row in rows:
    grid.add_row(*map(Text, row))
  target = io.StringIO()
  console = Console(
      file=target, width=columns or width(), color_system=None,
      force_terminal=False, legacy_windows=False,
  )
  console.print(grid)
  lines = [line.rstrip() for line in target.getvalue().splitlines()]
  return '\n'.join([printable(t.title), *lines]).rstrip()
