"""Has the programs of jobs compiled before they are needed, in threads."""
from collections.abc import Sequence
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

# Programs compiled at the same time. For a CPU a large network takes gigabytes.
_FEWEST, _MOST_FOR_CPU, _MOST = 2, 4, 8


def at_once(cores: int, platform: str) -> int:
  """How many programs are compiled at the same time; XLA uses threads besides.

  For GPUs MNIST's took 5 s one by one, 11 to 14 s four at a time and 10 to 13 s
  eight at a time (experiments/bench/gpu_h100.json, gpu_h200.json; 16 cores).
  """
  most = _MOST_FOR_CPU if platform == 'cpu' else _MOST
  return min(max(cores // 2, _FEWEST), most)


class Compiler:
  """Compiles what jobs need, the next one's while it is waited for.

  A context manager.
  """

  def __init__(
      self, everything: Sequence[Job], left: Sequence[Job],
      kept: Kept | None = None,
  ):
    """For an experiment's jobs.

    Args:
      everything: All of them: who shares programs does not depend on what has
        been done before.
      left: Those that `programs` will be asked for, in that order.
      kept: Where an earlier start may have left them.
    """
    self._kept = kept
    self._left = list(left)
    self._families = families.needed(everything, left) if left else {}
    self._at_once = at_once(device.cores(), jax.default_backend())
    self._pool = ThreadPoolExecutor(self._at_once, 'compile')
    self._begun: dict[str, Programs] = {}
    self._maker = Maker(self._pool, kept)
    self._crossing: dict[str, dict[str, Any]] = {}
    self._last: Compiled | None = None

  def __enter__(self) -> Self:
    return self

  def __exit__(self, kind, error, trace) -> None:
    self._pool.shutdown(wait=False, cancel_futures=True)

  def programs(self, job: Job) -> Compiled:
    """The job's; `seconds` is what they were waited for."""
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
    """Has the job played in smaller pieces from now on, if it can be.

    What is compiled of it is dropped, and of others what only waits for its
    turn: there is no room.
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
    """The job's, of as many trainings a call as the devices have room for."""
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
    """Has the family's programs compiled, behind our back."""
    if family.name not in self._begun:
      self._begun[family.name] = Programs(family, self._maker)
    return self._begun[family.name]

  def _look_ahead(self, family: Family) -> None:
    """Does, while these are compiled, what the next jobs would wait for.

    What cannot be traced is said when it is its turn: this job goes first.
    """
    coming = [self._families[job.program] for job in self._left]
    needed = {other.name for other in [family, *coming]}
    self._begun = {k: v for k, v in self._begun.items() if k in needed}
    others = {f.name: f for f in coming if f.name != family.name}
    # At least two: all of one's may be the same as others'.
    for other in list(others.values())[: self._at_once]:
      with contextlib.suppress(Exception):
        self._begin(other)
    for job, other in zip(self._left, coming):
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
  """The same of a job whose training samples stay on the host."""
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
      Going(made.runs, history, jax.ShapeDtypeStruct((), np.float32)),
      1, 0.0, {},
  )


def begin(made: Compiled, cells: list, samples: Any) -> Going:
  """A job before its first epoch; `cells` and `samples` as placed."""
  zeros = lambda s: np.zeros((len(cells) * len(s), *s.shape[1:]), s.dtype)
  blank = jax.tree.map(zeros, made.shapes.history)
  return Going(made.start(cells, samples), blank, np.float32(0))


def resumed(made: Compiled, going: Going, cells: list) -> Going:
  """A checkpoint, whose runs are whole and without padding, to go on from."""
  shapes = made.shapes.runs
  size = len(jax.tree.leaves(shapes)[0])
  pieces = [
      jax.device_put(part, jax.tree.map(lambda s: s.sharding, shapes))
      for part in split(sweep.pad(going.runs, len(cells) * size), size)
  ]
  padded = sweep.pad(going.history, len(cells) * size)
  return Going(pieces, jax.tree.map(np.asarray, padded), going.seconds)
