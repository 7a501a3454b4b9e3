"""Training on more samples than fit into a device's memory.

Features stay in the host's memory, or in files that are mapped into it (the
data cache's), and go to the device in chunks of rounds, in the epoch's order:
the next chunk is gathered while the device works on the one before. What comes
out is what `train.fit` gives with the same key, number for number; the copying
is what it costs.
"""
from collections.abc import Callable
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from vfljax import protocol, train
from vfljax.defense import Holdings
from vfljax.shuffle import permutation
from vfljax.types import Array, Batch, Key, State

Transform = Callable[[tuple[Any, ...]], tuple[Any, ...]]


def fit(
    key: Key, plan: train.Plan, data: Batch, chunk: int,
    transform: Transform = lambda features: features,
) -> tuple[State, dict[str, Array]]:
  """Trains a federation on samples that stay on the host.

  Args:
    key: As for `train.fit`.
    plan: The training. Rounds are full ones (`remainder` 'drop'), nothing is
      watched or validated, nobody deviates, and the defense prepares nothing,
      for it would need all samples at once.
    data: NumPy arrays, mapped files among them: features [n, ...] or `None`,
      labels [n, classes].
    chunk: Rounds a chunk, 1 or more: a chunk's samples and the next one's must
      fit into the device's memory.
    transform: Of a batch's features, on the device: uint8 images, for example,
      cross over as they are and are scaled there.

  Returns:
    The trained state and {'loss': [epochs]}.

  Raises:
    ValueError: for a plan that is not of this kind, or numbers out of range.
  """
  _check(plan, data, chunk)
  first = jax.tree.map(lambda x: x[: plan.batch_size], data)
  # The plan's start needs one batch's shapes; it is not trained on twice.
  begun = train.start(key, plan, _placed(first, transform))
  play = jax.jit(lambda state, part, keys: _rounds(
      plan, transform, state, part, keys
  ))
  finish = jax.jit(lambda state, key: _epoch_end(plan, state, key))
  state, losses = begun.state, []
  for epoch in range(plan.epochs):
    state, loss = _epoch(plan, begun.key, state, data, epoch, chunk, play)
    k_defense = _keys(begun.key, epoch)[2]
    state = finish(state, k_defense)
    losses.append(loss)
  return state, dict(loss=jnp.stack(losses))


def _epoch(plan, key: Key, state: State, data: Batch, epoch: int, chunk, play):
  """One epoch: (state, mean loss)."""
  k_order, k_rounds = _keys(key, epoch)[:2]
  samples, size = len(data.labels), plan.batch_size
  rounds = samples // size
  order = np.asarray(permutation(k_order, samples))[: rounds * size]
  order = order.reshape(rounds, size)
  keys = jax.random.split(k_rounds, rounds + 1)[:rounds]
  losses = []
  for i in range(0, rounds, chunk):
    part = jax.tree.map(lambda x, i=i: _rows(x, order[i : i + chunk]), data)
    # Dispatched, not waited for: the next part is gathered meanwhile.
    state, loss = play(state, part, keys[i : i + chunk])
    losses.append(loss)
  return state, jnp.concatenate(losses).mean()


def _keys(key: Key, epoch: int):
  """An epoch's keys, as `train` draws them."""
  return jax.random.split(jax.random.fold_in(key, epoch), 4)


def _rows(x: np.ndarray, order: np.ndarray) -> np.ndarray:
  """[rounds, batch, ...]; in the file's order first, which disks like."""
  flat = order.ravel()
  ascending = np.argsort(flat)
  found = np.empty((len(flat), *x.shape[1:]), x.dtype)
  found[ascending] = x[flat[ascending]]
  return found.reshape(*order.shape, *x.shape[1:])


def _rounds(plan, transform: Transform, state: State, part: Batch, keys):
  def play(state, xs):
    batch, key = xs
    k_round, _ = jax.random.split(key)
    state, played = protocol.play_round(
        k_round, plan.vfl, plan.defense, plan.txs, state,
        batch._replace(features=transform(batch.features)),
    )
    return state, played.loss

  return lax.scan(play, state, (part, keys))


def _epoch_end(plan, state: State, key: Key) -> State:
  holdings = Holdings(
      plan.vfl._replace(top=plan.defense.top(plan.vfl.top)),
      state.parties[0].params, plan.auxiliary,
  )
  memory = plan.defense.epoch(state.defense, key, holdings)
  return state._replace(defense=memory)


def _placed(batch: Batch, transform: Transform) -> Batch:
  batch = jax.tree.map(jnp.asarray, batch)
  return batch._replace(features=transform(batch.features))


def _check(plan: train.Plan, data: Batch, chunk: int) -> None:
  train.check(plan, len(data.labels))
  if chunk < 1:
    raise ValueError(f'chunk must be 1 or more rounds; got {chunk}.')
  plain = train.Plan._field_defaults
  if plan.remainder != 'drop' or plan.validate or plan.best:
    raise ValueError(
        "Streaming plays full rounds (remainder='drop') and measures nothing."
    )
  if plan.watch is not plain['watch'] or plan.adversary.parties:
    raise ValueError('Streaming has nobody who watches or deviates.')
  if plan.defense.prepare:
    raise ValueError(
        'This defense prepares the labels of all samples at once: it cannot be '
        'streamed.'
    )
