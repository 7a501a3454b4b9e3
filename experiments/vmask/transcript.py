"""A training whose layers are masked, and what a passive party keeps of it.

For `adaptive`: two parties hold the halves of MNIST's images, and the exact
protocol trains the layers of the passive party's network.
"""
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from vfljax import mpc, nets
from vfljax.data import npz
from vfljax.masked import masking, ranges, training
from vfljax.masked.shares import Public
from vfljax.masked.training import Setup
from vfljax.mpc import one_sided, prg
from vfljax.nets import intercept
from vfljax.runner.errors import UserError
from vfljax.types import Array, Net
from vfljax.views import MaskedLayer

BATCH, ETA, WIDTH = 128, 0.1, 64
TOP = nets.mlp(64, 10)


class Study(NamedTuple):
  """What is trained and attacked.

  Attributes:
    net: Both parties' networks.
    last: Its last layer.
    shape: Of the features.
    solved_from: Numbers of rounds from which the linear attacker solves; as
      many rounds as the last of these are kept whole.
    batch: The attack's batch size; 0 for all known labels at once.
    before: Number of epochs in the clear.
  """

  net: Net
  last: str
  shape: tuple[int, ...]
  solved_from: tuple[int, ...]
  batch: int
  before: int = 0


STUDIES = dict(
    mlp3=Study(
        nets.make('mlp3', WIDTH), 'Dense_2/Dense_0', (392,), (1, 4, 8, 40), 0
    ),
    lenet5=Study(
        nets.make('lenet5', WIDTH), 'fc3/Dense_0', (28, 14, 1), (1, 4, 8), 8
    ),
)


class Data(NamedTuple):
  """Both halves of the images, standardised, and one-hot labels."""

  passive: Array
  active: Array
  labels: Array


class Trained(NamedTuple):
  """A training as the simulator sees it, and each layer as P saw it."""

  weights: Any
  views: dict[str, MaskedLayer]
  losses: np.ndarray


def load(path: str, shape: tuple[int, ...]) -> tuple[Data, Data]:
  """Training and test images; scaled by the training images.

  Raises:
    UserError: if there is no such file.
  """
  try:
    table = npz.load(path)
  except (FileNotFoundError, ValueError) as error:
    raise UserError(str(error)) from None
  assert table.test is not None
  x = np.asarray(table.features, np.float32).reshape(-1, 28, 28) / 255
  y, fresh = np.asarray(table.labels), np.asarray(table.test, bool)
  mean, std = x[~fresh].mean(), x[~fresh].std()

  def part(x, y):
    left, right = np.split((x - mean) / std, 2, axis=2)
    formed = lambda a: jnp.asarray(a.reshape(len(a), *shape))
    labels = jnp.asarray(np.eye(10, dtype='f')[y])
    return Data(formed(left), formed(right), labels)

  return part(x[~fresh], y[~fresh]), part(x[fresh], y[fresh])


def head(
    net: Net, params: Any, u: Array, batch: tuple[Array, Array]
) -> Array:
  own = net.apply(params['bottom'], batch[0])
  logits = TOP.apply(params['top'], u + own)
  return optax.softmax_cross_entropy(logits, batch[1]).mean()


def train(
    seed: int, study: Study, data: Data, epochs: int, last: str
) -> Trained:
  """Trains with all layers masked, the layer `last` under T4 ('': none)."""
  keys = jax.random.split(jax.random.key(seed), 6)
  net, x = study.net, data.passive[:BATCH]
  params = net.init(keys[0], x)
  own = dict(bottom=net.init(keys[1], x),
             top=TOP.init(keys[2], jnp.zeros((1, WIDTH), jnp.float32)))
  dealers = one_sided.seeds(prg.THREEFRY, keys[3])
  sgd = optax.sgd(ETA)
  job = Setup(net, functools.partial(head, net), (sgd, sgd), (), Public(), ETA)
  if study.before:
    params, own = in_the_clear(seed, job, params, own, data, study.before)
  found = masking.layers(net, params, x)
  chosen = masking.choose(found, [f.name for f in found], last)
  noise = masking.noise(keys[4], chosen)
  weights, _ = masking.mask(
      Public(), chosen, dealers, params, noise, 0
  )
  job = job._replace(chosen=chosen)
  state = training.start(job, weights, own)

  @mpc.jit
  def play(state, data, rows, number):
    dealt, _ = training.deal(job, dealers, state.weights, 0, number)
    x, x0, y = (jnp.take(part, rows, axis=0) for part in data)
    return training.step(job, state, dealt, keys[5], x, (x0, y))

  copy, kept, losses, tops, number = params, [], [], [], 0
  for epoch in range(study.before, study.before + epochs):
    for rows in batches(seed, epoch, len(data.labels)):
      state, played = play(state, data, rows, np.uint32(number))
      if number < study.solved_from[-1]:
        kept.append((copy, played.seen))
      copy = optax.apply_updates(copy, played.moves)
      losses.append(played.loss)
      tops.append(played.ranges)
      number += 1
    print(f'seed {seed} last {last!r} epoch {epoch}: '
          f'loss {np.mean(losses[-100:]):.4f}', flush=True)
  top = jax.tree.map(lambda *v: jnp.stack(v), *tops)
  for layer in chosen:
    ranges.check(job.public, layer, top[layer.name])
  views = {c.name: _view(c, copy, kept) for c in chosen}
  whole = training.reveal(job, state.weights)
  return Trained(whole, views, np.asarray(losses))


def in_the_clear(seed, job: Setup, params, own, data: Data, epochs: int):
  """Both parties' weights after epochs without masking."""
  state = training.start(job, masking.Weights(params, {}), own)

  @jax.jit
  def play(state, data, rows):
    x, x0, y = (jnp.take(part, rows, axis=0) for part in data)
    return training.step(job, state, {}, jax.random.key(0), x, (x0, y))

  for epoch in range(epochs):
    for rows in batches(seed, epoch, len(data.labels)):
      state, _ = play(state, data, rows)
  return state.weights.plain, state.active


def batches(seed: int, epoch: int, count: int) -> np.ndarray:
  """int32 [rounds, BATCH]: an epoch's rows."""
  order = np.random.default_rng((seed, epoch)).permutation(count)
  return order[: count // BATCH * BATCH].reshape(-1, BATCH).astype(np.int32)


def _view(layer, copy, kept) -> MaskedLayer:
  """What P has of a layer; under T4 no outputs, and a `copy` never updated."""
  path = tuple(layer.name.split('/'))
  own = intercept.leaves_at(copy, path)
  if layer.to_active:
    return MaskedLayer(own, (), (), ())
  copies = [intercept.leaves_at(c, path) for c, _ in kept]
  copies = jax.tree.map(lambda *leaves: jnp.stack(leaves), *copies)
  z, y = (jnp.stack([seen[layer.name][i] for _, seen in kept]) for i in (0, 1))
  return MaskedLayer(own, copies, z, y)
