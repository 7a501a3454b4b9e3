"""Runs an experiment: trains, attacks and measures defenses over many seeds.

A job trains in strides of a few epochs, so that progress can be shown and saved
between two calls of one compiled program. A job that was killed continues from
its last checkpoint and ends with the same numbers.
"""
from collections.abc import Callable
import contextlib
from functools import partial
from pathlib import Path
import time
from typing import Any

import jax
import numpy as np

from vfljax.data.table import Table
from vfljax.runner.checking import checks, rehearsal
from vfljax.runner.cli import aside, asking
from vfljax.runner.cli.progress import Progress
from vfljax.runner.compiled import compiling, kept
from vfljax.runner.compiled.compiling import Compiler
from vfljax.runner.compiled.cutting import joined
from vfljax.runner.compiled.programs import Compiled, Going
from vfljax.runner.config import Config, outside
from vfljax.runner.experiment.jobs import Job, jobs, units_of
from vfljax.runner.experiment.plans import main_metric, rounds_an_epoch
from vfljax.runner.experiment.setting import Setting
from vfljax.runner.machine import exhausted, precision, stopping
from vfljax.runner.machine.stopping import Interrupted as Interrupted, Stop
from vfljax.runner.workdir import identity, meeting, record, recording, store
from vfljax.runner.workdir.epoch_log import EpochLog
from vfljax.runner.workdir.saver import Saver
from vfljax.runner.workdir.shares import Share
from vfljax.runner.workdir.store import Workdir
from vfljax.runner.workdir.writer import Writer

SAVE_SECONDS = 20.0  # between two checkpoints of a job
# A stride that takes longer is always saved, while the next one is played, as a
# user who stops in the middle of a stride will not wait for its end.
LONG_SECONDS = 3.0
# But at most a share of the time: seconds between, per second of saving.
WRITES_APART = 5.0
LOOK_SECONDS = 0.2  # between two checks for a request to stop.


def run(
    config: Config, table: Table, workdir: str, stop: Stop | None = None,
    share: Share = Share(), tensorboard: bool = False,
    before: Path | None = None,
) -> Workdir:
  """Runs the part of an experiment that is not done yet.

  Args:
    config: What to run.
    table: The samples.
    workdir: The results' folder; if it has fewer seeds, the others are added.
    stop: True once a stop is requested. By default SIGINT and SIGTERM request
      it, if this is the main thread; a second one raises KeyboardInterrupt.
    share: Which process this is of several that run it in this workdir. The
      first returns when all is done, the others when their share is done.
    tensorboard: Whether each epoch is also written for TensorBoard.
    before: A finished work directory with the same undefended federation and
      seeds raised at the same times; that federation is not trained again.

  Raises:
    UserError: if the configuration cannot be run, the workdir cannot be used,
      or another process is using it.
    Interrupted: after `stop` and saving.
  """
  recording.code()  # Before anything else is checked out.
  with precision.of_products(config.train.precision), outside.misfits(), (
      exhausted.explained()
  ):
    asked = asking.of(config, table, workdir)
    setting, place, recorded, complete = asked
    programs = None
    if not asking.is_done(asked):
      programs = kept.of(recorded)
      _rehearse(setting, programs)
      # Before the lock is written: the folder may belong to something else.
      identity.check(place, recorded, complete)
    if not share.first:
      meeting.await_first(share, place, partial(asking.has_begun, asked))
    everything = jobs(setting)
    units = units_of(everything)
    own = [unit for job in share.of(everything) for unit in job.units]
    with meeting.among(place, share):
      work = store.open_share(place, recorded, units, complete, share, own)
      if before:
        undefended = everything[0].entry
        for job in everything:
          for unit in job.units if job.entry == undefended else ():
            work.adopt(before, unit)
      # Not `stop or ...`: a Stop is false until a stop is requested.
      given = None if stop is None else contextlib.nullcontext(stop)
      with given or stopping.listening() as heard:
        with EpochLog(work.path, tensorboard) as log:
          _run(everything, work, (heard, log), programs)
        if share.first and share.count > 1:
          _await_others(everything, work, heard)
    return work


def _rehearse(setting: Setting, programs: kept.Kept | None) -> None:
  """Rehearses the experiment, unless an earlier start with as much memory did.

  Raises:
    UserError: if it cannot be run.
  """
  label = f'rehearsed with {rehearsal.memory()} bytes'
  if programs and programs.read(label):
    return
  checks.rehearse(setting)
  if programs:
    programs.write(label, True)


def _await_others(everything: list[Job], work: Workdir, stop: Stop) -> None:
  def missing(other: Share) -> int:
    units = [unit for job in other.of(everything) for unit in job.units]
    return sum(not work.done(unit) for unit in units)

  meeting.await_others(work.path, work.share, missing, lambda: bool(stop))
  if stop:
    raise Interrupted
  work.collect()


def _run(
    everything: list[Job], work: Workdir, heeded: tuple[Stop, EpochLog],
    programs: kept.Kept | None,
) -> None:
  stop, log = heeded
  setting, own = everything[0].setting, work.share.of(everything)
  if not own:
    print(
        f'There is nothing to do for {work.share}: {len(everything)} jobs are '
        'all. --config.seeds_per_chunk=1 makes more.', flush=True,
    )
    return
  is_done = lambda job: all(map(work.done, job.units))
  own = sorted(own, key=is_done, reverse=True)
  finished = sum(map(is_done, own))
  left = own[finished:]
  log.finished(own[:finished])
  works = [job.work for job in own]
  display = Progress(works, finished, metric=main_metric(setting))
  with exhausted.explained(), display as progress, Saver(stop) as saver, (
      Compiler(everything, left, programs, stop, progress.note)
  ) as compiler:

    def play(job: Job) -> None:
      progress.compiling(job.name)
      compiled = compiler.programs(job)
      if stop:  # Requested while compiling, when there is nothing to save.
        raise Interrupted
      aside.begin()
      with stop.awaited(), Writer(work, job.units[-1]) as writer:
        save = _run_job(job, work, progress, compiled, (stop, writer, log))
        saver.begin(save)

    for job in left:
      if stop:
        raise Interrupted
      saver.check()
      if _too_large(play, job):  # It will continue from its last checkpoint.
        if not compiler.halve(job):
          raise MemoryError
        play(job)
      progress.finish()


def _too_large(play: Callable[[Job], None], job: Job) -> bool:
  """Plays a job; returns whether the device ran out of memory.

  The error is dropped here, with its frames, which hold that memory.
  """
  try:
    play(job)
  except (jax.errors.JaxRuntimeError, MemoryError) as error:
    if not exhausted.is_memory(error):
      raise
    return True
  return False


def _run_job(
    job: Job, work: Workdir, progress: Progress, made: Compiled,
    saving: tuple[Stop, Writer, EpochLog],
) -> Callable[[], None]:
  """Plays a job from its checkpoint to its end: a function to save results."""
  epochs, count = job.setting.config.train.epochs, job.count
  stop, writer, log = saving
  cells, samples = made.place(job)
  done, going = _resume(work, job, made, cells, samples) or (
      0, compiling.begin(made, cells, samples)
  )
  progress.unit(job.name, len(job.seeds), epochs, done, job.attacked)
  log.begin(job, going.history, done)
  played, clock = 0, time.perf_counter()
  now, last_save, spent = clock, clock, float(going.seconds)
  while done < epochs:
    before = now
    runs, rows = jax.block_until_ready(
        made.advance(job, going.runs, cells, (samples, np.int32(done)))
    )
    now = time.perf_counter()
    seconds = np.float32(spent + now - clock)
    going = Going(runs, _write(going.history, rows, done), seconds)
    ahead = min(made.stride, epochs - done)
    log.add(job, going.history, done, done + ahead)
    done, played = done + ahead, played + ahead
    if done < epochs:  # A finished job needs no checkpoint.
      writer.check()
    speed = played * rounds_an_epoch(job.setting) * count / (now - clock)
    progress.advance(done, speed, _utility(job, going.history, done))
    rested = not writer.busy and now - last_save > WRITES_APART * writer.took
    long = now - before > LONG_SECONDS and rested
    due = stop or long or now - last_save > SAVE_SECONDS
    if due and done < epochs:
      writer.save(done, _trim(made, job, going))
      last_save = now
    if stop and done < epochs:
      writer.wait()
      raise Interrupted
  spent += time.perf_counter() - clock
  clock = time.perf_counter()
  while not made.ready(LOOK_SECONDS):
    if stop:
      writer.save(done, _trim(made, job, going))
      writer.wait()
      raise Interrupted
  waited = time.perf_counter() - clock
  made = made._replace(seconds=made.seconds + waited)
  progress.trained(waited)
  clock = time.perf_counter()
  found = jax.block_until_ready(
      made.finish(job, going.runs, cells, samples)
  )
  spent += time.perf_counter() - clock
  writer.settle()
  log.close()  # A unit counts as done only when all its events are written.
  return partial(
      work.save_all, record.finished(job, found, going.history, made, spent)
  )


def _trim(made: Compiled, job: Job, going: Going) -> Going:
  """The job's state without padding, whose size depends on the devices."""
  cut = lambda tree: jax.tree.map(lambda x: x[: job.count], tree)
  whole = made.own(job, joined(going.runs))
  return going._replace(runs=cut(whole), history=cut(going.history))


def _resume(
    work: Workdir, job: Job, made: Compiled, cells: list, samples: Any
):
  """The checkpoint of a job in progress as (epochs done, Going), or None."""
  shape = lambda s: jax.ShapeDtypeStruct((job.count, *s.shape[1:]), s.dtype)
  runs, history, seconds = made.shapes
  like = Going(
      jax.tree.map(shape, made.own(job, runs)),
      jax.tree.map(shape, history), seconds,
  )
  # A streamed run may have saved between two strides of a run in memory, which
  # plays whole strides only.
  saved = work.load_checkpoint(
      job.units[-1], like, made.stride, job.setting.config.train.epochs
  )
  if not saved:
    return None
  done, going = saved
  return done, compiling.resumed(made, job, going, cells, samples)


def _write(history, rows, first: int):
  """The history with a stride's rows in their place."""

  def put(whole, part):
    part, whole = np.asarray(part), np.array(whole)
    room = whole[:, first : first + part.shape[1]]
    room[:] = part[:, : room.shape[1]]
    return whole

  return jax.tree.map(put, history, rows)


def _utility(job: Job, history, done: int) -> float | None:
  """The last measured utility, averaged over the trainings still running."""
  measured = history['measured'][: job.count, :done]
  if not measured.any():
    return None
  newest = np.flatnonzero(measured.any(0))[-1]
  curve = history['validation'][main_metric(job.setting)]
  return float(np.mean(curve[: job.count, newest][measured[:, newest]]))
