"""A family's programs: compiled now, or kept by an earlier start.

A program runs a *piece* of a job's trainings in a call. The piece is all of
them if the job shares its programs with no other job (`families`).
"""
from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from vfljax import measure, sweep
from vfljax.runner.compiled import (
    attempts, calls, cell, families, memories, stolen,
)
from vfljax.runner.compiled.cutting import joined
from vfljax.runner.compiled.families import Family
from vfljax.runner.compiled.making import Maker
from vfljax.runner.compiled.strides import stride_of
from vfljax.runner.experiment.jobs import Job


class Compiled(NamedTuple):
  """A job's compiled programs.

  They take and return cells and runs as lists with an entry for each piece.
  """

  name: str
  place: Callable  # job -> (cells, samples) on the devices
  start: Callable  # (cells, samples) -> runs
  advance: Callable  # (job, runs, cells, (samples, first epoch))
  finish: Callable  # (job, runs, cells, samples); waits until it is compiled
  ready: Callable  # waits at most so many seconds; whether `finish` is compiled
  own: Callable  # (job, runs) -> runs as a checkpoint of the job has them
  whole: Callable  # (job, such runs, fresh ones) -> runs
  shapes: 'Going'  # shapes of a piece's runs and history
  stride: int  # epochs in a call of `advance`
  seconds: float  # that the job waited for its programs
  crossing: dict[str, Any]  # `auditing.of_job`: what crosses in a round


class Going(NamedTuple):
  """A job in progress. A checkpoint holds it with its `own` runs, joined."""

  runs: Any  # train.Run, leaves [cells, ...]: a list of pieces
  history: Any  # leaves [cells, epochs, ...], zeros for epochs to come
  seconds: Any  # spent so far


class _Made(NamedTuple):
  """A family's programs, which may still be compiling.

  Attributes:
    programs: 'start', 'advance', 'finish', and if the family has them,
      'baselines' and the names in `Family.attack_jobs` -> future of (program,
      its name in the store or '').
    runs: Shapes of a piece's trainings.
    history: Shapes of a piece's history over all epochs.
    stride: Epochs in a call of 'advance'.
    fresh: Whether this process has traced them.
  """

  programs: dict[str, Future]
  runs: Any
  history: Any
  stride: int
  fresh: bool


class Programs:
  """A family's programs: traced here, then compiled or read in threads."""

  def __init__(self, family: Family, maker: Maker, turn: int = 0):
    """Starts to compile or read them; all families share one `maker`.

    Args:
      family: The family.
      maker: Compiles them.
      turn: Programs of a family with a smaller one come first.
    """
    self._family, self._maker, self._turn = family, maker, turn
    self._made = self._read() or self._trace()

  def memory(self) -> Any:
    """XLA's memory analysis of the program 'advance'."""
    self._result('advance')
    return self._made.programs['advance'].result()[0].memory_analysis()

  def compiled(self, job: Job) -> Compiled:
    """The programs for one of the family's jobs, once it can be trained.

    Programs that measure after training may still be compiling then.
    """
    family = self._family
    start, ahead = self._result('start'), self._result('advance')
    last = ['finish']
    attacks = {name for name, _ in family.attacked(job)}
    if 'baselines' in self._made.programs and families.has_baselines(job):
      last.append('baselines')

    def ready(seconds):
      wanted = [self._made.programs[name] for name in (*last, *attacks)]
      return not wait(wanted, seconds).not_done

    def advance(job, runs, cells, shared):
      played = [ahead(r, c, shared) for r, c in zip(runs, cells)]
      return [run for run, _ in played], joined([rows for _, rows in played])

    def finish(job, runs, cells, samples):
      ends = [self._result(name) for name in last]

      def ended(cell, run):  # One piece at a time, to hold one initial state.
        begin = partial(start, cell, samples)
        both = calls.at_the_end(family, cell, run, begin)
        return [end(both, samples) for end in ends]

      found = [joined(list(x)) for x in zip(*map(ended, cells, runs))]
      if family.attack_cells:
        found[0], weights = found[0]
        found += self._attacked(job, cells, weights, samples)
      return {k: v for part in found for k, v in part.items()}

    return Compiled(
        job.program, partial(calls.place, family),
        lambda cells, samples: [start(c, samples) for c in cells],
        advance, finish, ready,
        partial(memories.own, family), partial(memories.whole, family),
        Going(
            self._made.runs, self._made.history,
            jax.ShapeDtypeStruct((), np.float32),
        ), self._made.stride, 0.0, {},
    )

  def _attacked(self, job, cells, weights, samples) -> list[dict[str, Any]]:
    """The results of the job's attacks on stolen weights, program by program.
    """
    family, found = self._family, []
    asked = [(*one, self._result(one[0])) for one in family.attacked(job)]
    if not asked:
      return []
    seeds, size = joined([c['seed'] for c in cells]), family.attack_cells
    cut = lambda given: calls.cut(given, size, samples)
    repeats = job.setting.config.attack.repeats
    turns = [
        cut(dict(cells=dict(seed=seeds)) | more)
        for more in attempts.arguments(weights, len(seeds), repeats)
    ]

    def played(do, **number):
      return attempts.mean((
          joined([do(p | number, samples) for p in pieces]) for pieces in turns
      ), repeats)

    for name, attack, do in asked:
      if attack:
        which = [*family.attack_jobs[name].setting.after_training].index(attack)
        number = cut(dict(which=np.full(size, which, np.int32)))[0]
        each = played(do, **number)
        found.append({
            measure.label(attack, int(k), job.setting.attackers): of
            for k, of in each.items()
        })
      else:
        found.append(played(do))
    return found

  def _result(self, name: str) -> Callable[..., Any]:
    """A program, once compiled, with the argument of `calls.also` filled in."""
    made = self._made
    self._maker.wait(made.programs[name])
    try:
      program = made.programs[name].result()[0]
    except Exception:
      if made.fresh:
        raise
      # The kept program does not work on this machine: trace it again.
      self._made = self._trace()
      return self._result(name)
    job = self._family.job
    return lambda *own: program(*own[:-1], calls.also(job, own[-1]))

  def _keep(self, made: _Made) -> None:
    """Keeps the programs' names for the next start, once all are there."""
    futures = made.programs
    if not all(f.done() for f in futures.values()):
      return
    if any(f.cancelled() or f.exception() for f in futures.values()):
      return
    names = {name: future.result()[1] for name, future in futures.items()}
    kept = self._maker.kept
    if kept and all(names.values()):
      bare = lambda s: jax.ShapeDtypeStruct(s.shape, s.dtype)
      shapes = jax.tree.map(bare, (made.runs, made.history))
      kept.write(self._label, (names, shapes, made.stride))

  def _trace(self) -> _Made:
    """Traces the programs here and compiles them in threads."""
    family, job = self._family, self._family.job
    spread, _ = sweep.shardings()

    def begin(name, fn, *arguments, donate=()):
      jitted = jax.jit(
          calls.called(f'{name} {family.name}', fn), out_shardings=spread,
          donate_argnums=donate, keep_unused=True,
      )
      lowered = jitted.lower(*arguments[:-1], calls.also(job, arguments[-1]))
      # The longest first, so that no thread ends with it while others rest.
      turn = self._turn, name != 'advance'
      programs[name] = self._maker.make(lowered, turn)
      return lowered.out_info

    programs: dict[str, Future] = {}
    pieces, samples = calls.place(family, job)
    cells = pieces[0]
    first = calls.beginning(cell.start, job)
    runs = calls.shapes(begin('start', first, cells, samples))
    stride = stride_of(job, runs)
    play = calls.going_on(cell.advance, job, stride)
    # The new runs reuse the memory of the old ones.
    _, rows = begin(
        'advance', lambda runs, cells, shared: play(
            runs, dict(cells=cells), shared
        ), runs, cells, (samples, np.int32(0)), donate=0,
    )
    epochs = job.setting.config.train.epochs
    history = jax.tree.map(
        lambda s: jax.ShapeDtypeStruct((len(s), epochs, *s.shape[2:]), s.dtype),
        rows,
    )
    both = calls.at_the_end(family, cells, runs, lambda: runs)
    if family.attack_cells:
      close = calls.over(cell.close, job, bool(family.attack_jobs))
      _, weights = begin('finish', close, both, samples)
      programs |= self._attacking(cells['seed'], weights, samples)
    else:
      begin('finish', calls.beginning(cell.finish, job), both, samples)
    if family.baselines and _needs_runs(family):
      attack = calls.beginning(cell.without_utility, family.baselines)
      begin('baselines', attack, both, samples)
    made = _Made(programs, runs, history, stride, True)
    for future in programs.values():
      future.add_done_callback(lambda _: self._keep(made))
    return made

  def _attacking(self, seed, weights, samples) -> dict[str, Future]:
    """Name -> program of attacks on stolen weights with these shapes."""
    family, found = self._family, {}
    size = family.attack_cells
    repeats = family.job.setting.config.attack.repeats
    number = jax.ShapeDtypeStruct((size,), np.int32)
    seeds = jax.ShapeDtypeStruct((size,), seed.dtype)
    number, given = calls.shapes((number, dict(
        cells=dict(seed=seeds), **attempts.shapes(weights, size, repeats)
    )))
    for name, job in family.attack_jobs.items():
      about = name, *stolen.attacks(job.setting), str(given)
      one = any(job is each for each in family.started)
      own = given | (dict(which=number) if one else {})
      lower = partial(self._lowered, name, job, own, samples)
      found[name] = self._maker.known(about, lower, (self._turn, True))
    return found

  def _lowered(self, name, job, given, samples) -> jax.stages.Lowered:
    spread, _ = sweep.shardings()
    jitted = jax.jit(
        calls.called(name, calls.beginning(cell.attack, job)),
        out_shardings=spread, keep_unused=True,
    )
    return jitted.lower(given, calls.also(job, samples))

  def _read(self) -> _Made | None:
    """The programs that an earlier start kept; `None` if there are none."""
    kept = self._maker.kept
    found = kept.read(self._label) if kept else None
    if found is None:
      return None
    names, (runs, history), stride = found
    programs = {part: self._maker.load(name) for part, name in names.items()}
    return _Made(programs, calls.shapes(runs), history, stride, False)

  @property
  def _label(self) -> str:
    """The name of these programs in the experiment's store."""
    own = self._family
    return (
        f'{own.name}, {own.cells} a call, baselines: {bool(own.baselines)}, '
        f'attacks: {own.attack_cells}'
    )


def _needs_runs(family: Family) -> bool:
  """Whether some of the family's baselines need more than stolen weights."""
  assert family.baselines
  setting = family.baselines.setting
  if not family.attack_cells:
    return True
  return bool(stolen.without(setting).after_training)
