"""The training loop: rounds in a `scan`, epochs in a `scan`, measured inside.

`fit` trains from start to end. `start`, `advance` and `finish` are the same run
in pieces, for who wants to look at it, save it or stop it in between: an epoch
depends on the run's key and the epoch's number alone, so the pieces give the
same numbers as the whole. What is played in an epoch is in `vfljax.epochs`.
"""
from typing import Any, Unpack

import jax
from jax import lax
from jax.core import Tracer
import jax.numpy as jnp

from vfljax import check as checks
from vfljax import protocol, samples, shards, target
from vfljax.defense import Defense, checked
from vfljax.epochs import (
    Epoch, Take, close, epoch_of, play_batch, play_epoch, play_prepared,
    taking, zeros_of,
)
from vfljax.plan import Best, Options, Plan, Run, check
from vfljax.types import VFL, Array, Batch, Key, State, Transforms

__all__ = [
    'Best', 'Epoch', 'Options', 'Plan', 'Run', 'advance', 'check', 'close',
    'epoch_of', 'finish', 'fit', 'is_watched', 'play_batch', 'play_prepared',
    'start',
]


def fit(
    key: Key, vfl: VFL, defense: Defense, txs: Transforms, data: Batch, *,
    epochs: int, batch_size: int, **options: Unpack[Options],
) -> tuple[State, dict[str, Any]]:
  """Trains a federation.

  To be called inside of a function under `jax.jit`: else every call compiles
  its rounds anew, seed by seed.

  Args:
    key: Seeds weights, orders and all noise.
    vfl: Who computes what.
    defense: What protects it.
    txs: One optax transformation per party, the active party's first.
    data: All training samples.
    epochs: Passes over the data, >= 1.
    batch_size: Samples a round, 1..n.
    **options: The other fields of `Plan`, which have defaults.

  Returns:
    The trained state and a history whose leaves have a leading axis of length
    `epochs`: 'loss' (the epoch's mean), 'watch', 'validation', and 'measured',
    which is False in epochs that were not watched (their rows are zeros) and
    in those after an early stop (their loss is nan).

  Raises:
    ValueError: as `start`.
  """
  plan = Plan(vfl, defense, txs, epochs, batch_size, **options)
  run, history = advance(plan, start(key, plan, data), data, 0, epochs)
  return finish(run), history


def start(key: Key, plan: Plan, data: Batch) -> Run:
  """A run before its first epoch, all of whose arrays are its own.

  So `advance` under `jit` may be given its memory (`donate_argnums`).

  Raises:
    ValueError: if a number of the plan is out of its range, the samples do not
      fit together (parties with different rows, labels that are no [n, classes]
      floats), or one of their numbers is NaN or infinite, as far as that can be
      seen without reading much or waiting for a device, see
      `samples.check_numbers`: not in large arrays, nor inside `jit`.
  """
  samples.check(data)
  check(plan, len(data.labels))
  with samples.guarded(data, plan.auxiliary):
    return _start(key, plan, data)


def _start(key: Key, plan: Plan, data: Batch) -> Run:
  k_init, k_prepare, k_run = jax.random.split(key, 3)
  tracing = isinstance(k_init, Tracer)
  samples.check_numbers(data, tracing)
  if plan.auxiliary is not None:
    samples.check(plan.auxiliary, 'auxiliary')
    samples.check_numbers(plan.auxiliary, tracing, 'auxiliary')
  first = jax.tree.map(lambda x: x[: plan.batch_size], data)
  state = protocol.init(
      k_init, plan.vfl, plan.defense, plan.txs, first, plan.adversary,
      plan.auxiliary,
  )
  prepare, own = checked(plan.defense).prepare, data.features[0]
  labels = prepare(k_prepare, own, data.labels) if prepare else ()
  best = Best(jnp.array(-jnp.inf), jnp.array(-1), state) if plan.best else ()
  run = shards.own(k_run, Run(k_run, state, labels, best))
  # A best epoch that is the first, labels that nobody prepared, an optimizer's
  # copy of the weights: in a traced program an output's memory is its own.
  return run if tracing else jax.tree.map(jnp.copy, run)


def advance(
    plan: Plan, run: Run, data: Batch, first: Array | int, epochs: int,
    aligned: bool = False,
) -> tuple[Run, dict[str, Any]]:
  """Plays epochs `first`, ... `first + epochs - 1`: (run, history).

  Epochs past the plan's last are left out; their rows of the history are zeros.

  Args:
    first: From 0; may be traced.
    epochs: 1 or more.
    aligned: Says of a traced `first` that it is a multiple of `epochs`, and
      below the plan's number of epochs. Where `epochs` divides that number, no
      epoch is past the last then, and the program need not ask. Whoever says so
      of another one plays epochs that the plan does not have.

  Raises:
    ValueError: if `epochs` is no such number, or a `first` that is not traced
      no whole one from 0.
  """
  checks.whole('advance: first', first, 0)
  checks.count('advance: epochs', epochs)
  with samples.guarded(data, run):
    return _advance(plan, run, data, first, epochs, aligned)


def _advance(
    plan: Plan, run: Run, data: Batch, first: Array | int, epochs: int,
    aligned: bool,
) -> tuple[Run, dict[str, Any]]:
  rows = len(data.labels), taking(plan, run, data)
  play = lambda run, epoch: _epoch(plan, run, rows, epoch)
  if isinstance(first, Tracer):
    inside = aligned and plan.epochs % epochs == 0
  else:
    inside = int(first) + epochs <= plan.epochs
  if inside:  # No epoch is past the last.
    return lax.scan(play, run, first + jnp.arange(epochs))

  def play_or_not(run, epoch):
    row = jax.eval_shape(play, run, epoch)[1]
    zeros = zeros_of(row)
    left_out = lambda run, epoch: (run, zeros)
    return lax.cond(epoch < plan.epochs, play, left_out, run, epoch)

  return lax.scan(play_or_not, run, first + jnp.arange(epochs))


def finish(run: Run) -> State:
  """The trained federation: the best epoch's, where that was asked for.

  The last epoch's if no validation score was a number.
  """
  if not run.best:
    return run.state
  with samples.guarded(run):
    found = run.best.epoch >= 0
    return jax.tree.map(
        lambda a, b: jnp.where(found, a, b), run.best.state, run.state
    )


def is_watched(epoch: Any, every: int, epochs: int) -> Any:
  """Whether an epoch, from 0, is measured: each `every`-th, and the last."""
  return ((epoch + 1) % every == 0) | (epoch == epochs - 1)


def _epoch(plan: Plan, run: Run, rows: tuple[int, Take], epoch: Array):
  """One epoch, watched or not, played or (after an early stop) not."""
  if plan.every == 1:
    measured = jnp.array(True)
    play = lambda run: play_epoch(plan, run, rows, epoch, True)
  else:
    measured = is_watched(epoch, plan.every, plan.epochs)
    play = lambda run: _play(plan, run, rows, epoch, measured)
  if not plan.patience:
    run, history = play(run)
    return run, history | dict(measured=measured)
  since = (epoch - run.best.epoch) // plan.every
  stopped = (run.best.epoch >= 0) & (since > plan.patience)
  row = jax.eval_shape(play, run)[1]
  unknown = lambda: dict(loss=jnp.full_like(row['loss'], jnp.nan))
  skip = lambda run: _fill((run, unknown()), row)
  run, history = lax.cond(stopped, skip, play, run)
  return run, history | dict(measured=measured & ~stopped)


def _play(plan: Plan, run: Run, rows: tuple[int, Take], epoch, measured):
  """An epoch that may be measured: (run, history).

  On a CPU one round is compiled, which looks when it is told to. Elsewhere that
  would be a question to the host each round, so there are two.
  """
  if target.kind() == 'cpu':
    return play_epoch(plan, run, rows, epoch, measured)
  blank = lambda run: play_epoch(plan, run, rows, epoch, False)
  watched = lambda run: play_epoch(plan, run, rows, epoch, True)
  row = jax.eval_shape(watched, run)[1]
  return lax.cond(
      measured, watched, lambda run: _fill(blank(run), row), run
  )


def _fill(played: tuple[Run, dict], row: dict) -> tuple[Run, dict]:
  """Completes a history row of an epoch that was not measured with zeros."""
  run, history = played
  zeros = zeros_of(row)
  loss = jnp.asarray(history['loss'], zeros['loss'].dtype)
  return run, zeros | dict(loss=loss)
