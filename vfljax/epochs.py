"""An epoch: its order and luck, its rounds in a `scan`, what follows them."""
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp

from vfljax import ahead, protocol, shards, target
from vfljax import rows as rows_of
from vfljax.check import Misfit
from vfljax.defense import Holdings, checked
from vfljax.numerics import permutation
from vfljax.plan import Best, Plan, Run
from vfljax.types import Array, Batch, Key, Round, State

Take = Callable[[Array], tuple[Batch, Array | None]]


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


def taking(plan: Plan, run: Run, data: Batch) -> Take:
  """What takes a round's samples and their prepared labels, if there are."""
  prepared = run.labels if plan.defense.prepare else None
  return rows_of.taker((data, prepared), plan.remainder == 'pad')


def play_epoch(
    plan: Plan, run: Run, samples: tuple[int, Take], epoch: Array,
    watched: Array | bool,
) -> tuple[Run, dict[str, Any]]:
  """Plays the epoch of that number: (run, the epoch's history).

  Args:
    samples: How many there are, and `taking`.
    watched: Whether it is measured. What is known only when the program runs
      leaves zeros where nothing was measured.
  """
  count, take = samples
  own = epoch_of(plan, run.key, epoch, count)

  def play(state, xs):
    i, key = xs
    i = _agreed(plan.adversary.rows(jax.random.fold_in(key, 2), i), i)
    truth, prepared = take(i)
    return play_batch(plan, state, truth, key, watched, prepared)

  state, rows = _scan(play, run.state, (own.rounds, own.keys[:-1]), take)
  stacks: list[Any] = [rows['watch']]
  losses: Any = rows['loss']  # [rounds]
  if plan.remainder == 'keep' and len(own.rest):
    state, row = play(state, (own.rest, own.keys[-1]))
    stacks.append(jax.tree.map(lambda x: x[None], row['watch']))
    losses = jnp.append(losses, jnp.asarray(row['loss']))
  run = run._replace(state=state)
  return close(plan, run, own, losses, stacks, epoch, watched)


def _agreed(numbers: Any, drawn: Array) -> Array:
  """Which samples a round has, once attackers have had their say."""
  shape, kind = jnp.shape(numbers), jnp.result_type(numbers)
  if shape != drawn.shape or not jnp.issubdtype(kind, jnp.integer):
    raise Misfit(
        "The adversary's rows must return the samples' numbers, whole ones of "
        f'shape {drawn.shape}; it returned {kind} of shape {shape}.'
    )
  return numbers


def _scan(
    play: Callable, state: State, xs: tuple[Array, Key], take: Take
) -> tuple[State, dict[str, Any]]:
  """Plays an epoch's full rounds: (state, {'loss', 'watch'}), [rounds, ...].

  On a GPU keys are made `ahead` of all rounds. Of the losses only the mean is
  looked at, and a GPU would write each to its place by a kernel of its own:
  there they are added up, and each is the mean.
  """
  if target.kind() != 'gpu':
    return lax.scan(play, state, xs)
  labels = jax.eval_shape(take, xs[0][0])[0].labels

  def add(carry, x):
    state, row = play(carry[0], x)
    return (state, carry[1] + row['loss'].astype(labels.dtype)), row['watch']

  none = shards.own(xs[1][0], lax.full_like(labels, 0, shape=()))
  (state, total), watch = ahead.scan(add, (state, none), xs)
  rounds = len(xs[0])
  return state, dict(loss=jnp.full(rounds, total / rounds), watch=watch)


def play_prepared(
    key: Key, plan: Plan, state: State, truth: Batch,
    prepared: Array | None = None,
) -> tuple[State, Round]:
  """Plays a round on prepared labels, and shows who watches the true ones.

  Args:
    truth: A batch with its true labels.
    prepared: [batch, classes] its labels as the defense prepared them, where it
      does.
  """
  batch = truth if prepared is None else truth._replace(labels=prepared)
  state, played = protocol.play_round(
      key, plan.vfl, plan.defense, plan.txs, state, batch, plan.adversary
  )
  if prepared is not None:
    played = played._replace(batch=truth)
  return state, played


def play_batch(
    plan: Plan, state: State, truth: Batch, key: Key,
    watched: Array | bool, prepared: Array | None = None,
):
  """Plays a round with one batch and lets `watch` look: (state, row).

  Args:
    truth, prepared: As in `play_prepared`.
    key: The round's.
    watched: As in `play_epoch`.
  """
  k_round, k_watch = jax.random.split(key)
  state, played = play_prepared(k_round, plan, state, truth, prepared)
  look = lambda: plan.watch(k_watch, played)
  if isinstance(watched, bool):
    row = look() if watched else ()
  else:
    row = lax.cond(watched, look, lambda: _zeros(look))
  return state, dict(loss=played.loss, watch=row)


def close(
    plan: Plan, run: Run, own: Epoch, losses: Array, stacks: Sequence[Any],
    epoch: Array | int, watched: Array | bool,
) -> tuple[Run, dict[str, Any]]:
  """What follows an epoch's last round: (run, the epoch's history).

  Args:
    losses: [rounds].
    stacks: What was watched, of full rounds and perhaps of the smaller one.
    watched: As in `play_epoch`.
  """
  state = run.state
  holdings = Holdings(
      plan.vfl._replace(top=plan.defense.top(plan.vfl.top)),
      state.parties[0].params, plan.auxiliary,
  )
  state = state._replace(
      defense=checked(plan.defense).epoch(
          state.defense, own.defense, holdings
      )
  )
  run = run._replace(state=state)
  loss = dict(loss=losses.mean())
  look = lambda run: _measure(plan, run, own.validate, stacks, epoch)
  if isinstance(watched, bool):
    run, found = look(run) if watched else (run, {})
  else:
    blank = lambda run: (run, _zeros(lambda: look(run)[1]))
    run, found = lax.cond(watched, look, blank, run)
  return run, loss | found


def _measure(
    plan: Plan, run: Run, key: Key, stacks: Sequence[Any], epoch: Array | int
) -> tuple[Run, dict[str, Any]]:
  """What a measured epoch has in its history besides the loss."""
  found: dict[str, Any] = dict(watch=plan.digest(*stacks))
  if plan.validate:
    found['validation'] = plan.validate(key, run.state)
    if plan.best and not isinstance(found['validation'], dict):
      raise ValueError(
          'validate must return {name: scalar}, of which best= names one; it '
          f'returned {type(found["validation"]).__name__}.'
      )
    run = _keep_best(plan, run, found['validation'], epoch)
  return run, found


def _zeros(fn: Callable[[], Any]) -> Any:
  """In place of what `fn` returns."""
  return zeros_of(jax.eval_shape(fn))


def zeros_of(shapes: Any) -> Any:
  """Zeros, each of which differs between shards if what it stands for does."""
  return jax.tree.map(lambda s: jnp.zeros_like(s, s.dtype), shapes)


def _keep_best(plan: Plan, run: Run, measured: dict[str, Array], epoch) -> Run:
  if not plan.best:
    return run
  name = plan.best.lstrip('-')
  if name not in measured or jnp.shape(measured[name]):
    raise ValueError(
        f'best={plan.best!r} must name a scalar that `validate` returns; it '
        f'returns {", ".join(measured) or "none"}.'
    )
  value = measured[name]
  score = -value if plan.best.startswith('-') else value
  better = score > run.best.score
  new = Best(score, jnp.asarray(epoch, run.best.epoch.dtype), run.state)
  best = jax.tree.map(lambda a, b: jnp.where(better, a, b), new, run.best)
  return run._replace(best=best)
