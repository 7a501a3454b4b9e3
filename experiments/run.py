"""Runs an experiment: trains, attacks and measures defenses over many seeds.

A job trains in strides of a few epochs, so that progress can be shown and saved
between two calls of one compiled program. Killed anywhere, it goes on from its
last checkpoint and ends with the same numbers.
"""
from collections.abc import Callable, Iterator
import contextlib
import dataclasses
from functools import partial
import signal
import time
from typing import Any, NamedTuple

import jax
import numpy as np

from experiments import cell, record
from experiments import setting as settings
from experiments.config import Config
from experiments.jobs import Job, jobs
from experiments.progress import Progress
from experiments.store import Workdir, open_workdir
from vfljax import sweep
from vfljax.data.table import Table

SAVE_SECONDS = 20.0  # between two checkpoints of a job


class Interrupted(Exception):
  """Somebody asked to stop; everything up to here has been saved."""


class Programs(NamedTuple):
  """A job's compiled programs, and how long that took."""

  start: Callable
  advance: Callable
  finish: Callable
  seconds: float


class Going(NamedTuple):
  """A job in progress: what a checkpoint holds."""

  runs: Any  # train.Run, leaves [cells, ...]
  history: Any  # leaves [cells, epochs, ...], zeros where not yet played
  seconds: Any  # spent so far


def run(config: Config, table: Table, workdir: str) -> Workdir:
  """Runs what is not done yet of an experiment.

  Args:
    config: What to run.
    table: The samples.
    workdir: Where the results are, or will be.

  Raises:
    UserError: if the configuration cannot be run, or the workdir not be used.
    Interrupted: on SIGINT or SIGTERM, after saving.
  """
  setting = settings.make(config, table)
  everything = jobs(setting)
  units = [unit for job in everything for unit in job.units]
  work = open_workdir(workdir, dataclasses.asdict(config), units)
  todo = [j for j in everything if not all(work.done(u) for u in j.units)]
  names = [job.name for job in everything]
  finished = len(everything) - len(todo)
  display = Progress(names, finished, metric=settings.main_metric(setting))
  with display as progress, _interruptible() as asked:
    for job in todo:
      _run_job(job, work, progress, asked)
      progress.finish()
      if asked:
        raise Interrupted
  return work


def _run_job(job: Job, work: Workdir, progress: Progress, asked: list) -> None:
  epochs = job.setting.config.train.epochs
  stride = _stride(epochs)
  cells, samples = sweep.place(_cells(job), job.setting.samples)
  progress.compiling(job.name)
  programs, shapes = _compile(job, cells, samples, stride)
  saved = work.load_checkpoint(job.units[-1], shapes)
  done, going = saved or (0, _begin(programs, shapes, cells, samples))
  progress.unit(job.name, len(job.seeds), epochs, done)
  played, clock = 0, time.perf_counter()
  last_save, spent = clock, float(going.seconds)
  while done < epochs:
    runs, rows = jax.block_until_ready(programs.advance(
        dict(cells=cells, runs=going.runs), (samples, np.int32(done))
    ))
    now = time.perf_counter()
    seconds = np.float32(spent + now - clock)
    going = Going(runs, _write(going.history, rows, done), seconds)
    done, played = done + stride, played + stride
    speed = _all_rounds(job, played) / (now - clock)
    progress.advance(done, speed, _utility(job, going.history, done))
    stop = bool(asked) and done < epochs
    if stop or (done < epochs and now - last_save > SAVE_SECONDS):
      work.save_checkpoint(job.units[-1], done, going)
      last_save = now
    if stop:
      raise Interrupted
  found = jax.block_until_ready(
      programs.finish(dict(cells=cells, runs=going.runs), samples)
  )
  spent += time.perf_counter() - clock
  record.save(job, work, found, going.history, programs.seconds, spent)


def _cells(job: Job) -> dict[str, jax.Array]:
  """The job's trainings, by strength, then seed; padded to the devices."""
  seeds, points = len(job.seeds), len(job.strengths)
  each = lambda values: np.repeat(np.asarray(values, np.float32), seeds)
  cells = dict(
      seed=np.tile(np.asarray(job.seeds, np.int32), points),
      strength=each([s or 0.0 for s in job.strengths]),
      others={name: each(values) for name, values in job.others.items()},
  )
  return sweep.pad(cells, jax.local_device_count())


def _compile(job: Job, cells, samples, stride: int) -> tuple[Programs, Going]:
  """Compiles a job: the programs, and the shapes of what it carries."""
  began = time.perf_counter()

  def over(fn, *static):
    return jax.jit(sweep.over_cells(partial(fn, job, *static)))

  start = over(cell.start).lower(cells, samples).compile()
  runs = jax.tree.map(
      lambda s, where: jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=where),
      start.out_info, start.output_shardings,
  )
  both, first = dict(cells=cells, runs=runs), np.int32(0)
  lowered = over(cell.advance, stride).lower(both, (samples, first))
  rows, epochs = lowered.out_info[1], job.setting.config.train.epochs
  history = jax.tree.map(
      lambda s: jax.ShapeDtypeStruct((len(s), epochs, *s.shape[2:]), s.dtype),
      rows,
  )
  finish = over(cell.finish).lower(both, samples)
  programs = Programs(
      start, lowered.compile(), finish.compile(), time.perf_counter() - began
  )
  return programs, Going(runs, history, jax.ShapeDtypeStruct((), np.float32))


def _begin(programs: Programs, shapes: Going, cells, samples) -> Going:
  blank = jax.tree.map(lambda s: np.zeros(s.shape, s.dtype), shapes.history)
  return Going(programs.start(cells, samples), blank, np.float32(0))


def _write(history, rows, first: int):
  """The history with a stride's rows in their place."""

  def put(whole, part):
    part, whole = np.asarray(part), np.array(whole)
    whole[:, first : first + part.shape[1]] = part
    return whole

  return jax.tree.map(put, history, rows)


def _utility(job: Job, history, done: int) -> float | None:
  """The newest measured utility, mean over the trainings."""
  seen = np.flatnonzero(history['measured'][0, :done])
  curve = history['validation'][settings.main_metric(job.setting)]
  return float(np.nanmean(curve[:, seen[-1]])) if len(seen) else None


def _all_rounds(job: Job, epochs: int) -> int:
  cells = len(job.seeds) * len(job.strengths)
  return epochs * settings.rounds(job.setting) * cells


def _stride(epochs: int) -> int:
  """Epochs a call: the divisor of all of them nearest to a tenth."""
  divisors = [d for d in range(1, epochs + 1) if epochs % d == 0]
  return min(divisors, key=lambda d: (abs(d - epochs / 10), d))


@contextlib.contextmanager
def _interruptible() -> Iterator[list]:
  """A list that is not empty once somebody has asked to stop.

  Asking a second time stops at once.
  """
  asked: list[int] = []

  def ask(number, frame):
    if asked:
      raise KeyboardInterrupt
    asked.append(number)

  watched = (signal.SIGINT, signal.SIGTERM)
  before = {number: signal.signal(number, ask) for number in watched}
  try:
    yield asked
  finally:
    for number, handler in before.items():
      signal.signal(number, handler)
