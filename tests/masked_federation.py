"""A small federation with masked layers: for the tests of `vfljax.masked`."""
import functools
from typing import Any
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

from tests import small_networks
from vfljax import mpc, nets
from vfljax.masked import masking, training
from vfljax.masked.shares import Public
from vfljax.masked.training import Setup
from vfljax.mpc import one_sided, prg
from vfljax.mpc.one_sided import Seeds

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


def _mixed(x):
  """MurmurHash3's last step, of uint32."""
  x = (x ^ x >> 16) * np.uint32(0x85EBCA6B)
  x = (x ^ x >> 13) * np.uint32(0xC2B2AE35)
  return x ^ x >> 16


def _folded(key, number):
  number = jnp.asarray(number).astype(jnp.uint32)
  first = _mixed(key[0] ^ number)
  return jnp.stack([first, _mixed(key[1] + first)])


def _words(key, shape):
  at = jnp.arange(np.prod(shape, dtype=int), dtype=jnp.uint32).reshape(shape)
  low = _mixed(_mixed(at ^ key[0]) + key[1])
  high = _mixed(_mixed(at + key[1]) ^ low)
  return low.astype(jnp.int64) | high.astype(jnp.int64) << 32


# Masks for who trains: Threefry's take most of the time to compile.
QUICK = prg.Prg('quick', _folded, _words)
SEEDS = Seeds(*np.arange(6, dtype=np.uint32).reshape(3, 2))


@mpc.entry
@functools.partial(jax.jit, static_argnums=(0, 1))
def masked(*args):
  """Weights as `masking.mask` has them, by one program and not one a shape."""
  with warnings.catch_warnings():
    warnings.simplefilter('ignore', UserWarning)  # Condition B < n1.
    return masking.mask(*args)[0]


def federation(kind, names, last='', setting=Public(prg=QUICK)):
  """A job with masked layers, its start, and its plaintext equivalent."""
  net, shape = network(kind)
  return federated(net, *digits(shape), names, last, setting)


def numbers(net, x, seed):
  """Weights as NumPy has them: what is added to them is not compiled."""
  return jax.tree.map(np.asarray, small_networks.drawn(net, x, seed))


def noise(chosen, seed=4):
  """As `masking.noise`, which compiles a program for each shape."""
  draw = np.random.default_rng(seed).normal
  shapes = dict(kernel=lambda shape: shape, bias=lambda shape: shape[-1:])
  return {
      layer.name: {
          name: np.float32(
              masking.STD * draw(size=shapes[name](layer.bilinear.w_shape))
          ) for name in layer.leaves
      } for layer in chosen
  }


@functools.cache
def begun(net, shape, dtype):
  """Weights of the passive and of the active party, and the layers."""
  x = np.zeros((BATCH, *shape), dtype)
  # Of twice the deviation: convolutions learn from the start.
  params = jax.tree.map(
      lambda leaf: leaf * np.float32(2 if leaf.ndim > 2 else 1),
      numbers(net, x, 2),
  )
  active = numbers(TOP, np.zeros((2, 8), np.float32), 2)
  return params, active, masking.layers(net, params, x)


def federated(net, x, y, names, last='', setting=Public(prg=QUICK)):
  """The same of any network with 8 outputs."""
  params, active, found = begun(net, x.shape[1:], x.dtype)
  chosen = masking.choose(found, names, last)
  keys = SEEDS
  if setting.prg is prg.THREEFRY:
    keys = one_sided.seeds(prg.THREEFRY, jax.random.key(3))
  extra = noise(chosen)
  weights = masked(setting, chosen, keys, params, extra, 0)
  job = Setup(net, head, TXS, chosen, setting, ETA)
  plain = job._replace(chosen=())
  noisy = masking.noisy(params, chosen, extra)
  return (
      job, training.start(job, weights, active),
      plain, training.start(plain, masking.Weights(noisy, {}), active),
      keys, x, y,
  )


@functools.cache
def compiled(job):
  """Its exact step and its deals; found again by those alike."""
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
