"""Training a network that a defense brings along, before the federation's."""
from collections.abc import Callable
from typing import Any

import jax
from jax import lax
import optax

from vfljax import descent
from vfljax.numerics import permutation
from vfljax.types import Array, Key, Params


def fit(
    key: Key, loss: Callable[[Params, Any], Array], params: Params, data: Any,
    tx: optax.GradientTransformation, *, epochs: int, batch_size: int,
) -> Params:
  """Descends a loss over shuffled minibatches.

  Args:
    key: Seeds the orders.
    loss: (params, rows) -> scalar, `rows` being `data` with a batch's rows.
    params: Where it starts.
    data: A pytree of arrays with a common first axis.
    tx: The optimizer.
    epochs: Passes over the data, 1 or more; static.
    batch_size: Rows a step, 1 or more; static. With fewer rows, all of them;
      what does not fill a batch waits for another epoch's order.
  """
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
