"""Trains a defense's own network before the federation is trained."""
from collections.abc import Callable
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp
import optax

from vfljax import descent
from vfljax.permuting import permutation
from vfljax.types import Array, Key, Params


def fit(
    key: Key, loss: Callable[[Params, Any], Array], params: Params, data: Any,
    tx: optax.GradientTransformation, *, epochs: int, batch_size: int,
) -> Params:
  """Descends a loss over shuffled mini-batches: the trained parameters.

  Args:
    key: Seeds the orders.
    loss: (params, rows) -> scalar, `rows` being `data` with a batch's rows.
    params: The initial ones.
    data: A pytree of arrays with a common first axis.
    tx: The optimizer.
    epochs: Passes over the data, 1 or more; static.
    batch_size: Rows a step, 1 or more; static; all rows if there are fewer. The
      rows left over by an epoch's full batches are not used in that epoch.
  """
  data = jax.tree.map(jnp.asarray, data)  # Traced numbers index no NumPy.
  count = len(jax.tree.leaves(data)[0])
  size = min(batch_size, count)
  rounds = count // size

  def step(carry, rows):
    params, opt = carry
    grads = jax.grad(loss)(params, jax.tree.map(lambda x: x[rows], data))
    return descent.step(tx, grads, opt, params), None

  def epoch(carry, key):
    order = permutation(key, count)[: rounds * size].reshape(rounds, size)
    return lax.scan(step, carry, order)[0], None

  carry = params, tx.init(params)
  return lax.scan(epoch, carry, jax.random.split(key, epochs))[0][0]
