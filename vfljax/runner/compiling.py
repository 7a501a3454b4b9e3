"""A job's programs, compiled once for all its cells: in memory, or streamed."""
from collections.abc import Callable
from functools import partial
import time
from typing import Any, NamedTuple

import jax
import numpy as np

from vfljax import sweep
from vfljax.runner import cell, streamed
from vfljax.runner.jobs import Job


class Compiled(NamedTuple):
  """A job's compiled programs: what they are of, and how long that took."""

  name: str
  place: Callable  # (job, cells) -> cells and samples, where they are needed
  start: Callable
  advance: Callable  # (job, runs, cells, (samples, first epoch))
  finish: Callable
  shapes: 'Going'  # what the programs carry
  seconds: float
  crossing: dict[str, Any]  # `auditing.of_job`: what crosses in a round


class Going(NamedTuple):
  """A job in progress: what a checkpoint holds."""

  runs: Any  # train.Run, leaves [cells, ...]
  history: Any  # leaves [cells, epochs, ...], zeros where not yet played
  seconds: Any  # spent so far


def compile_job(job: Job) -> Compiled:
  """Compiles a job's programs."""
  began = time.perf_counter()
  epochs = job.setting.config.train.epochs

  def over(fn, *static):
    return sweep.over_cells(partial(fn, job, *static))

  if job.setting.stream:
    return _compile_streamed(job, began)
  cells, samples = _place(job, cells_of(job))
  start = jax.jit(over(cell.start)).lower(cells, samples).compile()
  runs = jax.tree.map(
      lambda s, where: jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=where),
      start.out_info, start.output_shardings,
  )
  both, first = dict(cells=cells, runs=runs), np.int32(0)
  play = over(cell.advance, stride_of(job))
  # The runs' memory becomes that of what they become.
  lowered = jax.jit(
      lambda runs, cells, shared: play(dict(cells=cells, runs=runs), shared),
      donate_argnums=0,
  ).lower(runs, cells, (samples, first))
  history = jax.tree.map(
      lambda s: jax.ShapeDtypeStruct((len(s), epochs, *s.shape[2:]), s.dtype),
      lowered.out_info[1],
  )
  finish = jax.jit(over(cell.finish)).lower(both, samples).compile()
  shapes = Going(runs, history, jax.ShapeDtypeStruct((), np.float32))
  ahead = lowered.compile()
  return Compiled(
      job.entry.name, _place, start,
      lambda job, *arguments: ahead(*arguments), finish, shapes,
      time.perf_counter() - began, {},
  )


def _compile_streamed(job: Job, began: float) -> Compiled:
  """The same of a job whose training samples stay on the host."""
  cells, host = streamed.place(job, cells_of(job), rehearsal=True)
  made = streamed.compile_job(job, cells, host)
  epochs = job.setting.config.train.epochs
  history = jax.tree.map(
      lambda s: jax.ShapeDtypeStruct((len(s), epochs, *s.shape[1:]), s.dtype),
      made.row,
  )

  def advance(job, runs, cells, shared):
    return streamed.advance(job, made, runs, cells, *shared)

  return Compiled(
      job.entry.name, streamed.place,
      lambda cells, host: made.start(cells, ()), advance,
      lambda both, host: made.finish(both, ()),
      Going(made.runs, history, jax.ShapeDtypeStruct((), np.float32)),
      time.perf_counter() - began, {},
  )


def _place(job: Job, cells: dict[str, jax.Array]):
  return sweep.place(cells, job.setting.samples)


def cells_of(job: Job) -> dict[str, jax.Array]:
  """The job's trainings, by strength, then seed.

  Padded to a whole chunk, so that the last one needs no other program, and to
  the devices.
  """
  seeds, points = len(job.seeds), len(job.strengths)
  each = lambda values: np.repeat(np.asarray(values, np.float32), seeds)
  cells = dict(
      seed=np.tile(np.asarray(job.seeds, np.int32), points),
      strength=each([s or 0.0 for s in job.strengths]),
      others={name: each(values) for name, values in job.others.items()},
  )
  chunk = job.setting.config.seeds_per_chunk or len(job.seeds)
  devices = jax.local_device_count()
  return sweep.pad(cells, -(-chunk * job.room // devices) * devices)


def stride_of(job: Job) -> int:
  """Epochs a call: a tenth of all, of samples that are streamed one."""
  return 1 if job.setting.stream else -(-job.setting.config.train.epochs // 10)


def begin(made: Compiled, cells, samples) -> Going:
  """A job before its first epoch; `cells` and `samples` as placed."""
  zeros = lambda s: np.zeros(s.shape, s.dtype)
  blank = jax.tree.map(zeros, made.shapes.history)
  return Going(made.start(cells, samples), blank, np.float32(0))
