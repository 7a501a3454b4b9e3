"""One epoch: its order and keys, its rounds in a `scan`, what follows them."""
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from vfljax import ahead, check, fusing, protocol, shards, target
from vfljax import rows as rows_of
from vfljax.check import Misfit
from vfljax.defense import Holdings, checked
from vfljax.numerics import common_type
from vfljax.permuting import permutation
from vfljax.plan import Best, Plan, Run
from vfljax.returned import check_state
from vfljax.types import Array, Batch, Key, Round, State

Take = Callable[[Array], tuple[Batch, Array | None]]


class Epoch(NamedTuple):
  """An epoch's order and keys, functions of its number and the run's key.

  Attributes:
    rounds: [rounds, batch] indices of the samples in each full round; n, the
      index past the last sample, is padding.
    rest: [n mod batch] those of a smaller last round; empty if there is none.
    keys: [rounds + 1] a key per round; the last is the smaller round's.
    defense, validate: Keys of `Defense.epoch` and `Plan.validate`, which are
      called after the rounds.
  """

  rounds: Array
  rest: Array
  keys: Array
  defense: Key
  validate: Key


def epoch_of(plan: Plan, key: Key, epoch: Array | int, samples: int) -> Epoch:
  """The `Epoch` number `epoch`, from 0, of a run with that key.

  Args:
    plan: The training.
    key: The run's, `Run.key`.
    epoch: May be traced.
    samples: The number of training samples, n.
  """
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
  """A function: indices [batch] -> (samples, their prepared labels, if any)."""
  prepared = run.labels if plan.defense.prepare else None
  if prepared is not None and len(prepared) != len(data.labels):
    raise ValueError(
        f'`start` has prepared the labels of {len(prepared)} samples, and '
        f'these are {len(data.labels)}: `advance` needs the same samples.'
    )
  return rows_of.taker((data, prepared), plan.remainder == 'pad')


def play_epoch(
    plan: Plan, run: Run, samples: tuple[int, Take], epoch: Array,
    watched: Array | bool,
) -> tuple[Run, dict[str, Any]]:
  """Plays epoch number `epoch`: (run, the epoch's history).

  Args:
    plan, run: The training, and its state before the epoch.
    samples: (number of training samples, the function of `taking`).
    epoch: From 0; may be traced.
    watched: Whether it is measured. If traced, an unmeasured epoch's history
      has zeros for what was not measured; a Python False leaves it out.
  """
  count, take = samples
  own = epoch_of(plan, run.key, epoch, count)
  end = count + (plan.remainder == 'pad')  # Of what there is, with padding.

  def play(state, xs):
    i, key = xs
    told = plan.adversary.rows(jax.random.fold_in(key, 2), i)
    truth, prepared = take(_agreed(told, i, end))
    found = play_batch(plan, state, truth, key, watched, prepared)
    return found if told is i else rows_of.failed(found, told, i, end)

  state, rows = _scan(play, run.state, (own.rounds, own.keys[:-1]), take)
  stacks: list[Any] = [rows['watch']]
  losses: Any = rows['loss']  # [rounds]
  if plan.remainder == 'keep' and len(own.rest):
    state, row = play(state, (own.rest, own.keys[-1]))
    stacks.append(jax.tree.map(lambda x: x[None], row['watch']))
    losses = jnp.append(losses, jnp.asarray(row['loss']))
  run = run._replace(state=state)
  return close(plan, run, own, losses, stacks, epoch, watched)


def _agreed(numbers: Any, drawn: Array, end: int) -> Array:
  """Which samples a round has, once attackers have had their say."""
  shape, kind = jnp.shape(numbers), jnp.result_type(numbers)
  if shape != drawn.shape or not jnp.issubdtype(kind, jnp.integer):
    raise Misfit(
        "The adversary's rows must return the samples' numbers, whole ones of "
        f'shape {drawn.shape}; it returned {kind} of shape {shape}.'
    )
  check.whole("The adversary's rows", numbers, 0, end - 1, many=True)
  return numbers


def _scan(
    play: Callable, state: State, xs: tuple[Array, Key], take: Take
) -> tuple[State, dict[str, Any]]:
  """Plays an epoch's full rounds: (state, {'loss', 'watch'}), [rounds, ...].

  On a GPU keys are made `ahead` of all rounds. Only the mean of the losses is
  used, and a GPU would store each with a kernel of its own: there they are
  summed up in the loop, `joined` with the optimizers' numbers, and every entry
  of 'loss' is the mean.
  """
  if target.kind() != 'gpu':
    return lax.scan(play, state, xs)
  labels = jax.eval_shape(take, xs[0][0])[0].labels
  dtype = common_type(labels, jnp.float32)  # A sum in half precision stops.

  def add(carry, x):
    state, row = play(carry[0], x)
    loss = fusing.joined(row['loss'].astype(dtype))
    return (state, carry[1] + loss), row['watch']

  none = shards.own(xs[1][0], lax.full_like(labels, 0, dtype, shape=()))
  (state, total), watch = ahead.scan(add, (state, none), xs)
  rounds = len(xs[0])
  return state, dict(loss=jnp.full(rounds, total / rounds), watch=watch)


def play_prepared(
    key: Key, plan: Plan, state: State, truth: Batch,
    prepared: Array | None = None,
) -> tuple[State, Round]:
  """Plays a round on prepared labels; the `Round` returned has the true ones.

  Args:
    key, plan, state: The round's key, the training and the state before it.
    truth: A batch with its true labels.
    prepared: [batch, classes] its labels as `Defense.prepare` returned them;
      `None` for a defense without it.
  """
  batch = truth if prepared is None else truth._replace(labels=prepared)
  state, played = protocol.play_round(
      key, plan.vfl, plan.defense, plan.txs, state, batch, plan.adversary
  )
  if prepared is not None:
    # What mixes the round's samples (MixUp) mixes their true labels alike.
    mixed = checked(plan.defense).batch(protocol.luck_of(key).batch, truth)
    batch = played.batch._replace(labels=mixed.labels)
    played = played._replace(batch=batch)
  return state, played


def play_batch(
    plan: Plan, state: State, truth: Batch, key: Key,
    watched: Array | bool, prepared: Array | None = None,
):
  """Plays a round and watches it: (state, row).

  Args:
    plan, state: The training, and the state before the round.
    truth, prepared: As in `play_prepared`.
    key: The round's.
    watched: As in `play_epoch`.

  Returns:
    The next state and {'loss': scalar, 'watch': what `Plan.watch` returns}.
  """
  k_round, k_watch = jax.random.split(key)
  if not isinstance(state, State):
    raise ValueError(
        f'Run.state must be a State; got {check.kind(state)}. A checkpoint is '
        'restored as one with its structure, which `start` makes.'
    )
  evil = state.adversary
  state, played = play_prepared(k_round, plan, state, truth, prepared)
  # A scan would say so, too, but not whose state has changed.
  check_state("The adversary's update", state.adversary, evil)
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
  """Ends an epoch, after its last round: (run, the epoch's history).

  Args:
    plan, run: The training, and its state after the last round.
    own: The epoch.
    losses: [rounds].
    stacks: The arguments of `Plan.digest`: the rows of full rounds and, if
      there was one, those of the smaller round.
    epoch, watched: As in `play_epoch`.
  """
  state = run.state
  plan = plan._replace(auxiliary=jax.tree.map(indexed, plan.auxiliary))
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


def indexed(x: Any) -> Any:
  """NumPy's arrays as JAX's, as they are not indexed by traced numbers.

  They stay numbers that a hook can look at while it is traced.
  """
  if not isinstance(x, np.ndarray):
    return x
  with jax.ensure_compile_time_eval():
    return jnp.asarray(x)


def _measure(
    plan: Plan, run: Run, key: Key, stacks: Sequence[Any], epoch: Array | int
) -> tuple[Run, dict[str, Any]]:
  """Measures an epoch: (run with its best epoch, history besides the loss)."""
  found: dict[str, Any] = dict(watch=plan.digest(*stacks))
  if plan.validate:
    found['validation'] = plan.validate(key, run.state)
    if plan.best and not isinstance(found['validation'], dict):
      raise ValueError(
          'validate must return {name: scalar}, one of them named by best=; it '
          f'returned {check.kind(found["validation"])}.'
      )
    run = _keep_best(plan, run, found['validation'], epoch)
  return run, found


def _zeros(fn: Callable[[], Any]) -> Any:
  """Zeros of the shapes and types that `fn` returns; `fn` is not computed."""
  return zeros_of(jax.eval_shape(fn))


def zeros_of(shapes: Any) -> Any:
  """Zeros of these shapes, varying over `shard_map`'s shards as they do."""
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
  # A loop keeps the score's type; and minus of a count without a sign wraps.
  value = jnp.asarray(measured[name], run.best.score.dtype)
  score = -value if plan.best.startswith('-') else value
  better = score > run.best.score
  new = Best(score, jnp.asarray(epoch, run.best.epoch.dtype), run.state)
  best = jax.tree.map(lambda a, b: jnp.where(better, a, b), new, run.best)
  return run._replace(best=best)
