"""Shows progress while an experiment runs.

On a terminal: one live line for the unit in progress and one bar for all of
them (rich). Elsewhere, in a log file or CI: plain lines, at most one every few
seconds, each flushed, so that `tail -f` shows where the run is. In a notebook
these become rarer, as its reader has all of them in front.
"""
import sys
import time
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Self, TextIO

from rich.console import Console
from rich.progress import TaskID

from vfljax.data.table import counted
from vfljax.runner.cli import bars
from vfljax.runner.cli.bars import duration
from vfljax.runner.machine import notebook

_RARER = 0.05  # A notebook's next line, after such a share of the time so far.
_LONG = 3  # With so many times `every` to go, the start of a unit is shown.


class Progress:
  """Live progress of an experiment's units; a context manager.

    with Progress(8, finished=3) as progress:
      progress.compiling('iso/0')
      progress.unit('iso/0', seeds=10, epochs=50, epoch=10)  # a checkpoint's
      progress.advance(12, 5300.0, 0.951)
      progress.trained()  # Its attacks begin.
      progress.finish()

  The ETA is based on the units and epochs of this run only, so that work of an
  earlier run does not make a resumed one look faster.
  """

  def __init__(
      self, units: Sequence[float] | int, finished: int = 0,
      stream: TextIO | None = None, console: Console | None = None,
      metric: str = 'utility', every: float = 3.0,
      clock: Callable[[], float] = time.monotonic,
  ):
    """Prepares a display; it starts on entering the context.

    Args:
      units: How long each of the experiment's units takes, compared with the
        others, those done before this run first; or how many units there are.
      finished: How many of them were done before this run.
      stream: Where to write; standard output by default.
      console: A rich console to use instead of one on `stream`.
      metric: What the utility is, for instance 'validation auc'.
      every: Least seconds between two plain lines; the first line, notes and
        the start of a compilation, or of a unit in a long run, do not wait.
      clock: Returns monotonic seconds.
    """
    works = [1.0] * units if isinstance(units, int) else units
    self._total = len(works)
    self._finished = min(finished, self._total)
    # The work up to the end of each unit, after a 0; work of earlier runs.
    self._work = [0.0, *accumulate(works)]
    self._spared = self._work[self._finished]
    in_a_cell = notebook.is_shown_in_a_cell()
    # There Rich would write HTML, or move a cursor that the cell has not.
    self._console = console or bars.Screen(
        file=stream or sys.stdout, force_jupyter=False,
        force_terminal=False if in_a_cell else None,
    )
    self._rarer = _RARER if in_a_cell else 0.0
    self._live = self._console.is_terminal
    self._metric, self._every, self._clock = metric, every, clock
    self._start, self._last = clock(), float('-inf')
    # Seconds spent compiling; the start of a compilation in progress.
    self._compiled = 0.0
    self._since: float | None = None
    self._name, self._seeds, self._epochs, self._units = '', 0, 0, 1
    # Epochs done: now, and when the unit in progress started.
    self._epoch, self._first, self._unit_start = 0, 0, self._start
    # Whether attacks follow training, and since when they run; the seconds that
    # those of earlier units took, and the units' work.
    self._attacked, self._trained, self._attacks = False, None, (0.0, 0.0)
    self._detail, self._told = '', False
    self._bars = bars.made(self._console, clock)
    self._task: TaskID | None = None
    self._all = self._bars.add_task(
        bars.ALL, total=self._total, completed=self._finished, detail=''
    )

  def __enter__(self) -> Self:
    if self._live:
      self._bars.start()
    else:
      done = f', {self._finished} done before' if self._finished else ''
      self._print(f'{counted(self._total, "unit")}{done}')
    return self

  def __exit__(self, kind, error, trace) -> None:
    if self._live:
      self._bars.stop()
    state = 'stopped after' if kind else 'done:'
    spent = duration(self._clock() - self._start)
    total = counted(self._total, 'unit')
    self._print(f'{state} {self._finished} of {total}, {spent}')

  def compiling(self, name: str) -> None:
    """Shows that the programs of `name` are being compiled."""
    self._since = self._clock()
    self._trained = None  # Where attacks had no memory, the unit starts again.
    self._name, self._detail = name, 'compiling ...'
    self._epoch, self._epochs, self._units, self._first = 0, 0, 1, 0
    self._renew(now=True)

  def unit(
      self, name: str, seeds: int, epochs: int, epoch: int = 0,
      attacked: bool = False, units: int = 1,
  ) -> None:
    """A unit starts, or several that run together.

    Args:
      name: The name to show, for instance a defense and its strength.
      seeds: Number of trainings that run at once.
      epochs: Number of epochs of each.
      epoch: Number of epochs that a checkpoint has already.
      attacked: Whether attacks follow its training.
      units: Number of units that `finish` will complete.
    """
    if self._since is not None:
      self._compiled += self._clock() - self._since
      self._since = None
    self._name, self._seeds, self._epochs = name, seeds, epochs
    self._epoch, self._units, self._first = epoch, units, epoch
    self._unit_start, self._attacked = self._clock(), attacked
    self._spared += self._begun()
    self._detail = counted(seeds, 'seed')
    # Else 'compiling ...' would be the last word for all of a long stride.
    self._renew(now=(self.eta() or 0.0) > _LONG * self._every)

  def advance(
      self, epoch: int, rounds_per_s: float | None = None,
      utility: float | str | None = None,
  ) -> None:
    """The unit in progress has done `epoch` epochs.

    Args:
      rounds_per_s: Rounds a second, all seeds together.
      utility: The current main metric, averaged over the seeds; a text is
        shown as it is.
    """
    self._epoch = epoch
    self._tell()
    if isinstance(utility, float):
      utility = f'{self._metric} {utility:.3f}'
    speed = None if rounds_per_s is None else f'{rounds_per_s:,.0f} rounds/s'
    # In order of importance: a narrow terminal cuts off the last first.
    words = [utility, speed, counted(self._seeds, 'seed')]
    self._detail = ', '.join(word for word in words if word)
    self._show()

  def trained(self, waited: float = 0.0) -> None:
    """After a unit's last epoch its attacks begin, if any follow.

    Args:
      waited: Seconds for which their programs were waited for.
    """
    self._compiled += waited
    if not self._attacked:
      return
    self._trained = self._clock()
    self._detail = f'attacks after training, {counted(self._seeds, "seed")}'
    left = self._attacks_left()
    self._show(now=left is None or left > _LONG * self._every)

  def finish(self) -> None:
    """The unit in progress is done, and saved or about to be."""
    if self._trained is not None:
      seconds, work = self._attacks
      self._attacks = seconds + self._attacking(), work + self._own()
    self._attacked, self._trained = False, None
    self._finished = self._end()
    self._epoch = self._epochs = self._first = 0
    if self._live:
      self._hide_unit()
      self._bars.update(
          self._all, completed=self._finished, detail=self._remaining()
      )

  def note(self, text: str) -> None:
    """Prints a line that stays."""
    self._print(text)

  def eta(self) -> float | None:
    """Seconds to go, or None before any progress.

    Compilations to come are not included, as units may share programs. Attacks
    are, once a unit has had some; all units to come are taken to have them.
    """
    now = self._work[self._finished] + self._begun()
    done = now - self._spared
    if done <= 0:
      return None
    until = self._clock() if self._since is None else self._since
    seconds, work = self._attacks
    training = until - self._start - self._compiled - seconds
    pace = (training - self._attacking()) / done
    later = pace + (seconds / work if work else 0.0)
    if not self._epochs:  # Between two units.
      return later * (self._work[-1] - now)
    left = pace * (self._own() - self._begun())
    if played := self._epoch - self._first:
      # Defenses differ: what is left of this one is told by its own pace.
      left = (until - self._unit_start) / played * (self._epochs - self._epoch)
    left += self._attacks_left() or 0.0
    return left + later * (self._work[-1] - self._work[self._end()])

  def _attacks_left(self) -> float | None:
    """Seconds of the unit's attacks to go, judging by those of earlier units.

    None if attacks follow and no earlier unit had any.
    """
    seconds, work = self._attacks
    if not self._attacked or not work:
      return None if self._attacked else 0.0
    return max(seconds / work * self._own() - self._attacking(), 0.0)

  def _attacking(self) -> float:
    """Seconds for which the unit's attacks have run."""
    return 0.0 if self._trained is None else self._clock() - self._trained

  def _own(self) -> float:
    """The work of the unit in progress."""
    return self._work[self._end()] - self._work[self._finished]

  def _begun(self) -> float:
    """How much of it is done."""
    return self._own() * self._epoch / max(self._epochs, 1)

  def _end(self) -> int:
    """How many units are done after the unit in progress."""
    return min(self._finished + self._units, self._total)

  def _tell(self) -> None:
    """Prints once how long the rest takes, from the first compiled stride."""
    eta = self.eta()
    if not self._told and eta is not None:
      self._told = True
      known = self._attacks_left() is not None
      self._print(
          f'about {duration(eta)} to go, judging by the start, not compiling'
          f'{"" if known else " or attacking"}'
      )

  def _renew(self, now: bool = False) -> None:
    """Shows another unit, or the same one in another phase."""
    if self._live:
      self._hide_unit()
      self._task = self._bars.add_task(
          self._name, total=self._epochs or None, completed=self._epoch,
          detail='',
      )
    self._show(now)

  def _show(self, now: bool = False) -> None:
    if self._task is not None:
      self._bars.update(
          self._task, completed=self._epoch, detail=self._detail
      )
      self._bars.update(self._all, detail=self._remaining())
    elif now or self._clock() - self._last >= self._pause():
      self._last = self._clock()
      place = min(self._finished + 1, self._total)
      last = self._end()
      places = f'{place}-{last}' if last > place else f'{place}'
      epochs = f'epoch {self._epoch}/{self._epochs}' if self._epochs else ''
      words = [self._name, epochs, self._detail, self._remaining()]
      line = ', '.join(word for word in words if word)
      self._print(f'[{places}/{self._total}] {line}')

  def _pause(self) -> float:
    """Least seconds between two plain lines."""
    return max(self._every, self._rarer * (self._clock() - self._start))

  def _hide_unit(self) -> None:
    if self._task is not None:
      self._bars.remove_task(self._task)
      self._task = None

  def _remaining(self) -> str:
    eta, known = self.eta(), self._attacks_left() is not None
    # So it is not said to be over while its attacks take ten times as long.
    if eta is None or not known and self._trained is not None:
      return ''
    return f'ETA {duration(eta)}{"" if known else " and attacks"}'

  def _print(self, text: str) -> None:
    # Markup off: a unit's name or a path may hold brackets.
    self._console.print(text, markup=False, highlight=False, soft_wrap=True)
    self._console.file.flush()
