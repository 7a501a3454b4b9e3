"""The programs of jobs: compiled in threads, and shared where they can be.

A program plays a *piece* of a job's trainings a call: all of them, where the
job shares its programs with nobody (`runner.families`).
"""
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
import contextlib
from functools import partial
import time
from typing import Any, NamedTuple, Self

import jax
import numpy as np

from vfljax import sweep
from vfljax.runner import auditing, cell, families, fitting, streamed
from vfljax.runner.cutting import joined, split
from vfljax.runner.families import Family
from vfljax.runner.jobs import Job

_AT_ONCE = 2  # Programs compiled at the same time; XLA uses threads besides.


class Compiled(NamedTuple):
  """A job's compiled programs: what they are of, and how long that took.

  Of cells and runs they take and give lists, with an entry a piece.
  """

  name: str
  place: Callable  # job -> cells and samples, where they are needed
  start: Callable  # (cells, samples) -> runs
  advance: Callable  # (job, runs, cells, (samples, first epoch))
  finish: Callable  # (job, runs, cells, samples)
  shapes: 'Going'  # what the programs carry, of a piece
  seconds: float
  crossing: dict[str, Any]  # `auditing.of_job`: what crosses in a round


class Going(NamedTuple):
  """A job in progress: what a checkpoint holds, there with whole `runs`."""

  runs: Any  # train.Run, leaves [cells, ...]: a list of pieces
  history: Any  # leaves [cells, epochs, ...], zeros where not yet played
  seconds: Any  # spent so far


class Compiler:
  """Compiles what jobs need, the next one's while it is waited for.

  A context manager.
  """

  def __init__(self, everything: Sequence[Job], left: Sequence[Job]):
    """For an experiment's jobs.

    Args:
      everything: All of them: who shares programs does not depend on what has
        been done before.
      left: Those that `programs` will be asked for, in that order.
    """
    self._left = list(left)
    self._families = families.needed(everything, left) if left else {}
    self._pool = ThreadPoolExecutor(_AT_ONCE, 'compile')
    self._begun: dict[str, _Programs] = {}
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

    What is compiled of it is dropped.
    """
    family = self._families[job.program]
    if job.setting.stream or fitting.is_chosen(job.setting.config):
      return False
    smaller = fitting.fewer(family, fitting.played(family) // 2)
    return bool(smaller) and bool(self._replace(smaller))

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

  def _begin(self, family: Family) -> '_Programs':
    """Has the family's programs compiled, behind our back."""
    if family.name not in self._begun:
      self._begun[family.name] = _Programs(family, self._pool)
    return self._begun[family.name]

  def _look_ahead(self, family: Family) -> None:
    """Does, while these are compiled, what the next jobs would wait for.

    What cannot be traced is said when it is its turn: this job goes first.
    """
    coming = [self._families[job.program] for job in self._left]
    needed = {other.name for other in [family, *coming]}
    self._begun = {k: v for k, v in self._begun.items() if k in needed}
    another = [other for other in coming if other.name != family.name]
    with contextlib.suppress(Exception):
      if another:
        self._begin(another[0])
    for job, other in zip(self._left, coming):
      if other.name == family.name:
        with contextlib.suppress(Exception):
          self._crossing_of(job)

  def _crossing_of(self, job: Job) -> dict[str, Any]:
    name = job.entry.name
    if name not in self._crossing:
      self._crossing[name] = auditing.of_job(job)
    return self._crossing[name]


class _Programs:
  """A family's programs: traced here, compiled in the threads of a pool."""

  def __init__(self, family: Family, pool: ThreadPoolExecutor):
    self._family, job = family, family.job
    spread, _ = sweep.shardings()

    def begin(fn, *arguments, donate=()):
      jitted = jax.jit(fn, out_shardings=spread, donate_argnums=donate)
      lowered = jitted.lower(*arguments)
      return lowered.out_info, pool.submit(lowered.compile)

    pieces, samples = _place(family, job)
    cells = pieces[0]
    made, self._start = begin(_over(cell.start, job), cells, samples)
    self._runs = jax.tree.map(
        lambda s: jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=spread), made
    )
    play = _over(cell.advance, job, stride_of(job))
    # The runs' memory becomes that of what they become.
    (_, rows), self._advance = begin(
        lambda runs, cells, shared: play(dict(cells=cells, runs=runs), shared),
        self._runs, cells, (samples, np.int32(0)), donate=0,
    )
    epochs = job.setting.config.train.epochs
    self._history = jax.tree.map(
        lambda s: jax.ShapeDtypeStruct((len(s), epochs, *s.shape[2:]), s.dtype),
        rows,
    )
    both = dict(cells=cells, runs=self._runs)
    self._finish = begin(_over(cell.finish, job), both, samples)[1]
    self._baselines: Future | None = None
    if family.baselines:
      attack = _over(cell.baselines, family.baselines)
      self._baselines = begin(attack, both, samples)[1]

  def memory(self) -> Any:
    """What the program that plays says that it needs."""
    return self._advance.result().memory_analysis()

  def compiled(self, job: Job) -> Compiled:
    """For one of the family's jobs, when all that it needs is there."""
    family = self._family
    start, ahead = self._start.result(), self._advance.result()
    ends = [self._finish.result()]
    if self._baselines and families.has_baselines(job):
      ends.append(self._baselines.result())

    def advance(job, runs, cells, shared):
      played = [ahead(r, c, shared) for r, c in zip(runs, cells)]
      return [run for run, _ in played], joined([rows for _, rows in played])

    def finish(job, runs, cells, samples):
      both = [dict(cells=c, runs=r) for c, r in zip(cells, runs)]
      found = [[end(b, samples) for b in both] for end in ends]
      return {k: v for parts in found for k, v in joined(parts).items()}

    return Compiled(
        job.program, partial(_place, family),
        lambda cells, samples: [start(c, samples) for c in cells],
        advance, finish,
        Going(
            self._runs, self._history, jax.ShapeDtypeStruct((), np.float32)
        ), 0.0, {},
    )


def _over(fn: Callable, job: Job, *static: Any) -> Callable:
  return sweep.over_cells(partial(fn, job, *static))


def _place(family: Family, job: Job):
  """The job's pieces and samples, on the devices."""
  whole, samples = families.cells_of(job, family), job.setting.samples
  pieces = []
  for part in split(whole, family.cells or len(whole['seed'])):
    piece, samples = sweep.place(part, samples)
    pieces.append(piece)
  return pieces, samples


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
      Going(made.runs, history, jax.ShapeDtypeStruct((), np.float32)), 0.0, {},
  )


def stride_of(job: Job) -> int:
  """Epochs a call: a tenth of all, of samples that are streamed one."""
  return 1 if job.setting.stream else -(-job.setting.config.train.epochs // 10)


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
