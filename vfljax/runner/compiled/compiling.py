"""Compiles jobs' programs in threads, before they are needed."""
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
import contextlib
import time
from typing import Any, Self

import jax
import numpy as np

from vfljax import sweep
from vfljax.runner.compiled import families, fitting, streamed
from vfljax.runner.compiled.cutting import split
from vfljax.runner.compiled.families import Family
from vfljax.runner.compiled.kept import Kept
from vfljax.runner.compiled.making import Maker
from vfljax.runner.compiled.programs import Compiled, Going, Programs
from vfljax.runner.experiment import auditing
from vfljax.runner.experiment.jobs import Job
from vfljax.runner.machine import device
from vfljax.runner.machine.stopping import Stop

# Programs compiled at a time. Compiling a large network for a CPU takes
# gigabytes.
_FEWEST, _MOST_FOR_CPU, _MOST = 2, 4, 8


def at_once(cores: int, platform: str) -> int:
  """How many programs to compile at a time; XLA itself also uses threads.

  For GPUs MNIST's took 5 s one by one, 11 to 14 s four at a time and 10 to 13 s
  eight at a time (experiments/bench/gpu_h100.json, gpu_h200.json; 16 cores).
  """
  most = _MOST_FOR_CPU if platform == 'cpu' else _MOST
  return min(max(cores // 2, _FEWEST), most)


class Compiler:
  """Compiles the programs that jobs need, those of the next jobs ahead of time.

  It is a context manager.
  """

  def __init__(
      self, everything: Sequence[Job], left: Sequence[Job],
      kept: Kept | None = None, stop: Stop | None = None,
      tell: Callable[[str], None] | None = None,
  ):
    """Prepares to compile an experiment's jobs.

    Args:
      everything: All jobs, also finished ones, so that which jobs share
        programs does not depend on what is left.
      left: The jobs that `programs` will be called with, in that order.
      kept: The store in which an earlier start may have kept the programs.
      stop: After a request to stop, nothing more is traced or waited for.
      tell: Prints a line of warning.
    """
    self._kept = kept
    self._left = list(left)
    self._families = families.needed(everything, left) if left else {}
    self._at_once = at_once(device.cores(), jax.default_backend())
    self._pool = ThreadPoolExecutor(self._at_once, 'compile')
    self._begun: dict[str, Programs] = {}
    self._order = [self._families[job.program].name for job in self._left]
    self._stop = Stop() if stop is None else stop  # A new one is false.
    self._maker = Maker(self._pool, kept, self._stop, tell)
    self._crossing: dict[str, dict[str, Any]] = {}
    self._last: Compiled | None = None

  def __enter__(self) -> Self:
    return self

  def __exit__(self, kind, error, trace) -> None:
    self._pool.shutdown(wait=False, cancel_futures=True)

  def programs(self, job: Job) -> Compiled:
    """The job's programs; `seconds` is the time that this call waited."""
    name, began = job.program, time.perf_counter()
    self._left = [other for other in self._left if other is not job]
    if self._last and self._last.name == name:  # Another chunk of the same.
      return self._last._replace(seconds=0.0)
    family = self._families[name]
    if job.setting.stream:
      made = _streamed(job)
    else:
      made = self._fitting(family, job)
    crossing = self._crossing_of(job)
    seconds = time.perf_counter() - began
    self._last = made._replace(seconds=seconds, crossing=crossing)
    return self._last

  def halve(self, job: Job) -> bool:
    """Makes the job run in smaller pieces from now on.

    Its compiled programs are dropped, and so are those that wait for their
    turn, to free memory.

    Returns:
      False if smaller pieces are impossible or the user chose the size.
    """
    family = self._families[job.program]
    if job.setting.stream or fitting.is_chosen(job.setting.config):
      return False
    smaller = fitting.fewer(family, fitting.played(family) // 2)
    if smaller is None:
      return False
    self._replace(smaller)
    self._maker.forget()
    return True

  def _replace(self, family: Family) -> Family:
    self._begun.pop(family.name, None)
    self._last = None
    self._families = {
        name: family if other.name == family.name else other
        for name, other in self._families.items()
    }
    return family

  def _fitting(self, family: Family, job: Job) -> Compiled:
    """The job's programs, for as many trainings at a time as memory allows."""
    while True:
      programs = self._begin(family)
      self._look_ahead(family)
      cells, memory = fitting.played(family), fitting.limit()
      if fitting.is_chosen(job.setting.config) or not memory:
        return programs.compiled(job)
      wanted = fitting.most(programs.memory(), cells, memory)
      smaller = fitting.fewer(family, wanted) if wanted < cells else None
      if smaller is None:
        return programs.compiled(job)
      family = self._replace(smaller)

  def _begin(self, family: Family) -> Programs:
    """Starts to compile the family's programs in the pool."""
    if family.name not in self._begun:
      turn = self._order.index(family.name)
      self._begun[family.name] = Programs(family, self._maker, turn)
    return self._begun[family.name]

  def _look_ahead(self, family: Family) -> None:
    """Prepares the next jobs while this family compiles.

    Errors are ignored here: they will be raised when it is that job's turn.

    Raises:
      Interrupted: after a request to stop, before anything more is traced.
    """
    coming = [self._families[job.program] for job in self._left]
    needed = {other.name for other in [family, *coming]}
    self._begun = {k: v for k, v in self._begun.items() if k in needed}
    others = {f.name: f for f in coming if f.name != family.name}
    # At least two, as all programs of one may be the same as another's.
    for other in list(others.values())[: self._at_once]:
      self._stop.check()
      with contextlib.suppress(Exception):
        self._begin(other)
    for job, other in zip(self._left, coming):
      self._stop.check()
      if other.name == family.name:
        with contextlib.suppress(Exception):
          self._crossing_of(job)

  def _crossing_of(self, job: Job) -> dict[str, Any]:
    name = job.entry.name
    if name not in self._crossing:
      label = f'{name}: what crosses'
      found = self._kept.read(label) if self._kept else None
      self._crossing[name] = auditing.of_job(job) if found is None else found
      if self._kept and found is None:
        self._kept.write(label, self._crossing[name])
    return self._crossing[name]


def _streamed(job: Job) -> Compiled:
  """The programs of a job whose training samples stay on the host."""
  trainings = families.cells_of(job, families.alone(job))
  cells, host = streamed.place(job, trainings, rehearsal=True)
  made = streamed.compile_job(job, cells, host)
  epochs = job.setting.config.train.epochs
  history = jax.tree.map(
      lambda s: jax.ShapeDtypeStruct((len(s), epochs, *s.shape[1:]), s.dtype),
      made.row,
  )

  def place(job):
    trainings = families.cells_of(job, families.alone(job))
    cells, host = streamed.place(job, trainings)
    return [cells], host

  def advance(job, runs, cells, shared):
    run, row = streamed.advance(job, made, runs[0], cells[0], *shared)
    return [run], row

  return Compiled(
      job.program, place, lambda cells, host: [made.start(cells[0], ())],
      advance,
      lambda job, runs, cells, host: made.finish(
          dict(cells=cells[0], runs=runs[0]), ()
      ),
      lambda seconds: True,
      lambda job, runs: runs, lambda job, runs, fresh: runs,
      Going(made.runs, history, jax.ShapeDtypeStruct((), np.float32)),
      1, 0.0, {},
  )


def begin(made: Compiled, cells: list, samples: Any) -> Going:
  """The job before its first epoch; `cells` and `samples` are on the devices.
  """
  zeros = lambda s: np.zeros((len(cells) * len(s), *s.shape[1:]), s.dtype)
  blank = jax.tree.map(zeros, made.shapes.history)
  return Going(made.start(cells, samples), blank, np.float32(0))


def resumed(
    made: Compiled, job: Job, going: Going, cells: list, samples: Any
) -> Going:
  """The job as of a checkpoint, cut into pieces and padded.

  Args:
    made: The job's programs.
    job: The job.
    going: The checkpoint; its runs are in one tree without padding.
    cells: The pieces.
    samples: On the devices, as `cells`.
  """
  shapes = made.own(job, made.shapes.runs)
  size = len(jax.tree.leaves(shapes)[0])
  pieces = [
      jax.device_put(part, jax.tree.map(lambda s: s.sharding, shapes))
      for part in split(sweep.pad(going.runs, len(cells) * size), size)
  ]
  if shapes is not made.shapes.runs:  # Others share its programs.
    fresh = made.start(cells, samples)
    pieces = [made.whole(job, *both) for both in zip(pieces, fresh)]
  padded = sweep.pad(going.history, len(cells) * size)
  return Going(pieces, jax.tree.map(np.asarray, padded), going.seconds)
