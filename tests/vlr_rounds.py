"""Rounds of vertical logistic regression."""
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax

from vfljax import algorithms, protocol
from vfljax.defense import none
from vfljax.types import Batch


@functools.cache
def vlr_round(classes, batch, columns, seed=0):
  """One round of vertical logistic regression: (federation, round)."""
  rng = np.random.default_rng(seed)
  draw = lambda *shape: jnp.asarray(rng.normal(size=shape), jnp.float32)
  labels = np.eye(classes, dtype=np.float32)[rng.integers(0, classes, batch)]
  data = Batch((draw(batch, 3), draw(batch, columns)), jnp.asarray(labels))
  vfl, txs = algorithms.vlr(2, classes), (optax.sgd(0.1),) * 2
  begin = lambda data: protocol.init(jax.random.key(0), vfl, none(), txs, data)
  state = jax.tree.map(
      lambda x: 0.3 * rng.normal(size=x.shape).astype(x.dtype),
      jax.eval_shape(begin, data),
  )
  play = jax.jit(lambda state, data: protocol.play_round(
      jax.random.key(0), vfl, none(), txs, state, data
  )[1])
  return vfl, play(state, data)
