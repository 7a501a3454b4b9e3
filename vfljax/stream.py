"""Training on more samples than fit into a device's memory.

Features stay in the host's memory, or in memory-mapped files (as the data
cache's), and go to the device in chunks of rounds, in the epoch's order: the
next chunk is gathered while the device works on the one before. The results are
those of `train.fit` with the same key, up to rounding; the price is the
copying.

`fit` trains one federation. Its parts, `gather` and `play`, are for callers who
train several at once, as `vfljax.runner.compiled.streamed` does.
"""
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import jax
from jax import lax
from jax.core import Tracer
import jax.numpy as jnp
import numpy as np

from vfljax import check as number
from vfljax import samples, target, train
from vfljax.types import Array, Batch, Key, State

Transform = Callable[[tuple[Any, ...]], tuple[Any, ...]]


def fit(
    key: Key, plan: train.Plan, data: Batch, chunk: int,
    transform: Transform = lambda features: features,
) -> tuple[State, dict[str, Any]]:
  """Trains a federation on samples that stay on the host.

  Another call with a plan of the same functions and the same transform, such as
  another seed's, compiles nothing, unless the plan has auxiliary samples of
  NumPy's. As with `jax.jit`, values that their functions close over are those
  at the time of tracing.

  Args:
    key: As for `train.fit`.
    plan: The training, see `check`.
    data: NumPy arrays, memory-mapped or not: features [n, ...] or `None`,
      labels [n, classes].
    chunk: Rounds a chunk, 1 or more; the samples of two chunks must fit into
      the device's memory.
    transform: (a batch's features) -> features, applied on the device: uint8
      images, for example, are copied as they are and scaled there.

  Returns:
    As `train.fit`.

  Raises:
    ValueError: for a plan that cannot be streamed (`check`), numbers out of
      range, or samples that `train.start` refuses; inside a trace.
  """
  if any(isinstance(x, Tracer) for x in jax.tree.leaves((key, data))):
    raise ValueError(
        'stream.fit copies samples between programs, so it cannot be part of '
        'one: call it outside of jit, vmap and the like. train.fit can be.'
    )
  samples.check(data)
  samples.check_numbers(data)
  check(plan, len(data.labels), chunk)
  # Streaming copies samples from the host, whatever a caller's transfer guard.
  with jax.transfer_guard('allow'):
    return _fit(key, plan, data, chunk, transform)


def _fit(
    key: Key, plan: train.Plan, data: Batch, chunk: int, transform: Transform
) -> tuple[State, dict[str, Any]]:
  first = jax.tree.map(lambda x: x[: plan.batch_size], data)
  first = jax.tree.map(jnp.asarray, first)
  run = train.start(
      key, plan, first._replace(features=transform(first.features))
  )
  given = _Same(plan, transform)
  make = _programs if given.mutable else _kept
  order, rounds, end = make(target.kind(), len(data.labels), given)
  history: list[dict] = []
  for epoch in range(plan.epochs):
    watched = train.is_watched(epoch, plan.every, plan.epochs)
    own, found = order(run, epoch), []
    on_host = np.asarray(own.rounds)  # Slices of `own` wait for the device.
    for part in parts(on_host, chunk):
      here = gather(data, on_host[part])
      # The device trains on the last part while this one is gathered. Waits for
      # the part before the last, so that at most two are on the device.
      jax.block_until_ready(found[-2:-1])
      real = on_host[part] < len(data.labels)
      run, rows = rounds(watched, run, here, own.keys[part], real)
      found.append(rows)
    run, row = end(watched, run, own, joined(found), epoch)
    history.append(row | dict(measured=jnp.array(watched)))
  # Unmeasured epochs get zeros, shaped as the last one, which is measured.
  zeros = jax.tree.map(jnp.zeros_like, history[-1])
  rows = [zeros | row for row in history]
  return train.finish(run), jax.tree.map(lambda *x: jnp.stack(x), *rows)


class _Same:
  """A plan and a transform, equal to others if they are the same objects.

  Of a method, `own.transform` is a new object each time. So it is traced again,
  as its object may have changed.

  Attributes:
    plan, transform: What it was made with, alive as long as this is.
    mutable: Whether a part is a NumPy array, which may change.
  """

  def __init__(self, plan: train.Plan, transform: Transform):
    self.plan, self.transform = plan, transform
    leaves, structure = jax.tree.flatten((plan, transform))
    self._alive = leaves  # Else another object may get a number of `id`.
    self.mutable = any(isinstance(x, np.ndarray) for x in leaves)
    plain = int, float, str
    self._parts = structure, *(
        (type(x), x) if isinstance(x, plain) else id(x) for x in leaves
    )

  def __eq__(self, other: Any) -> bool:
    return isinstance(other, _Same) and self._parts == other._parts

  def __hash__(self) -> int:
    return hash(self._parts)


def _programs(
    kind: str, count: int, given: _Same
) -> tuple[Callable, Callable, Callable]:
  """An epoch's order, rounds and end; `kind` only tells programs apart."""
  del kind
  plan, transform = given.plan, given.transform
  order = jax.jit(
      lambda run, epoch: train.epoch_of(plan, run.key, epoch, count)
  )
  rounds = jax.jit(
      lambda watched, run, part, keys, real: play(
          plan, run, part, keys, watched, transform, real
      ), static_argnums=0, donate_argnums=1,
  )
  end = jax.jit(
      lambda watched, run, own, rows, epoch: train.close(
          plan, run, own, rows['loss'], [rows['watch']], epoch, watched
      ), static_argnums=0, donate_argnums=1,
  )
  return order, rounds, end


# A jit's programs go with it. Few are kept, since each holds its plan.
_kept = lru_cache(4)(_programs)


def check(plan: train.Plan, samples: int, chunk: int) -> None:
  """Refuses a plan that cannot be streamed.

  Raises:
    ValueError: with a smaller last round (remainder='keep'), an adversary, a
      defense that prepares all labels at once (`Defense.prepare`) or early
      stopping (`patience`); for numbers out of range.
  """
  train.check(plan, samples)
  number.count('chunk', chunk)
  if plan.remainder == 'keep' or plan.patience:
    raise ValueError(
        "Streaming plays rounds of one size (remainder='drop' or 'pad') and "
        'does not stop early (patience=0).'
    )
  if plan.adversary.parties:
    raise ValueError('Streaming does not support adversaries.')
  if plan.defense.prepare:
    raise ValueError(
        'This defense prepares the labels of all samples at once: it cannot be '
        'streamed.'
    )


def parts(rounds: Any, chunk: int) -> Iterator[slice]:
  """The slices of an epoch's rounds, `chunk` at a time."""
  count = len(rounds)
  return (slice(i, min(i + chunk, count)) for i in range(0, count, chunk))


def gather(data: Batch, order: Any, rows: np.ndarray | None = None) -> Batch:
  """Samples of some rounds, [rounds, batch, ...], on the host.

  Args:
    order: [rounds, batch] indices; one past the last sample gives zeros.
    rows: The rows of `data` that `order` indexes; all by default.
  """
  flat = np.asarray(order).ravel()
  count = len(data.labels) if rows is None else len(rows)
  real = flat < count
  if rows is not None:
    flat = rows[np.minimum(flat, count - 1)]
  flat = np.where(real, flat, 0)
  # Read in ascending order, which is faster from a file.
  ascending = np.argsort(flat)

  def take(x):
    found = np.empty((len(flat), *x.shape[1:]), x.dtype)
    found[ascending] = x[flat[ascending]]
    found[~real] = 0
    return found.reshape(*np.shape(order), *x.shape[1:])

  return jax.tree.map(take, data)


def play(
    plan: train.Plan, run: train.Run, part: Batch, keys: Key, watched: bool,
    transform: Transform = lambda features: features,
    real: Array | np.ndarray | None = None,
) -> tuple[train.Run, dict[str, Any]]:
  """Plays some rounds of an epoch; pure, for `jit`.

  Args:
    part: [rounds, batch, ...].
    keys: Of those rounds.
    watched: Whether the epoch is measured.
    transform: Of one batch's features.
    real: bool [rounds, batch], false where `gather` has padded; by default
      where a row has no label, which a sample need not have, either.

  Returns:
    The run, and what was seen: {'loss', 'watch'}, leaves [rounds, ...].
  """
  if real is None:
    real = part.labels.sum(-1) > 0

  def one(state, xs):
    batch, key, real = xs
    features = transform(batch.features)
    if plan.remainder == 'pad':  # A party's features may be several arrays.
      features = jax.tree.map(lambda x: _real(x, real), features)
    batch = batch._replace(features=features)
    return train.play_batch(plan, state, batch, key, watched)

  state, rows = lax.scan(one, run.state, (part, keys, real))
  return run._replace(state=state), rows


def joined(rows: list, axis: int = 0) -> Any:
  """Concatenates the history rows of an epoch's chunks."""
  return jax.tree.map(lambda *x: jnp.concatenate(x, axis), *rows)


def _real(x: Array, real: Array) -> Array:
  """`x` with zeros in rows of padding, which a transform may have changed."""
  return jnp.where(real.reshape(-1, *[1] * (x.ndim - 1)), x, 0)
