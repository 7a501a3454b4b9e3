"""The hooks of a defense, each called by itself on a few rows of a round."""
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax

from tests.contracts import make
from vfljax import algorithms, nets, protocol
from vfljax.defense import Defense
from vfljax.defenses import gafm
from vfljax.types import Batch

KEY = jax.random.key(0)
ROWS, WIDTH = 12, 2
# Of which the default makes rows depend on each other: one norm for all.
OTHERWISE = dict(gafm=gafm.gafm(0.2, reading=gafm.Reading(norm='none')))


def data(passive=1):
  """Rows of one direction; Max-Norm adds nothing to equal ones."""
  x = jnp.arange(1.0, ROWS + 1)[:, None] * jnp.array([[0.01, 0.02]])
  return Batch((x,) * (passive + 1), jax.nn.one_hot(jnp.arange(ROWS) % 2, 2))


@functools.cache
def made(name, passive=1):
  """A defense, and what everybody has of it: some numbers."""
  defense = OTHERWISE.get(name) or make(name)
  vfl = algorithms.vhnn([nets.mlp(WIDTH)] * (passive + 1), nets.mlp(2))
  txs, rows = (optax.sgd(1.0),) * (passive + 1), data(passive)
  shapes = jax.eval_shape(lambda key: protocol.init(
      key, vfl, defense, txs, rows, auxiliary=rows
  ), KEY)
  rng = np.random.default_rng(0)
  return defense, jax.tree.map(
      lambda s: jnp.asarray(rng.normal(size=s.shape), s.dtype), shapes
  )


def given(name, passive=1):
  """A defense and the first arguments of `HOOKS` after the labels: the parties'
  weights and the memory."""
  defense, state = made(name, passive)
  active, first, *_ = (p.params['defense'] for p in state.parties)
  return defense, (active, first, state.defense)


def has(defense, hook):
  """Whether it does anything there."""
  own = getattr(defense, hook)
  return own is not None and own is not getattr(Defense(), hook)


def top(rows):
  """Messages -> logits, also where all of them are left out."""
  nothing = jnp.zeros((rows, WIDTH))
  return lambda us: sum((u for u in us if u is not None), nothing)


def batch(own, key, x, labels):
  """How much of each row is left in its place."""
  rows = jnp.eye(len(x))
  return jnp.diag(own.batch(key, Batch((rows, rows), labels)).features[1])


# What the active party makes of all messages: as `HOOKS`, of (x of each passive
# party, ...), in their place.
OF_ALL = dict(
    receive=lambda own, key, xs, y, active, passive, memory: own.receive(
        active, memory, key, xs, y)[0],
    objective=lambda own, key, xs, y, active, passive, memory: jax.grad(
        lambda xs: own.objective(memory, key, top(len(y)), xs, y))(xs),
    gradient=lambda own, key, xs, y, active, passive, memory: own.gradient(
        memory, key, xs, y)[0],
)


def of_one(hook):
  """The same of one passive party."""
  return lambda own, key, x, y, *of: OF_ALL[hook](own, key, (x,), y, *of)[0]


# Hook -> (defense, key, x, labels, active, passive, memory) -> [rows, ...].
HOOKS = dict(
    batch=lambda own, key, x, y, *_: batch(own, key, x, y),
    prepare=lambda own, key, x, y, *_: own.prepare(key, x, y),
    send=lambda own, key, x, y, active, passive, memory: own.send(
        passive, key, x)[0],
    label=lambda own, key, x, y, active, passive, memory: own.label(
        memory, key, y),
    **{hook: of_one(hook) for hook in OF_ALL},
)


def outcome(name, hook):
  """key -> [rows, ...] what comes of the rows."""
  own, state = given(name)
  x, labels = data().features[1], data().labels
  return lambda key: HOOKS[hook](own, key, x, labels, *state)


def outcome_of_all(name, hook):
  """key -> [2, rows, ...] what comes of two passive parties' equal messages."""
  own, state = given(name, passive=2)
  _, *xs = data(passive=2).features
  return lambda key: jnp.stack(
      OF_ALL[hook](own, key, tuple(xs), data().labels, *state)
  )


@functools.cache
def drawing(name):
  """The hooks that draw for rows, by tracing alone."""
  return [
      hook for hook in HOOKS
      if has(made(name)[0], hook)
      and 'random_bits' in str(jax.make_jaxpr(outcome(name, hook))(KEY))
  ]
