"""The plain federations that the protocols have to equal, in float64."""
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from vfljax import algorithms, protocol
from vfljax.defense import none
from vfljax.types import Batch, Net

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


def linear(w, b=None) -> Net:
  """x w + b, which `init` gives as its parameters."""
  params = {'w': jnp.asarray(w)} | ({} if b is None else {'b': jnp.asarray(b)})
  return Net(lambda key, x: params, lambda p, x: x @ p['w'] + p.get('b', 0.0))


def chained(*nets: Net) -> Net:
  """One after the other; parameters are a tuple."""
  def apply(params, x):
    for net, own in zip(nets, params, strict=True):
      x = net.apply(own, x)
    return x
  return Net(lambda key, x: tuple(net.init(key, x) for net in nets), apply)


TANH = Net(lambda key, x: (), lambda p, x: jnp.tanh(x))


def start(net: Net):
  """Its parameters."""
  return net.init(None, None)


def weights(seed, *shape):
  return 0.5 * np.random.default_rng(seed).standard_normal(shape)


def play(bottoms, top, batches, loss=optax.softmax_cross_entropy):
  """Rounds of `protocol.play_round`: the library's own plain training."""
  vfl = algorithms.vhnn(bottoms, top, 'sum')._replace(loss=loss)
  txs = (optax.sgd(RATE),) * len(bottoms)
  state = protocol.init(jax.random.key(0), vfl, none(), txs, batches[0])
  states, rounds = [state], []
  for i, one in enumerate(batches):
    state, played = protocol.play_round(
        jax.random.key(i), vfl, none(), txs, state, one
    )
    states.append(state)
    rounds.append(played)
  return Played(states, rounds)


def batch(theirs, own, labels):
  return Batch((jnp.asarray(own), jnp.asarray(theirs)), jnp.asarray(labels))


def head(bottom: Net, top: Net):
  """What the active party computes of the sum that arrives and its own."""
  def loss(params, z, own):
    x, labels = own
    u = z + bottom.apply(params['bottom'], x)
    logits = top.apply(params['top'], u)
    return optax.softmax_cross_entropy(logits, labels).mean()
  return loss


def near(found, wanted, atol=1e-6):
  """All leaves, in order."""
  pairs = zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True)
  for one, other in pairs:
    np.testing.assert_allclose(one, other, rtol=0, atol=atol)


def sum_loss(top: Net):
  """The loss of what arrives, and nothing else."""
  return lambda params, z, labels: optax.softmax_cross_entropy(
      top.apply(params, z), labels
  ).mean()
