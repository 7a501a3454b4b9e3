"""The training loop: rounds in a `scan`, epochs in a `scan`, measured inside.

`fit` trains from start to end. `start`, `advance` and `finish` are the same run
in pieces, for callers who inspect it, save it or stop it in between: an epoch's
randomness depends on the run's key and the epoch's number alone, so the pieces
give the same numbers as the whole. `vfljax.epochs` plays one epoch.
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
    Epoch, Take, close, epoch_of, indexed, play_batch, play_epoch,
    play_prepared, taking, zeros_of,
)
from vfljax.plan import Best, Options, Plan, Run, check, check_run
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

  Call it inside a function under `jax.jit`: otherwise every call, so every
  seed, compiles its rounds again.

  Args:
    key: Seeds the weights, the samples' orders and all noise.
    vfl: The networks, aggregation and loss.
    defense: `none()` for an undefended federation.
    txs: One optax transformation per party, the active party's first.
    data: All n training samples: features [n, ...] of each party, labels
      [n, classes].
    epochs: Passes over the data, >= 1.
    batch_size: Samples a round, 1..n.
    **options: The other fields of `Plan`, which have defaults.

  Returns:
    The trained state and a history whose leaves have a leading axis of length
    `epochs`: 'loss' (the mean over the epoch's rounds), 'watch' (what
    `Plan.digest` returns), 'validation' (with `Plan.validate`), and 'measured',
    which is False in epochs that were not watched (their 'watch' and
    'validation' are zeros) and in those after an early stop (their loss is
    NaN).

  Raises:
    ValueError: as `start`.
  """
  plan = Plan(vfl, defense, txs, epochs, batch_size, **options)
  run, history = advance(plan, start(key, plan, data), data, 0, epochs)
  return finish(run), history


def start(key: Key, plan: Plan, data: Batch) -> Run:
  """The run before its first epoch.

  No array in it is shared with another or with the caller, so that `advance`
  under `jit` may reuse its memory (`donate_argnums`).

  Args:
    key: As in `fit`.
    plan: What to train.
    data: As in `fit`.

  Raises:
    ValueError: if a number of the plan is out of its range; if the samples do
      not fit together (parties with different numbers of rows, labels that are
      no [n, classes] floats); if a feature or label is NaN or infinite. The
      last is checked where it is cheap (`samples.check_numbers`): not in large
      arrays, nor inside `jit`.
  """
  checks.key(key)
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
  labels = ()
  if prepare:
    labels = prepare(k_prepare, *jax.tree.map(indexed, (own, data.labels)))
    samples.check_prepared(data.labels, labels, tracing=tracing)
  best = Best(jnp.array(-jnp.inf), jnp.array(-1), state) if plan.best else ()
  run = shards.own(k_run, Run(k_run, state, labels, best))
  # The best epoch's state, labels that `prepare` returned as they were and an
  # optimizer's copy of the weights may be the same arrays as others: outside of
  # a trace each is copied. Outputs of a compiled program share no memory.
  return run if tracing else jax.tree.map(jnp.copy, run)


def advance(
    plan: Plan, run: Run, data: Batch, first: Array | int, epochs: int,
    aligned: bool = False,
) -> tuple[Run, dict[str, Any]]:
  """Plays epochs `first`, ... `first + epochs - 1`: (run, history).

  Epochs past the plan's last are left out; their rows of the history are zeros.

  Args:
    plan: As in `start`.
    run: What `start` or the last `advance` returned.
    data: As in `start`.
    first: Number of the first epoch to play, from 0; may be traced.
    epochs: How many, 1 or more.
    aligned: The caller's promise that a traced `first` is a multiple of
      `epochs` and below `plan.epochs`. Where `epochs` divides `plan.epochs`, no
      epoch is then past the last, and the program omits that test. A promise
      that does not hold is not noticed: epochs past the last are played.

  Raises:
    ValueError: if `epochs` is not an integer >= 1, or `first`, untraced, not a
      whole number >= 0; if no round has that many samples (`remainder`); if
      `run` is no `Run`, or was started with a best and `plan` keeps none, or
      the other way round.
  """
  check_run(run, plan)
  if plan.remainder == 'drop':  # Without a full batch no round is played.
    check(plan, len(data.labels))
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
  if inside:  # No epoch is past the last, so none needs the test.
    return lax.scan(play, run, first + jnp.arange(epochs))

  def play_or_not(run, epoch):
    row = jax.eval_shape(play, run, epoch)[1]
    zeros = zeros_of(row)
    left_out = lambda run, epoch: (run, zeros)
    return lax.cond(epoch < plan.epochs, play, left_out, run, epoch)

  return lax.scan(play_or_not, run, first + jnp.arange(epochs))


def finish(run: Run) -> State:
  """The trained federation: with `Plan.best` the best epoch's, else the last's.

  Also the last epoch's if every validation score was NaN.

  Raises:
    ValueError: if `run` is no `Run`.
  """
  check_run(run, None)
  if not run.best:
    return run.state
  with samples.guarded(run):
    found = run.best.epoch >= 0
    return jax.tree.map(
        lambda a, b: jnp.where(found, a, b), run.best.state, run.state
    )


def is_watched(epoch: Any, every: int, epochs: int) -> Any:
  """Whether epoch number `epoch`, from 0, is measured.

  Measured are every `every`-th epoch and the last of `epochs`.
  """
  return ((epoch + 1) % every == 0) | (epoch == epochs - 1)


def _epoch(plan: Plan, run: Run, rows: tuple[int, Take], epoch: Array):
  """One epoch, watched or not, played or (after an early stop) not."""
  if plan.every == 1:
    measured = jnp.array(True)
    play = lambda run: play_epoch(plan, run, rows, epoch, True)
  else:
    measured = is_watched(epoch, plan.every, plan.epochs)
    play = lambda run: _play_at_times(plan, run, rows, epoch, measured)
  if not plan.patience:
    run, history = play(run)
    return run, history | dict(measured=measured)
  # Measured epochs since the best; this one is not played yet.
  since = (epoch - run.best.epoch - 1) // plan.every
  stopped = (run.best.epoch >= 0) & (since >= plan.patience)
  shapes = jax.eval_shape(play, run)[1]

  def skip(run):
    return run, _unmeasured(jnp.full_like(shapes['loss'], jnp.nan), shapes)

  run, history = lax.cond(stopped, skip, play, run)
  return run, history | dict(measured=measured & ~stopped)


def _play_at_times(
    plan: Plan, run: Run, rows: tuple[int, Take], epoch, measured
):
  """Plays an epoch, measured if `measured`, a traced bool: (run, history).

  On a CPU one round is compiled, with a branch that watches. On an accelerator
  the branch would cost a synchronization with the host in every round, so two
  epochs are compiled and one branch chooses between them.
  """
  if target.kind() == 'cpu':
    return play_epoch(plan, run, rows, epoch, measured)
  watched = lambda run: play_epoch(plan, run, rows, epoch, True)
  shapes = jax.eval_shape(watched, run)[1]

  def unwatched(run):
    run, history = play_epoch(plan, run, rows, epoch, False)
    return run, _unmeasured(history['loss'], shapes)

  return lax.cond(measured, watched, unwatched, run)


def _unmeasured(loss: Array, shapes: dict[str, Any]) -> dict[str, Any]:
  """The history of an epoch of which only the loss is known: zeros else."""
  zeros = zeros_of(shapes)
  return zeros | dict(loss=jnp.asarray(loss, zeros['loss'].dtype))
