"""What the progress display shows, by rich: bars and durations."""
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, TextColumn
from rich.progress import Progress as Bars
from rich.table import Column
from rich.text import Text

ALL = 'all units'


class Screen(Console):
  """A console that tells its caller of a broken pipe."""

  def on_broken_pipe(self) -> None:
    """Raises the error to the caller, where Rich would exit the program."""
    raise  # The BrokenPipeError being handled.


def made(console: Console, clock: Callable[[], float]) -> Bars:
  """A line of its own for a unit, and one for all of them."""
  cut = {'no_wrap': True, 'overflow': 'ellipsis'}
  return Bars(
      TextColumn(
          '{task.description}', style='bold', markup=False,
          table_column=Column(max_width=24, **cut),
      ),
      BarColumn(bar_width=10),
      _Share(table_column=Column(no_wrap=True)),
      TextColumn(
          '{task.fields[detail]}', markup=False, table_column=Column(**cut)
      ),
      console=console, refresh_per_second=5, get_time=clock,
  )


def duration(seconds: float) -> str:
  """Seconds as '42 s', '3 min 05 s' or '2 h 07 min'."""
  whole = round(max(seconds, 0.0))
  if whole < 60:
    return f'{whole} s'
  if whole < 3600:
    return f'{whole // 60} min {whole % 60:02d} s'
  return f'{whole // 3600} h {whole % 3600 // 60:02d} min'


class _Share(ProgressColumn):
  """'12/50 epochs' for a unit and '3/25 units' for all of them."""

  def render(self, task) -> Text:
    if task.total is None:
      return Text('')
    what = 'units' if task.description == ALL else 'epochs'
    return Text(f'{task.completed:.0f}/{task.total:.0f} {what}')
