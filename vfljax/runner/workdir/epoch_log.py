"""Writes down what is measured in each epoch while a run goes on.

A unit's means over its seeds go to all sinks as soon as its epochs are played:
always to lines of JSON (`epoch_lines`), and with `--tensorboard` to event files
(`epoch_events`). After an interruption, a job in progress is written again from
its checkpoint and a finished unit from its curves. So no epoch is there twice,
and none is missing.
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
  """A place that points go to.

  `who` has their unit, defense and strength, and which samples the utility is
  measured on.
  """

  def finished(self, who: Mapping, points: Sequence[Point]) -> None:
    """A unit was done before this start; `points` are all its points."""

  def begin(self, who: Mapping, points: Sequence[Point]) -> None:
    """A unit begins, or continues from a checkpoint with these points."""

  def add(self, who: Mapping, points: Sequence[Point]) -> None:
    """New points of a unit that has begun."""

  def close(self) -> None:
    """No more points will come for units that have begun."""


class EpochLog:
  """Sends points to all sinks of a work directory. It is a context manager."""

  def __init__(self, place: Path, tensorboard: bool = False):
    """Opens the sinks of the work directory `place`."""
    self._place = place
    self._sinks: list[Sink] = [Lines(place)]
    self._sinks += [Events(place)] if tensorboard else []

  def __enter__(self) -> Self:
    return self

  def __exit__(self, kind, error, trace) -> None:
    self.close()

  def close(self) -> None:
    """Ends the job in progress.

    Raises:
      UserError: if the rest cannot be written.
    """
    with disk.writing(self._place):
      for sink in self._sinks:
        sink.close()

  def finished(self, jobs: Iterable[Job]) -> None:
    """Writes what is missing of jobs that were done before this start.

    Raises:
      UserError: if it cannot be written.
    """
    for job in jobs:
      for i, unit in enumerate(job.units):
        # A part that was damaged since the start is reported elsewhere.
        with contextlib.suppress(Damaged), disk.writing(self._place):
          found = points(parts.curves(self._place, unit))
          for sink in self._sinks:
            sink.finished(_who(job, i), found)

  def begin(self, job: Job, history: Mapping, done: int) -> None:
    """Begins a job that has played `done` epochs, as its checkpoint says.

    Raises:
      UserError: if it cannot be written.
    """
    self._tell('begin', job, history, (0, done))

  def add(
      self, job: Job, history: Mapping, first: int, end: int
  ) -> None:
    """Adds a job's epochs from `first` up to, not including, `end`.

    Raises:
      UserError: if it cannot be written.
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
  utility = 'validation' if job.setting.sizes.validation else 'test'
  return dict(
      unit=job.units[i], defense=job.labels[i], strength=job.strengths[i],
      utility=utility,
  )
