"""The training loop: rounds in a `scan`, epochs in a `scan`, measured inside.

`fit` trains from start to end. `start`, `advance` and `finish` are the same run
in pieces, for who wants to look at it, save it or stop it in between: an epoch
depends on the run's key and the epoch's number alone, so the pieces give the
same numbers as the whole.
"""
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp
import optax

from vfljax import protocol
from vfljax.adversary import Adversary
from vfljax.defense import Defense, Holdings
from vfljax.numerics import permutation
from vfljax.types import VFL, Array, Batch, Key, Round, State

REMAINDERS = ('drop', 'keep', 'pad')


def _nothing(key: Key, played: Round) -> Any:
  return ()


class Plan(NamedTuple):
  """A training run without its data: everything here is static but traced
  strengths inside `defense` and `txs`.

  Attributes:
    vfl: Who computes what.
    defense: What protects it.
    txs: One optax transformation per party, the active party's first.
    epochs: Passes over the data, >= 1.
    batch_size: Samples a round, 1..n.
    remainder: What happens to the last n mod batch_size samples of an epoch:
      'drop' leaves them out (they come in another epoch, since each has a new
      order), 'keep' plays one smaller round, 'pad' fills the round with rows
      that have no label, no loss and no gradient.
    adversary: Passive parties that deviate.
    watch: (key, round) -> row; reduces one round to what is worth keeping.
      Attacks on single rounds run here, so that no transcript is ever stored.
    digest: (rows of full rounds[, rows of the smaller round]) -> row; reduces
      an epoch's rows, each leaf with a leading axis over rounds.
    validate: (key, state) -> {name: scalar}; what to measure after an epoch.
    every: Watch and validate each `every`-th epoch, and always the last.
    best: Name of the `validate` entry by which the best epoch's state is kept,
      the larger the better; '' keeps the last. A name that starts with '-'
      means the smaller the better ('-loss').
    auxiliary: The active party's own samples, for defenses that need some.
    patience: With `best`: stop after so many measured epochs without a new
      best; 0 never stops. It saves time where seeds are looped over, as on a
      CPU; under vmap a stopped seed is computed and thrown away.
  """

  vfl: VFL
  defense: Defense
  txs: Sequence[optax.GradientTransformation]
  epochs: int
  batch_size: int
  remainder: str = 'drop'
  adversary: Adversary = protocol.HONEST
  watch: Callable[[Key, Round], Any] = _nothing
  digest: Callable[..., Any] = lambda *rows: rows[0] if len(rows) == 1 else rows
  validate: Callable[[Key, State], dict[str, Array]] | None = None
  every: int = 1
  best: str = ''
  patience: int = 0
  auxiliary: Batch | None = None


class Best(NamedTuple):
  """The best epoch so far, by validation."""

  score: Array
  epoch: Array
  state: State


class Run(NamedTuple):
  """A training run between two epochs; a pytree that can be saved.

  Attributes:
    key: Seeds every epoch; never changes.
    state: The federation.
    labels: The training labels as the defense prepared them, or ().
    best: The best epoch so far, or () if the plan keeps none.
  """

  key: Key
  state: State
  labels: Any
  best: Any


def fit(
    key: Key, vfl: VFL, defense: Defense,
    txs: Sequence[optax.GradientTransformation], data: Batch, *, epochs: int,
    batch_size: int, **options,
) -> tuple[State, dict[str, Any]]:
  """Trains a federation.

  Args:
    key: Seeds weights, orders and all noise.
    vfl: Who computes what.
    defense: What protects it.
    txs: One optax transformation per party, the active party's first.
    data: All training samples.
    epochs: Passes over the data, >= 1.
    batch_size: Samples a round, 1..n.
    **options: The other fields of `Plan`.

  Returns:
    The trained state and a history whose leaves have a leading axis of length
    `epochs`: 'loss' (the epoch's mean), 'watch', 'validation', and 'measured',
    which is False in epochs that were not watched (their rows are zeros) and
    in those after an early stop (their loss is nan).

  Raises:
    ValueError: if a number is out of its range.
  """
  plan = Plan(vfl, defense, txs, epochs, batch_size, **options)
  run, history = advance(plan, start(key, plan, data), data, 0, epochs)
  return finish(run), history


def check(plan: Plan, samples: int) -> None:
  """Raises ValueError if `plan` cannot train on so many samples."""
  if plan.epochs < 1:
    raise ValueError(f'epochs must be 1 or more, got {plan.epochs}.')
  if not 1 <= plan.batch_size <= samples:
    raise ValueError(
        f'batch_size must be between 1 and the {samples} training samples, got '
        f'{plan.batch_size}.'
    )
  if plan.remainder not in REMAINDERS:
    raise ValueError(
        f'remainder must be one of {", ".join(REMAINDERS)}; got '
        f'{plan.remainder!r}.'
    )
  if plan.every < 1:
    raise ValueError(f'every must be 1 or more, got {plan.every}.')
  if plan.best and plan.validate is None:
    raise ValueError('Keeping the best epoch needs `validate`.')
  if plan.patience < 0 or plan.patience and not plan.best:
    raise ValueError(
        'patience must be 0 or more, and needs `best` to wait for; got '
        f'{plan.patience}.'
    )


def start(key: Key, plan: Plan, data: Batch) -> Run:
  """A run before its first epoch."""
  check(plan, len(data.labels))
  k_init, k_prepare, k_run = jax.random.split(key, 3)
  first = jax.tree.map(lambda x: x[: plan.batch_size], data)
  state = protocol.init(
      k_init, plan.vfl, plan.defense, plan.txs, first, plan.adversary,
      plan.auxiliary,
  )
  labels = ()
  if plan.defense.prepare:
    labels = plan.defense.prepare(k_prepare, data.features[0], data.labels)
  best = Best(jnp.array(-jnp.inf), jnp.array(-1), state) if plan.best else ()
  return Run(k_run, state, labels, best)


def advance(
    plan: Plan, run: Run, data: Batch, first: Array | int, epochs: int
) -> tuple[Run, dict[str, Any]]:
  """Plays epochs `first`, ... `first + epochs - 1`: (run, history).

  Epochs past the plan's last are left out; their rows of the history are zeros.
  """
  play = lambda run, epoch: _epoch(plan, run, data, epoch)
  if plan.epochs % epochs == 0:  # No call goes past the end.
    return lax.scan(play, run, first + jnp.arange(epochs))

  def play_or_not(run, epoch):
    row = jax.eval_shape(play, run, epoch)[1]
    zeros = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), row)
    left_out = lambda run, epoch: (run, zeros)
    return lax.cond(epoch < plan.epochs, play, left_out, run, epoch)

  return lax.scan(play_or_not, run, first + jnp.arange(epochs))


def finish(run: Run) -> State:
  """The trained federation: the best epoch's, where that was asked for.

  The last epoch's if no validation score was a number.
  """
  if not run.best:
    return run.state
  found = run.best.epoch >= 0
  return jax.tree.map(
      lambda a, b: jnp.where(found, a, b), run.best.state, run.state
  )


def is_watched(epoch: Any, every: int, epochs: int) -> Any:
  """Whether an epoch, from 0, is measured: each `every`-th, and the last."""
  return ((epoch + 1) % every == 0) | (epoch == epochs - 1)


def _epoch(plan: Plan, run: Run, data: Batch, epoch: Array):
  """One epoch, watched or not, played or (after an early stop) not."""
  if plan.every == 1:
    measured = jnp.array(True)
    play = lambda run: _play_epoch(plan, run, data, epoch, True)
  else:
    measured = is_watched(epoch, plan.every, plan.epochs)
    blank = lambda run: _play_epoch(plan, run, data, epoch, False)
    watched = lambda run: _play_epoch(plan, run, data, epoch, True)
    row = jax.eval_shape(watched, run)[1]
    play = lambda run: lax.cond(
        measured, watched, lambda run: _fill(blank(run), row), run
    )
  if not plan.patience:
    run, history = play(run)
    return run, history | dict(measured=measured)
  since = (epoch - run.best.epoch) // plan.every
  stopped = (run.best.epoch >= 0) & (since > plan.patience)
  row = jax.eval_shape(play, run)[1]
  skip = lambda run: _fill((run, dict(loss=jnp.nan)), row)
  run, history = lax.cond(stopped, skip, play, run)
  return run, history | dict(measured=measured & ~stopped)


def _fill(played: tuple[Run, dict], row: dict) -> tuple[Run, dict]:
  """Completes a history row of an epoch that was not measured with zeros."""
  run, history = played
  zeros = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), row)
  loss = jnp.asarray(history['loss'], zeros['loss'].dtype)
  return run, zeros | dict(loss=loss)


class Epoch(NamedTuple):
  """An epoch's order and luck, which its number and the run's key decide.

  Attributes:
    rounds: The samples of each full round, [rounds, batch]; the index past the
      last sample is padding.
    rest: The samples of a smaller last round, [n mod batch] (perhaps none).
    keys: One a round, [rounds + 1]; the last is the smaller one's.
    defense, validate: Keys of what happens after the rounds.
  """

  rounds: Array
  rest: Array
  keys: Array
  defense: Key
  validate: Key


def epoch_of(plan: Plan, key: Key, epoch: Array | int, samples: int) -> Epoch:
  """The epoch of that number in a run with that key."""
  keys = jax.random.split(jax.random.fold_in(key, epoch), 4)
  k_order, k_rounds, k_defense, k_validate = keys
  full, rest = divmod(samples, plan.batch_size)
  order = permutation(k_order, samples)
  if plan.remainder == 'pad' and rest:
    order = jnp.pad(
        order, (0, plan.batch_size - rest), constant_values=samples
    )
    full, rest = full + 1, 0
  rounds = order[: full * plan.batch_size].reshape(full, plan.batch_size)
  return Epoch(
      rounds, order[len(order) - rest :], jax.random.split(k_rounds, full + 1),
      k_defense, k_validate,
  )


def _play_epoch(plan: Plan, run: Run, data: Batch, epoch: Array, watched: bool):
  own = epoch_of(plan, run.key, epoch, len(data.labels))

  def play(state, xs):
    i, key = xs
    i = plan.adversary.rows(jax.random.fold_in(key, 2), i)
    truth = jax.tree.map(lambda x: _take(x, i, plan.remainder), data)
    prepared = None
    if plan.defense.prepare:
      prepared = _take(run.labels, i, plan.remainder)
    return play_batch(plan, state, truth, key, watched, prepared)

  state, rows = lax.scan(play, run.state, (own.rounds, own.keys[:-1]))
  stacks: list[Any] = [rows['watch']]
  losses: Any = rows['loss']  # [rounds]
  if plan.remainder == 'keep' and len(own.rest):
    state, row = play(state, (own.rest, own.keys[-1]))
    stacks.append(jax.tree.map(lambda x: x[None], row['watch']))
    losses = jnp.append(losses, jnp.asarray(row['loss']))
  run = run._replace(state=state)
  return close(plan, run, own, losses, stacks, epoch, watched)


def play_batch(
    plan: Plan, state: State, truth: Batch, key: Key, watched: bool,
    prepared: Array | None = None,
):
  """Plays a round with one batch and lets `watch` look: (state, row).

  Args:
    truth: With the true labels.
    prepared: The labels as the defense prepared them, where it does.
  """
  k_round, k_watch = jax.random.split(key)
  batch = truth if prepared is None else truth._replace(labels=prepared)
  state, played = protocol.play_round(
      k_round, plan.vfl, plan.defense, plan.txs, state, batch, plan.adversary
  )
  if prepared is not None:
    played = played._replace(batch=truth)
  row = plan.watch(k_watch, played) if watched else ()
  return state, dict(loss=played.loss, watch=row)


def close(
    plan: Plan, run: Run, own: Epoch, losses: Array, stacks: Sequence[Any],
    epoch: Array | int, watched: bool,
) -> tuple[Run, dict[str, Any]]:
  """What follows an epoch's last round: (run, the epoch's history).

  Args:
    losses: [rounds].
    stacks: What was watched, of full rounds and perhaps of the smaller one.
  """
  state = run.state
  holdings = Holdings(
      plan.vfl._replace(top=plan.defense.top(plan.vfl.top)),
      state.parties[0].params, plan.auxiliary,
  )
  state = state._replace(
      defense=plan.defense.epoch(state.defense, own.defense, holdings)
  )
  run = run._replace(state=state)
  history: dict[str, Any] = dict(loss=losses.mean())
  if watched:
    history['watch'] = plan.digest(*stacks)
    if plan.validate:
      history['validation'] = plan.validate(own.validate, state)
      run = _keep_best(plan, run, history['validation'], epoch)
  return run, history


def _take(x: Array, i: Array, remainder: str) -> Array:
  """Rows `i` of `x`; the index past the end is a row of zeros (padding)."""
  if remainder == 'pad':
    return x.at[i].get(mode='fill', fill_value=0)
  return x.at[i].get(mode='promise_in_bounds')


def _keep_best(plan: Plan, run: Run, measured: dict[str, Array], epoch) -> Run:
  if not plan.best:
    return run
  value = measured[plan.best.lstrip('-')]
  score = -value if plan.best.startswith('-') else value
  better = score > run.best.score
  new = Best(score, jnp.asarray(epoch, run.best.epoch.dtype), run.state)
  best = jax.tree.map(lambda a, b: jnp.where(better, a, b), new, run.best)
  return run._replace(best=best)
