"""Trains a job on samples that stay on the host: `--config.data.stream`.

The steps are the same as in memory, start, advance and finish, and so are the
numbers, except for rounding. For each training the device holds the validation
and test samples, the defender's own samples, and two chunks of rounds. The
training samples stay on the host, for example in a memory-mapped file.
"""
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import stream, sweep, train
from vfljax.data import scale
from vfljax.runner.compiled import calls, cell as one_cell
from vfljax.runner.experiment import division
from vfljax.runner.experiment.division import Splits
from vfljax.runner.experiment.jobs import Job
from vfljax.runner.experiment.plans import every
from vfljax.runner.machine import tuning
from vfljax.types import Batch


class Host(NamedTuple):
  """A job's samples on the host, and each cell's training rows."""

  samples: Batch
  rows: list[np.ndarray]


class Held(NamedTuple):
  """What one training has on the device: unscaled samples, and their scales.

  Of the training samples it has only the first round, for the shapes.
  """

  splits: Splits
  scales: tuple


class Programs(NamedTuple):
  """A job's compiled functions of its cells."""

  start: Any
  order: Any
  play: dict[tuple[bool, int], Any]  # By whether watched, and rounds.
  close: dict[bool, Any]  # By whether watched.
  finish: Any
  runs: Any  # Shapes of the trainings ...
  row: dict[str, Any]  # ... and of an epoch's history, leaves [cells, ...].


def place(
    job: Job, cells: dict[str, Any], rehearsal: bool = False
) -> tuple[dict[str, Any], Host]:
  """(cells with their `Held` on the devices, what stays on the host).

  Args:
    job: The job.
    cells: Its trainings.
    rehearsal: Whether only shapes matter. Then scales are computed from one
      round's samples, because reading all of a mapped file takes long.
  """
  setting, config = job.setting, job.setting.config
  samples, found = setting.samples, {}
  divide = jax.jit(
      lambda key: [
          np.arange(len(samples.labels))[own] if isinstance(own, slice) else own
          for own in division.rows_of(key, setting.sizes, setting.official)
      ]
  )
  for seed in set(np.asarray(cells['seed']).tolist()):
    key = division.key_of(seed if config.data.resplit else config.first_seed)
    rows = [np.asarray(r) for r in divide(key)]
    same = [f for f in found.values() if np.array_equal(f[1], rows[0])]
    first = rows[0][: config.train.batch_size]
    fitted = first if rehearsal else rows[0]
    scales = same[0][0].scales if same else tuple(
        x if x is None else scale_of(x, fitted, config.data.scale)
        for x in samples.features
    )
    parts = [first, *rows[1:]]
    splits = Splits(*(
        jax.tree.map(lambda x, own=own: x[own], samples) for own in parts
    ))
    found[seed] = Held(splits, scales), rows[0]
  order = [found[seed] for seed in np.asarray(cells['seed']).tolist()]
  held = jax.tree.map(lambda *x: np.stack(x), *(own for own, _ in order))
  cells = sweep.place(cells | dict(held=held), ())[0]
  return cells, Host(samples, [rows for _, rows in order])


def scale_of(x: np.ndarray, rows: np.ndarray, how: str) -> scale.Stats | None:
  """Statistics of the training rows of `x` to scale by, the same as in memory.
  """
  images = x.ndim == 4
  if how == 'none' or division.is_in_range(x, how):
    return None
  seen = scale.moments(x, rows, whole=images)
  shift, spread = (seen.mean, seen.std) if how == 'standard' else (
      seen.low, seen.high - seen.low
  )
  if images:
    unit = 255 if x.dtype == np.uint8 else 1
    return _stats(shift / unit, spread / unit)
  factor = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)
  return _stats(shift, factor)


def _stats(*numbers: Any) -> scale.Stats:
  arrays: Any = (np.asarray(x, np.float32) for x in numbers)
  return scale.Stats(*arrays)


def compile_job(job: Job, cells: dict[str, Any], host: Host) -> Programs:
  """Compiles a job's programs; `cells` and `host` are as `place` gives them."""
  where = cells['seed'].sharding

  def shaped(tree, size: int = 0):
    """The tree's shapes on the cells' devices, with `size` rounds if given."""
    return jax.tree.map(
        lambda s: jax.ShapeDtypeStruct(
            (s.shape[0], size, *s.shape[2:]) if size else s.shape, s.dtype,
            sharding=where,
        ), tree,
    )

  def compiled(fn, cells, shared):
    whole = jax.jit(calls.over(fn, job))
    return tuning.compiled(whole.lower(cells, calls.also(job, shared)))

  def called(program):
    return lambda cells, shared: program(cells, calls.also(job, shared))

  def going_on(fn, own, shared):
    """Compiles a step whose new runs reuse the memory of the old ones."""
    whole = jax.jit(sweep.over_runs(
        lambda run, cell, shared: fn(job, cell | dict(runs=run), shared)
    ), donate_argnums=0)
    return tuning.compiled(
        whole.lower(both['runs'], dict(cells=cells) | own, shared)
    )

  start = compiled(one_cell.start, cells, ())
  both = dict(cells=cells, runs=shaped(start.out_info))
  order = compiled(_order, both, np.int32(0))
  rounds, keys = order.out_info
  count = rounds.shape[1]
  sizes = {p.stop - p.start for p in _parts(job, count)}
  play, close, row = {}, {}, {}
  for watched in sorted({_is_watched(job, e) for e in range(_epochs(job))}):
    for size in sizes:
      part = shaped(_part(host, np.zeros((*rounds.shape[:1], 1, 1), int)), size)
      part = jax.tree.map(lambda s: jax.ShapeDtypeStruct(
          (*s.shape[:2], rounds.shape[2], *s.shape[3:]), s.dtype, sharding=where
      ), part)
      more = dict(part=part, keys=shaped(keys, size))
      play[watched, size] = going_on(partial(_play, watched), more, ())
    seen = shaped(play[watched, max(sizes)].out_info[1], count)
    close[watched] = going_on(
        partial(_close, watched), dict(seen=seen), np.int32(0)
    )
    row = close[watched].out_info[1]  # The last epoch's, which is watched.
  finish = compiled(one_cell.finish, both, ())
  return Programs(
      called(start), called(order), play, close, called(finish), both['runs'],
      row,
  )


def advance(job: Job, made: Programs, runs: Any, cells: Any, host: Host, first):
  """Plays epoch `first`: (runs, history with leaves [cells, 1, ...])."""
  first, watched = np.int32(first), _is_watched(job, int(first))
  rounds, keys = made.order(dict(cells=cells, runs=runs), first)
  order, seen = np.asarray(rounds), []
  for part in _parts(job, order.shape[1]):
    own = dict(part=_part(host, order[:, part]), keys=keys[:, part])
    # This part was gathered while the device trains on the one before. Waiting
    # for earlier parts keeps at most two on the device.
    jax.block_until_ready(seen[-2:-1])
    runs, rows = made.play[watched, part.stop - part.start](
        runs, dict(cells=cells) | sweep.place(own, ())[0], ()
    )
    seen.append(rows)
  seen = sweep.place(stream.joined(seen, 1), ())[0]
  runs, row = made.close[watched](runs, dict(cells=cells, seen=seen), first)
  zeros = jax.tree.map(lambda s: np.zeros(s.shape, s.dtype), made.row)
  return runs, jax.tree.map(lambda x: x[:, None], zeros | row)


def _order(job: Job, cell: dict[str, Any], epoch):
  """(a cell's rounds in an epoch, [rounds, batch]; their keys)."""
  own = _epoch(job, one_cell.prepare(job, cell['cells'], ()).plan, cell, epoch)
  return own.rounds, own.keys[:-1]


def _play(watched: bool, job: Job, cell: dict[str, Any], shared):
  prepared = one_cell.prepare(job, cell['cells'], shared)
  scales = cell['cells']['held'].scales
  return stream.play(
      prepared.plan, cell['runs'], cell['part'], cell['keys'], watched,
      lambda features: division.scale_all(features, scales),
  )


def _close(watched: bool, job: Job, cell: dict[str, Any], epoch):
  plan, seen = one_cell.prepare(job, cell['cells'], ()).plan, cell['seen']
  own = _epoch(job, plan, cell, epoch)
  run, row = train.close(
      plan, cell['runs'], own, seen['loss'], [seen['watch']], epoch, watched
  )
  return run, row | dict(measured=jnp.array(watched))


def _epoch(job: Job, plan: train.Plan, cell: dict[str, Any], epoch):
  return train.epoch_of(plan, cell['runs'].key, epoch, job.setting.sizes.train)


def _epochs(job: Job) -> int:
  return job.setting.config.train.epochs


def _is_watched(job: Job, epoch: int) -> bool:
  return train.is_watched(epoch, every(job.setting), _epochs(job))


def _parts(job: Job, rounds: int) -> list[slice]:
  return list(stream.parts(range(rounds), job.setting.stream))


def _part(host: Host, order: np.ndarray) -> Batch:
  """Every cell's samples of its rounds, [cells, rounds, batch, ...]."""
  # All strengths of a seed have the same order, so it is read once.
  found: dict[tuple[int, bytes], Batch] = {}
  names = [(id(r), own.tobytes()) for own, r in zip(order, host.rows)]
  for name, own, rows in zip(names, order, host.rows):
    if name not in found:
      found[name] = stream.gather(host.samples, own, rows)
  return jax.tree.map(lambda *x: np.stack(x), *(found[name] for name in names))
