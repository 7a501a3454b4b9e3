"""What is measured in each epoch, written down while a run goes on.

A unit's means over its seeds go to each of the sinks, as soon as its epochs are
played: lines of JSON always (`epoch_lines`), TensorBoard's event files if
somebody asks for them (`epoch_events`). A job in progress is written anew from
its checkpoint and a finished unit from its curves, so that whatever stopped a
run, no epoch stands there twice and none is missing.
"""
from collections.abc import Iterable, Mapping, Sequence
import contextlib
from pathlib import Path
from typing import Any, Protocol, Self

from vfljax.runner.experiment.jobs import Job
from vfljax.runner.machine import disk
from vfljax.runner.workdir import parts, record
from vfljax.runner.workdir.epoch_events import Events
from vfljax.runner.workdir.epoch_lines import Lines
from vfljax.runner.workdir.epoch_points import Point, points
from vfljax.runner.workdir.parts import Damaged


class Sink(Protocol):
  """Where points go. `who` says whose they are: unit, defense, strength."""

  def finished(self, who: Mapping, points: Sequence[Point]) -> None:
    """A unit was done before; these are all of its points."""

  def begin(self, who: Mapping, points: Sequence[Point]) -> None:
    """A unit begins, or goes on from a checkpoint that has these points."""

  def add(self, who: Mapping, points: Sequence[Point]) -> None:
    """More of a unit that has begun."""

  def close(self) -> None:
    """No unit that has begun gets any more."""


class EpochLog:
  """Tells all sinks of a work directory; a context manager."""

  def __init__(self, place: Path, tensorboard: bool = False):
    """For the work directory `place`."""
    self._place = place
    self._sinks: list[Sink] = [Lines(place)]
    self._sinks += [Events(place)] if tensorboard else []

  def __enter__(self) -> Self:
    return self

  def __exit__(self, kind, error, trace) -> None:
    self.close()

  def close(self) -> None:
    """The job in progress is over.

    Raises:
      UserError: if the disk does not take what is left of it.
    """
    with disk.writing(self._place):
      for sink in self._sinks:
        sink.close()

  def finished(self, jobs: Iterable[Job]) -> None:
    """These were done before; what is missing of them is written.

    Raises:
      UserError: if the disk does not take it.
    """
    for job in jobs:
      for i, unit in enumerate(job.units):
        # Who has damaged it since the start hears of it elsewhere.
        with contextlib.suppress(Damaged), disk.writing(self._place):
          found = points(parts.curves(self._place, unit))
          for sink in self._sinks:
            sink.finished(_who(job, i), found)

  def begin(self, job: Job, history: Mapping, done: int) -> None:
    """A job begins after `done` epochs, which a checkpoint has.

    Raises:
      UserError: if the disk does not take it.
    """
    self._tell('begin', job, history, (0, done))

  def add(
      self, job: Job, history: Mapping, first: int, end: int
  ) -> None:
    """A job has played the epochs from `first` to before `end`.

    Raises:
      UserError: if the disk does not take it.
    """
    self._tell('add', job, history, (first, end))

  def _tell(self, what: str, job: Job, history: Any, span: tuple[int, int]):
    for i in range(len(job.units)):
      here = slice(i * len(job.seeds), (i + 1) * len(job.seeds))
      curves = record.curves(history, here)
      found = points({k: x[:, : span[1]] for k, x in curves.items()}, span[0])
      with disk.writing(self._place):
        for sink in self._sinks:
          getattr(sink, what)(_who(job, i), found)


def _who(job: Job, i: int) -> dict[str, Any]:
  return dict(
      unit=job.units[i], defense=job.labels[i], strength=job.strengths[i]
  )
