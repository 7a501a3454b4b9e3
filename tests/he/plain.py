"""The plain federations that the protocols have to equal, in float64."""
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.bench.he_plain import TANH, chained, start
from experiments.bench.he_plain import given as linear
from experiments.bench.he_plain import of_both as head
from experiments.bench.he_plain import of_sum as sum_loss
from vfljax import algorithms, protocol
from vfljax.defense import none
from vfljax.types import Batch

__all__ = ('TANH', 'chained', 'head', 'linear', 'start', 'sum_loss')
RATE = 0.3
CLASSES = 3


class Played(NamedTuple):
  """What plain training says of two mini-batches."""

  states: list
  rounds: list


def data(rows=4, own=5, theirs=6, seed=0, classes=CLASSES):
  """(passive features, active features, one-hot labels)."""
  draws = np.random.default_rng(seed)
  labels = np.eye(classes)[np.arange(rows) % classes]
  return (draws.standard_normal((rows, theirs)),
          draws.standard_normal((rows, own)), labels)


def weights(seed, *shape):
  return 0.5 * np.random.default_rng(seed).standard_normal(shape)


def play(bottoms, top, batches, loss=optax.softmax_cross_entropy):
  """Rounds of `protocol.play_round`: the library's own plain training."""
  vfl = algorithms.vhnn(bottoms, top, 'sum')._replace(loss=loss)
  txs = (optax.sgd(RATE),) * len(bottoms)
  state = protocol.init(jax.random.key(0), vfl, none(), txs, batches[0])
  states, rounds = [state], []
  play_round = jax.jit(lambda key, state, one: protocol.play_round(
      key, vfl, none(), txs, state, one
  ))
  for i, one in enumerate(batches):
    state, played = play_round(jax.random.key(i), state, one)
    states.append(state)
    rounds.append(played)
  return Played(states, rounds)


def batch(theirs, own, labels):
  return Batch((jnp.asarray(own), jnp.asarray(theirs)), jnp.asarray(labels))


def near(found, wanted, atol=1e-6):
  """All leaves, in order."""
  pairs = zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True)
  for one, other in pairs:
    np.testing.assert_allclose(one, other, rtol=0, atol=atol)
