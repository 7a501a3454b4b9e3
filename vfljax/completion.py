"""Trains a model on a few labeled samples, with guesses along the way.

Shared by the attacker who completes the bottom network that it stole
(`attacks.model_completion`) and the defender who simulates that attack
(`defenses.vmask`).
"""
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, NamedTuple

import jax
from jax import lax
from jax.core import Tracer
import jax.numpy as jnp
import numpy as np
import optax

from vfljax import check as checks
from vfljax import crossing, descent, nets, rows, shards
from vfljax.types import Array, Key, Net, Params

OPTIMIZERS = dict(
    adam=optax.adam, sgd=optax.sgd, momentum=partial(optax.sgd, momentum=0.9)
)
RATES = ('constant', 'cosine')


class Schedule(NamedTuple):
  """How an attacker trains.

  Attributes:
    epochs: Passes over the labeled samples, >= 1.
    batch_size: Labeled samples a step; 0 takes all of them at once. The last
      batch of an epoch may be smaller.
    stages: Number of guesses, evenly spread over the epochs, 1..epochs.
    learning_rate: The optimizer's.
    optimizer: 'adam', 'sgd', the plain one, or 'momentum', SGD with 0.9.
    rate: 'constant', or 'cosine' from learning_rate down to 0.
    bottom_rate: Learning rate of the stolen network as a share of its head's,
      which is `learning_rate`; > 0.
    weight_decay: Share of the weights that is added to their gradient, >= 0.
  """

  epochs: int = 50
  batch_size: int = 0
  stages: int = 10
  learning_rate: float = 1e-3
  optimizer: str = 'adam'
  rate: str = 'constant'
  bottom_rate: float = 1.0
  weight_decay: float = 0.0


def optimizer(
    schedule: Schedule, steps: Any, bottom: str = ''
) -> optax.GradientTransformation:
  """The optimizer of a schedule.

  Args:
    schedule: How to train.
    steps: Their total number, at which a cosine ends. May be traced.
    bottom: Name of the stolen network's entry in the parameters, which learns
      at `bottom_rate`; '' for none.
  """
  rate = schedule.learning_rate
  if schedule.rate == 'cosine':
    rate = _cosine(rate, steps)
  tx = OPTIMIZERS[schedule.optimizer](rate)
  if schedule.weight_decay:
    tx = optax.chain(optax.add_decayed_weights(schedule.weight_decay), tx)
  if schedule.bottom_rate == 1 or not bottom:
    return tx
  slow = optax.chain(tx, optax.scale(schedule.bottom_rate))
  by_rate: dict[Hashable, Any] = {'slow': slow, 'usual': tx}

  def whose(params):
    checks.one_of('bottom', bottom, tuple(params))
    return {k: 'slow' if k == bottom else 'usual' for k in params}

  return optax.partition(by_rate, whose)


def _cosine(rate: float, steps: Any) -> optax.Schedule:
  if isinstance(steps, int):
    return optax.cosine_decay_schedule(rate, steps)
  share = optax.cosine_decay_schedule(rate, 1)  # It takes no traced number.
  return lambda count: share(count / steps)


class Samples(NamedTuple):
  """Samples to train on and to guess.

  Attributes:
    known: [samples, ...] features to train on, or several arrays.
    labels: [samples, classes] their labels; a row of zeros has no loss.
    wanted: [n, ...] features whose labels are guessed, or several arrays.
  """

  known: Array
  labels: Array
  wanted: Array


def complete(
    key: Key, schedule: Schedule, logits: Callable[[Params, Array], Array],
    params: Params, samples: Samples, net: Net | None = None, bottom: str = '',
) -> Array:
  """Trains `logits(params, x)` on the known samples and guesses the wanted.

  Args:
    key: Seeds the orders and what the training pass draws.
    schedule: How to train.
    logits: (params, x) -> [batch, classes].
    params: The initial ones.
    samples: What to train on and what to guess.
    net: If given, a network with the same parameters, trained by its training
      pass, with its statistics; see `with_statistics`.
    bottom: See `optimizer`.

  Returns:
    [stages, n, classes], the guess after each of the stages.

  Raises:
    ValueError: if `check` refuses the schedule, without a known sample, or if
      logits have other classes than labels.
  """
  begun, stage, keys = _staged(
      key, schedule, logits, params, samples, net, bottom
  )
  return lax.scan(stage, begun, keys)[1]


def best(
    key: Key, schedule: Schedule, net: Net, params: Params, samples: Samples,
    score: Callable[[Array], Array], bottom: str = '', epochs: Any = None,
) -> Array:
  """The largest score among the guesses of `complete`, which are not kept.

  A NaN score, of a stage that diverged or has nothing to score, is ignored
  unless all are NaN.

  Args:
    key, schedule, params, samples, bottom: As in `complete`.
    net: What is trained, with its statistics if it has any.
    score: (guess [n, classes]) -> scalar, taken as float32.
    epochs: Trains as if the schedule had so many, 1 to `schedule.epochs`; may
      be traced. Only for a schedule with a stage after each epoch; `None` is
      all of them.

  Raises:
    ValueError: for `epochs` with a schedule of fewer stages; as `complete`.
  """
  if epochs is not None and schedule.stages != schedule.epochs:
    raise ValueError(
        'A number of epochs needs a schedule with a stage after each: of '
        f'{schedule.epochs} epochs it has {schedule.stages} stages.'
    )
  begun, stage, keys = _staged(
      key, schedule, net.apply, params, samples,
      with_statistics(net, params, samples.known), bottom, epochs,
  )

  def scored(now, keys):
    carry, largest = now
    carry, guess = stage(carry, keys)
    found = jnp.fmax(largest, score(guess).astype(largest.dtype))
    return (carry, found), None

  start = shards.own(key, begun), shards.scalar(key, jnp.nan)
  if epochs is None:
    return lax.scan(scored, start, keys)[0][1]
  some = lambda i, now: scored(now, keys[i])[0]
  return lax.fori_loop(0, epochs, some, start)[1]


def _staged(
    key: Key, schedule: Schedule, logits, params: Params, samples: Samples,
    net: Net | None, bottom: str, epochs: Any = None,
) -> tuple[Any, Callable, Key]:
  """The training as (initial carry, stage, keys [stages, epochs a stage]).

  A cosine ends after `epochs`, if not with the schedule.
  """
  check(schedule)
  labels = samples.labels
  known = {len(x) for x in jax.tree.leaves(samples.known)}
  if not len(labels) or known != {len(labels)}:
    raise ValueError(
        'A model is completed on one or more known samples with a row of labels'
        f' each; got {str(known)[1:-1]} samples and {len(labels)} rows.'
    )
  if not isinstance(labels, Tracer) and not np.asarray(labels).any():
    raise ValueError('No known sample has a label: all rows are zeros.')
  samples = jax.tree.map(jnp.asarray, samples)  # Traced numbers index these.
  params, own = descent.masters(params)
  net, wide = net and nets.with_weights(net, own), logits
  logits = lambda weights, x: wide(own(weights), x)
  size = min(schedule.batch_size or len(labels), len(labels))
  batches = -(-len(labels) // size)
  steps = (schedule.epochs if epochs is None else epochs) * batches
  tx = optimizer(schedule, steps, bottom)
  epoch = _epoch(partial(_learn, logits, net, tx), samples, size)

  def stage(carry, keys):
    carry, _ = lax.scan(epoch, carry, keys)
    return carry, logits(carry[0], samples.wanted)

  # The first epochs that do not fill a stage are trained without a guess.
  length, lead = divmod(schedule.epochs, schedule.stages)
  keys = jax.random.split(key, schedule.epochs)
  carry = params, tx.init(params)
  if lead:
    carry, _ = lax.scan(epoch, carry, keys[:lead])
  return carry, stage, keys[lead:].reshape(schedule.stages, length)


def _epoch(learn: Callable, samples: Samples, size: int) -> Callable:
  """A pass over the known samples in a new order, for `lax.scan` over keys.

  `learn`, (carry, key, x, y) -> carry, is a step on one batch of `size`, of
  which the last one is filled up with rows of zeros.
  """
  known, labels = samples.known, samples.labels
  batches = -(-len(labels) // size)

  take = lambda i: jax.tree.map(
      lambda x: rows.filled(x, i), (known, labels)
  )
  step = lambda carry, xs: (learn(carry, xs[1], *take(xs[0])), None)

  def epoch(carry, key):
    if batches == 1:  # No order to draw; and a loop costs compile time.
      return learn(carry, key, known, labels), None
    order = jax.random.permutation(key, len(labels))
    missing = batches * size - len(labels)
    order = jnp.pad(order, (0, missing), constant_values=len(labels))
    # The order has been drawn from parts 0 and 1 of the key.
    keys = jax.random.split(jax.random.fold_in(key, 2), batches)
    return lax.scan(step, carry, (order.reshape(batches, size), keys))[0], None

  return epoch


def _learn(logits, net: Net | None, tx, carry, key: Key, x: Array, y: Array):
  """A step on one batch: the next (parameters, optimizer's state)."""
  params, opt = carry

  def loss(params):
    if net:  # Statistics leave out the rows that fill up a batch.
      real = y.sum(-1)
      with crossing.in_round(real):
        z, stats = nets.counting_rows(net, real > 0).run(params, key, x)
    else:
      z, stats = logits(params, x), ()
    checks.alike('A model that is completed', z, y)
    ce = optax.softmax_cross_entropy(z, y)
    return ce.sum() / jnp.maximum(y.sum(), 1), stats

  slope, stats = jax.grad(loss, has_aux=True)(params)
  params, opt = descent.step(tx, slope, opt, params)
  return net.absorb(params, stats) if net else params, opt


def with_statistics(net: Net, params: Params, x: Any) -> Net | None:
  """`net` if its training pass leaves statistics (BatchNorm), else `None`.

  Such a network is trained by its training pass, dropout and flips included;
  others by the inference pass, without these. In an inference pass statistics
  would be trained as weights. Rows that fill up a last batch enter the
  statistics of networks that are not Linen modules, unless the network leaves
  them out by `crossing.counted`, as `normalized_head` does.

  Args:
    params, x: Weights and samples, or their shapes; nothing is computed.
  """
  if net.train is None:
    return None
  key = jax.eval_shape(jax.random.key, 0)
  stats = jax.eval_shape(net.train, params, key, x)[1]
  return net if jax.tree.leaves(stats) else None


def check(schedule: Schedule, of: str = '') -> None:
  """Raises ValueError if a schedule makes no sense.

  A traced learning rate passes: callers have to check its numbers.

  Args:
    schedule: The schedule.
    of: Prefix of a field's name in messages.
  """
  own = schedule
  checks.count(f'{of}epochs', own.epochs)
  checks.count(f'{of}batch_size', own.batch_size, 0)
  checks.count(f'{of}stages', own.stages, 1, own.epochs)
  checks.one_of(f'{of}optimizer', own.optimizer, tuple(OPTIMIZERS))
  checks.one_of(f'{of}rate', own.rate, RATES)
  checks.above(f'{of}learning_rate', own.learning_rate, 0)
  checks.above(f'{of}bottom_rate', own.bottom_rate, 0)
  checks.at_least(f'{of}weight_decay', own.weight_decay, 0)
