"""The programs that `bench.accel` compiles, each for a number of seeds.

Defenses play two epochs of a small federation on samples of Spambase's shape,
each seed with its own order of them, as the runner's `advance` does. Attacks
run on the views that their contract tests make. Networks do a training pass
forwards and back. Ring schemes multiply.
"""
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from tests.attacks.test_contract import EVERY_ATTACK, make_attack, view_of
from tests.contracts import make
from vfljax import algorithms, defenses, nets, train
from vfljax.mpc import schemes
from vfljax.permuting import permutation
from vfljax.types import Batch

SAMPLES, COLUMNS, BATCH, EPOCHS = 3220, (29, 28), 64, 2
ROUNDS = SAMPLES // BATCH
SIDES = (64, 256, 32)  # Of the matrices that ring schemes multiply.
READ = dict(
    images=jax.ShapeDtypeStruct((32, 28, 14, 1), jnp.float32),
    numbers=jax.ShapeDtypeStruct((32, 10), jnp.int32),  # As long as it reads.
    anything=jax.ShapeDtypeStruct((32, 57), jnp.float32),
)
# Three unpadded convolutions would leave nothing of half an image.
WHOLE = dict(conv3=jax.ShapeDtypeStruct((32, 28, 28, 1), jnp.float32))
OPTIONS: dict[str, dict[str, Any]] = dict(
    encoder=dict(path='tests/golden/tiny_bert', random=True),
)
_ORDER = ('none', 'marvell', 'gafm')  # Defenses that are compiled first.


class Program(NamedTuple):
  """What is compiled.

  Attributes:
    fn, arguments: As for `accel_compile.compiled`.
    donate, wide: Likewise.
    rounds: How long the loop is whose body is counted; 0 counts everything.
  """

  fn: Callable
  arguments: tuple
  donate: tuple[int, ...] = ()
  wide: bool = False
  rounds: int = 0


class Trainings(NamedTuple):
  """A small federation's training under a defense, of one cell.

  Attributes:
    start: (key, strength, data) -> run.
    advance: (run, key, strength, data) -> (run, history) two epochs later.
  """

  start: Callable
  advance: Callable


def trainings(name: str) -> Trainings:
  """Of the defense of that name, on samples of Spambase's shape."""
  vfl = algorithms.vhnn(
      [nets.mlp(32, 16)] * 2, nets.binary(nets.mlp(16, 1))
  )

  def plan(strength, own):
    spare = jax.tree.map(lambda x: x[:BATCH], own)
    return train.Plan(
        vfl, make(name, strength), (optax.adam(1e-3),) * 2, EPOCHS, BATCH,
        auxiliary=spare,
    )

  def own(key, data):
    order = permutation(key, SAMPLES)
    return jax.tree.map(lambda x: x[order], data)

  def start(key, strength, data):
    here = own(key, data)
    return train.start(key, plan(strength, here), here)

  def advance(run, key, strength, data):
    here = own(key, data)
    return train.advance(plan(strength, here), run, here, 0, EPOCHS)

  return Trainings(start, advance)


def defense(name: str, seeds: int) -> Program:
  """Two epochs of training."""
  start, advance = trainings(name)
  data: Any = Batch(
      tuple(shape(SAMPLES, c) for c in COLUMNS), shape(SAMPLES, 2)
  )
  cells = keys(seeds), shape(seeds)
  runs = jax.eval_shape(jax.vmap(start, (0, 0, None)), *cells, data)
  return Program(
      jax.vmap(advance, (0, 0, 0, None)), (runs, *cells, data), (0,),
      rounds=ROUNDS,
  )


def attack(name: str, seeds: int) -> Program:
  """One run of an attack, after training or on a round."""
  made = make_attack(name)
  view = jax.eval_shape(lambda: view_of(made.view))
  return Program(jax.vmap(made.run, (0, None)), (keys(seeds), view))


def network(name: str, seeds: int) -> Program:
  """A training pass and its gradient, of a batch that all seeds share."""
  net = nets.make(name, **OPTIONS.get(name, {}))
  x = WHOLE.get(name, READ[nets.REGISTRY[name].reads])

  def slope(params, key, x):
    loss = lambda params: (net.run(params, key, x)[0] ** 2).sum()
    return jax.grad(loss, allow_int=True)(params)

  params = jax.eval_shape(
      jax.vmap(net.init, (0, None)), keys(seeds), x
  )
  return Program(jax.vmap(slope, (0, 0, None)), (params, keys(seeds), x))


def ring(name: str, seeds: int) -> Program:
  """A product of integers of 64 bits."""
  m, k, n = SIDES
  scheme = schemes.SCHEMES[name]._replace(rows=None)
  whole = lambda *sides: jax.ShapeDtypeStruct((seeds, *sides), np.int64)
  return Program(
      jax.vmap(lambda a, b: schemes.matmul(scheme, a, b)),
      (whole(m, k), whole(k, n)), wide=True,
  )


def shape(*sides: int) -> Any:
  """Of floats."""
  return jax.ShapeDtypeStruct(sides, jnp.float32)


def keys(seeds: int) -> Any:
  """Shapes of keys."""
  return jax.eval_shape(lambda: jax.random.split(jax.random.key(0), seeds))


MAKERS: dict[str, Callable[[str, int], Program]] = dict(
    defense=defense, ring=ring, network=network, attack=attack,
)
NAMES: dict[str, list[str]] = dict(
    defense=[*_ORDER, *sorted({*defenses.REGISTRY} - {*_ORDER})],
    ring=[s for s in schemes.SCHEMES if s != 'patches'],  # naive's product.
    network=list(nets.REGISTRY),
    attack=EVERY_ATTACK,
)


def seeds_of(group: str, name: str) -> tuple[int, ...]:
  """How many seeds at a time are compiled: for most of them two counts."""
  whole = group == 'ring' or group == 'defense' and name in _ORDER
  return (64, 1, 16, 256) if whole else (64, 1)
