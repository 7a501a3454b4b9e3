"""The small federation in which every defense and every attack is tried."""
import functools

import jax
import jax.numpy as jnp
import optax

from tests import examples
from vfljax import algorithms, attacks, defenses, nets, protocol
from vfljax.attack import Recipe, recipe_of
from vfljax.defense import Method
from vfljax.types import Batch

SAMPLES, WIDTH = 16, 6
PARTIES = 2
# With a memory, as Adam, whose step is longer to compile than all the rest.
TXS = (optax.sgd(0.05, momentum=0.9),) * PARTIES
# All that a contract is for: what is registered, and BUILD.md's own examples.
DEFENSES = sorted({*defenses.REGISTRY, *examples.DEFENSES})
ATTACKS = sorted({*attacks.REGISTRY, *examples.ATTACKS})


def method_of(name) -> Method:
  return defenses.REGISTRY.get(name) or examples.DEFENSES[name]


def recipe_named(name) -> Recipe:
  return recipe_of(attacks.REGISTRY.get(name) or examples.ATTACKS[name])


def make(name, strength=None):
  method = method_of(name)
  if not method.strengths:
    return method()
  return method(method.strengths[0] if strength is None else strength)


@functools.cache
def batch(dtype=jnp.float32):
  with jax.ensure_compile_time_eval():  # Numbers, also where a test traces.
    return drawn(dtype)


@functools.partial(jax.jit, static_argnums=0)
def drawn(dtype):
  keys = jax.random.split(jax.random.key(0), PARTIES)
  features = tuple(
      jax.random.normal(k, (SAMPLES, 4 + i), dtype)
      for i, k in enumerate(keys)
  )
  positive = (jnp.arange(SAMPLES) % 3 == 0).astype(int)
  return Batch(features, jax.nn.one_hot(positive, 2, dtype=dtype))


@functools.cache
def federation():
  # Each layer is a tenth of what a round takes to compile. The top has two, as
  # gradients from a linear one have but two directions.
  bottoms = [nets.mlp(WIDTH)] + [nets.mlp(8, WIDTH)] * (PARTIES - 1)
  return algorithms.vhnn(bottoms, nets.binary(nets.mlp(8, 1)))


def start(key, defense, data):
  return protocol.init(
      key, federation(), defense, TXS, data, auxiliary=data
  )


def play(key, defense, state, data):
  return protocol.play_round(key, federation(), defense, TXS, state, data)


@functools.cache
def one_round(vfl=None):
  """(state before it, what was seen of it), of an undefended round."""
  vfl, defense, data = vfl or federation(), make('none'), batch()
  play = jax.jit(lambda key, state: protocol.play_round(
      key, vfl, defense, TXS, state, data
  )[1])
  with jax.ensure_compile_time_eval():  # Also where a test traces first.
    key = jax.random.key(0)
    state = protocol.init(key, vfl, defense, TXS, data)  # Eager: less compiled.
    return state, play(key, state)
