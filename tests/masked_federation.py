"""A small federation with masked layers: for the tests of `vfljax.masked`."""
import functools
from typing import Any
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

from vfljax import mpc, nets
from vfljax.masked import masking, training
from vfljax.masked.shares import Public
from vfljax.masked.training import Setup
from vfljax.mpc import one_sided, prg

BATCH, ETA = 16, 0.5
MLP = ('Dense_0', 'Dense_1', 'Dense_2')
TOP = nets.mlp(12, 10)
TXS = (optax.sgd(ETA), optax.sgd(ETA))


def head(params, u, labels):
  return optax.softmax_cross_entropy(TOP.apply(params, u), labels).mean()


@functools.cache
def digits(shape):
  bunch: Any = load_digits()
  x, y = bunch.data, bunch.target
  x = ((x - x.mean(0)) / 5).astype(np.float32)[:, :int(np.prod(shape))]
  x = x.reshape(len(x), *shape)
  return x, np.eye(10, dtype=np.float32)[y]


@functools.cache
def network(kind):
  if kind == 'dense':
    return nets.make('mlp3', 8, hidden=(24, 16)), (32,)
  net = nets.make('lenet5', 8, channels=(3, 4), hidden=(14, 12))
  return net, (8, 4, 1)


def federation(kind, names, last='', setting=Public()):
  """A job with masked layers, its start, and its plaintext equivalent."""
  net, shape = network(kind)
  return federated(net, *digits(shape), names, last, setting)


def federated(net, x, y, names, last='', setting=Public()):
  """The same of any network with 8 outputs."""
  params = jax.jit(net.init)(jax.random.key(1), x[:2])
  u = np.zeros((2, 8), np.float32)
  active = jax.jit(TOP.init)(jax.random.key(2), u)
  found = masking.layers(net, params, x[:BATCH])
  chosen = masking.choose(found, names, last)
  keys = one_sided.seeds(prg.THREEFRY, jax.random.key(3))
  extra = masking.noise(jax.random.key(4), chosen)
  with warnings.catch_warnings():
    warnings.simplefilter('ignore', UserWarning)  # Condition B < n1.
    weights, _ = masking.mask(setting, chosen, keys, params, extra, 0)
  job = Setup(net, head, TXS, chosen, setting, ETA)
  plain = job._replace(chosen=())
  noisy = masking.noisy(params, chosen, extra)
  return (
      job, training.start(job, weights, active),
      plain, training.start(plain, masking.Weights(noisy, {}), active),
      keys, x, y,
  )


def compiled(job):
  step = functools.partial(training.step, job)
  deal = functools.partial(training.deal, job)
  return mpc.jit(step), mpc.jit(deal)


@functools.cache
def in_the_clear(plain):
  """A step of a job without masked layers; found again by those alike."""
  return jax.jit(functools.partial(training.step, plain))


def found_in(net, *shape):
  x = jax.ShapeDtypeStruct(shape, jnp.float32)
  params = jax.eval_shape(net.init, jax.random.key(0), x)
  return masking.layers(net, params, x)
