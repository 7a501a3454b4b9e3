"""Plain federations, small, that vfljax.he's protocols have to equal."""
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from vfljax import algorithms, nets, protocol
from vfljax.defense import none
from vfljax.he import local
from vfljax.types import Batch, Net, Round, State

RATE, CLASSES = 0.1, 3


class Data(NamedTuple):
  """One batch: the passive party's features, the active's, labels."""

  x: np.ndarray
  x0: np.ndarray
  labels: np.ndarray


def given(w: Any) -> Net:
  """x w; `init` gives w whatever the key."""
  params = {'w': jnp.asarray(w)}
  return Net(lambda key, x: params, lambda p, x: x @ p['w'])


def linear(seed: int, *shape: int) -> Net:
  """x w, w drawn by the seed."""
  draws = np.random.default_rng(seed).standard_normal(shape)
  return given(draws / np.sqrt(shape[0]))


def chained(*parts: Net) -> Net:
  """One after the other; parameters are a tuple."""
  def apply(params, x):
    for net, own in zip(parts, params, strict=True):
      x = net.apply(own, x)
    return x
  return Net(lambda key, x: tuple(net.init(key, x) for net in parts), apply)


TANH = Net(lambda key, x: (), lambda p, x: jnp.tanh(x))
LOGITS = Net(lambda key, u: (), lambda params, u: nets.pair(u))


def start(net: Net) -> Any:
  """Its parameters."""
  return net.init(jax.random.key(0), None)


def data(rows: int, inputs: int, classes: int = CLASSES) -> Data:
  """Half of the inputs at each party."""
  draws, half = np.random.default_rng(0), inputs // 2
  labels = np.eye(classes)[np.arange(rows) % classes]
  return Data(
      draws.standard_normal((rows, half)),
      draws.standard_normal((rows, inputs - half)), labels,
  )


def plain_step(
    bottoms: list[Net], top: Net, batch: Data,
    loss: Callable = optax.softmax_cross_entropy,
) -> tuple[State, Round]:
  """The library's own training: one round; party 0 is active."""
  vfl = algorithms.vhnn(bottoms, top, 'sum')._replace(loss=loss)
  txs = (optax.sgd(RATE),) * 2
  whole = Batch(
      (jnp.asarray(batch.x0), jnp.asarray(batch.x)), jnp.asarray(batch.labels)
  )
  state = protocol.init(jax.random.key(0), vfl, none(), txs, whole)
  return protocol.play_round(
      jax.random.key(1), vfl, none(), txs, state, whole
  )


def of_sum(top: Net) -> local.Head:
  """The loss of what arrives, and of labels."""
  return lambda params, z, labels: optax.softmax_cross_entropy(
      top.apply(params, z), labels
  ).mean()


def of_both(bottom: Net, top: Net) -> local.Head:
  """The loss of what arrives and the active party's own features."""
  def loss(params, z, own):
    x, labels = own
    u = z + bottom.apply(params['bottom'], x)
    return of_sum(top)(params['top'], u, labels)
  return loss


def learner(net: Net, kind: type = local.Bottom) -> Any:
  return kind(net, start(net), RATE)


def taylor(logits, labels):
  """HardyLR's loss, of the pair of logits that one logit u makes."""
  u, t = logits[..., 1] - logits[..., 0], labels[..., 1] - labels[..., 0]
  return jnp.log(2.0) - t * u / 2 + u ** 2 / 8
