"""Runs an experiment: trains, attacks and measures defenses over many seeds.

A job trains in strides of a few epochs, so that progress can be shown and saved
between two calls of one compiled program. Killed anywhere, it goes on from its
last checkpoint and ends with the same numbers.
"""
from collections.abc import Iterator
import contextlib
import dataclasses
from functools import partial
import hashlib
import signal
import sys
import time

import jax
import numpy as np

from vfljax import sweep
from vfljax.data.table import Table
from vfljax.runner import checks, compiling, disk, record, saved, store
from vfljax.runner.compiling import Compiled, Going
from vfljax.runner.config import Config
from vfljax.runner.errors import UserError
from vfljax.runner.jobs import Job, jobs
from vfljax.runner.plans import main_metric, rounds_an_epoch
from vfljax.runner.progress import Progress
from vfljax.runner.setting import Setting
from vfljax.runner.store import Workdir

SAVE_SECONDS = 20.0  # between two checkpoints of a job
# How the end of memory is told: by XLA's allocators, by what it calls in turn
# (a CPU's products, as INTERNAL), and by Python.
OUT_OF_MEMORY = (
    'resource_exhausted', 'out of memory', 'allocate', 'memoryerror',
    'ynnpack operation failed',
)


class Interrupted(Exception):
  """Somebody asked to stop; everything up to here has been saved."""


def run(config: Config, table: Table, workdir: str) -> Workdir:
  """Runs what is not done yet of an experiment.

  Args:
    config: What to run.
    table: The samples.
    workdir: Where the results are, or will be.

  Raises:
    UserError: if the configuration cannot be run, the workdir not be used, or
      another process is at work there.
    Interrupted: on SIGINT or SIGTERM, after saving.
  """
  setting = checks.make(config, table)
  with disk.alone(workdir):
    return _run(setting, table, workdir)


def _run(setting: Setting, table: Table, workdir: str) -> Workdir:
  everything = jobs(setting)
  units = [unit for job in everything for unit in job.units]
  recorded = dataclasses.asdict(setting.config)
  recorded |= dict(samples=fingerprint(table))
  complete = partial(saved.completed, now=setting.config)
  work = store.open_workdir(workdir, recorded, units, complete)
  todo = [j for j in everything if not all(work.done(u) for u in j.units)]
  names = [job.name for job in everything]
  finished = len(everything) - len(todo)
  display = Progress(names, finished, metric=main_metric(setting))
  compiled: Compiled | None = None
  with display as progress, _interruptible() as asked:
    for job in todo:
      if asked:
        raise Interrupted
      with _memory_explained():
        compiled = _compiled(job, progress, compiled)
        _run_job(job, work, progress, asked, compiled)
      progress.finish()
  return work


def fingerprint(table: Table) -> str:
  """A digest of the samples: other samples are another experiment."""
  digest, rows = hashlib.sha256(), 1024  # Of a mapped file a few at a time.
  for part in (table.features, table.labels):
    for i in range(0, len(part), rows):
      digest.update(np.ascontiguousarray(part[i : i + rows]).tobytes())
  return digest.hexdigest()[:16]


def _compiled(job: Job, progress: Progress, last: Compiled | None) -> Compiled:
  """The job's programs; the last job's if it was another chunk of the same.

  Of the same entry, that is: no two have one name.
  """
  if last and last.name == job.entry.name:
    return last._replace(seconds=0.0)
  progress.compiling(job.name)
  return compiling.compile_job(job)


def _run_job(
    job: Job, work: Workdir, progress: Progress, asked: list, made: Compiled
) -> None:
  epochs, count = job.setting.config.train.epochs, job.count
  cells, samples = made.place(job, compiling.cells_of(job))
  stride, save = compiling.stride_of(job), job.units[-1]
  done, going = _resume(work, save, count, made, stride) or (
      0, compiling.begin(made, cells, samples)
  )
  progress.unit(job.name, len(job.seeds), epochs, done)
  played, clock = 0, time.perf_counter()
  last_save, spent = clock, float(going.seconds)
  while done < epochs:
    runs, rows = jax.block_until_ready(
        made.advance(job, going.runs, cells, (samples, np.int32(done)))
    )
    now = time.perf_counter()
    seconds = np.float32(spent + now - clock)
    going = Going(runs, _write(going.history, rows, done), seconds)
    ahead = min(stride, epochs - done)
    done, played = done + ahead, played + ahead
    speed = played * rounds_an_epoch(job.setting) * count / (now - clock)
    progress.advance(done, speed, _utility(job, going.history, done))
    stop = bool(asked) and done < epochs
    if stop or (done < epochs and now - last_save > SAVE_SECONDS):
      work.save_checkpoint(save, done, _trim(going, count))
      last_save = now
    if stop:
      raise Interrupted
  found = jax.block_until_ready(
      made.finish(dict(cells=cells, runs=going.runs), samples)
  )
  spent += time.perf_counter() - clock
  record.save(job, work, found, going.history, made.seconds, spent)


def _trim(going: Going, count: int) -> Going:
  """Without the padding, which depends on the number of devices."""
  cut = lambda tree: jax.tree.map(lambda x: x[:count], tree)
  return going._replace(runs=cut(going.runs), history=cut(going.history))


def _resume(
    work: Workdir, unit: str, count: int, made: Compiled, stride: int
):
  """The checkpoint of a job in progress as (epochs done, Going), or None."""
  shape = lambda s: jax.ShapeDtypeStruct((count, *s.shape[1:]), s.dtype)
  runs, history, seconds = made.shapes
  like = Going(
      jax.tree.map(shape, runs), jax.tree.map(shape, history), seconds
  )
  saved = work.load_checkpoint(unit, like)
  # A streamed run saves between the strides of one in memory, which plays only
  # whole ones: it then begins again.
  if not saved or saved[0] % stride:
    return None
  done, going = saved
  size = len(jax.tree.leaves(runs)[0])
  placed = jax.device_put(
      sweep.pad(going.runs, size), jax.tree.map(lambda s: s.sharding, runs)
  )
  padded = jax.tree.map(np.asarray, sweep.pad(going.history, size))
  return done, Going(placed, padded, going.seconds)


def _write(history, rows, first: int):
  """The history with a stride's rows in their place."""

  def put(whole, part):
    part, whole = np.asarray(part), np.array(whole)
    room = whole[:, first : first + part.shape[1]]
    room[:] = part[:, : room.shape[1]]
    return whole

  return jax.tree.map(put, history, rows)


def _utility(job: Job, history, done: int) -> float | None:
  """The newest measured utility, mean over the trainings still going on."""
  measured = history['measured'][: job.count, :done]
  if not measured.any():
    return None
  newest = np.flatnonzero(measured.any(0))[-1]
  curve = history['validation'][main_metric(job.setting)]
  return float(np.mean(curve[: job.count, newest][measured[:, newest]]))


@contextlib.contextmanager
def _memory_explained() -> Iterator[None]:
  """Turns the end of a device's memory into advice."""
  try:
    yield
  except (jax.errors.JaxRuntimeError, MemoryError) as error:
    said = f'{type(error).__name__} {error}'.lower()
    if not any(sign in said for sign in OUT_OF_MEMORY):
      raise
    raise UserError(
        'The device has too little memory for all trainings at once.\nTrain '
        'fewer at a time: --config.seeds_per_chunk=1, or 2, ..., or '
        '--config.strengths_per_chunk=1. If samples are what is too large: '
        '--config.data.stream=100 rounds at a time. Either needs a new '
        '--workdir.'
    ) from None


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
    print(
        'Stopping soon, after saving; once more stops at once.',
        file=sys.stderr, flush=True,
    )

  watched = (signal.SIGINT, signal.SIGTERM)
  before = {number: signal.signal(number, ask) for number in watched}
  try:
    yield asked
  finally:
    for number, handler in before.items():
      signal.signal(number, handler)
