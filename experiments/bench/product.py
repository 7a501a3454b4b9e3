"""The gradient of a layer's weights on one core: XLA's product and ours.

  taskset -c 0 python -m experiments.bench.product \\
      --out=experiments/bench/product.json

Timed are x^T d for x [rows, k] and d [rows, n], alone in a loop, and a round of
trainings whose networks have such layers, in microseconds. Both sides take
turns in one process, and the fastest counts. The record says whether their
numbers are equal to the bit. Convolutions are computed as products of patches.
"""
import argparse
from collections.abc import Callable
from functools import partial
import time
from typing import Any
from unittest import mock

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from experiments.bench import core, models, records
from vfljax.nets import product
from vfljax.runner.machine import device, tuning

SHAPES = (  # (rows, k, n)
    (128, 128, 10), (128, 256, 2), (1028, 57, 2), (256, 128, 32),
    (128, 256, 128), (256, 512, 256), (8192, 288, 32), (2048, 576, 64),
)
NETWORKS = dict(lenet5=40, resnet20=2, vgg13=2, resnet18=1)  # Rounds of each.
LOOPS = 100
USUAL = mock.patch.object(product, '_way', lambda x, w: '')


def gradient(rows: int, k: int, n: int) -> Callable[[], Any]:
  """A call that computes x^T d LOOPS times."""
  rng = np.random.default_rng(0)
  x, d = (jnp.asarray(rng.normal(size=(rows, s)), 'f') for s in (k, n))

  def step(total, shift):
    back = jax.vjp(lambda w: product.product(x, w), jnp.zeros((k, n)))[1]
    return total + back(d + shift)[0], None

  loop = jax.jit(lambda x: lax.scan(step, jnp.zeros((k, n)), x)[0])
  program = tuning.compiled(loop.lower(jnp.zeros(LOOPS)))
  return lambda: jax.block_until_ready(program(jnp.zeros(LOOPS)))


def both(make: Callable[[], Callable[[], Any]], rounds: int, turns: int):
  """{'usual', 'ours': us a round, 'same': whether to the bit}."""
  with USUAL:
    jax.clear_caches()  # Networks are traced once, see `nets.once`.
    usual = make()
  jax.clear_caches()
  sides, spent = dict(usual=usual, ours=make()), dict(usual=[], ours=[])
  outs = {name: jax.tree.leaves(call()) for name, call in sides.items()}
  for _ in range(turns):
    for name, call in sides.items():
      began = time.perf_counter()
      call()
      spent[name].append(time.perf_counter() - began)
  found: dict[str, Any] = {
      name: round(min(times) / rounds * 1e6, 1) for name, times in spent.items()
  }
  numbers = [
      [np.asarray(x) for x in out if jnp.issubdtype(x.dtype, jnp.number)]
      for out in outs.values()
  ]
  same = all(map(np.array_equal, *numbers))
  return found | dict(ratio=round(found['usual'] / found['ours'], 2), same=same)


def trained(name: str, rounds: int) -> Callable[[], Any]:
  """A training whose convolutions are products of patches."""
  return models.scanned(name, rounds, how='patches')[0]


def main() -> None:
  parser = argparse.ArgumentParser(description="Times weights' gradients.")
  parser.add_argument('--out', default='', help='JSON file; empty prints only')
  parser.add_argument('--turns', type=int, default=5)
  args = parser.parse_args()
  device.set_up(1, '')
  record: dict[str, Any] = records.begin() | records.machine()
  record['gradients'] = [
      dict(rows=m, k=k, n=n)
      | both(lambda m=m, k=k, n=n: gradient(m, k, n), LOOPS, args.turns)
      for m, k, n in SHAPES
  ]
  mnist = core.WORKLOADS['mnist']()
  record['trainings'] = dict(
      mnist=both(lambda: core.compiled(mnist, 1)[0], mnist.rounds, args.turns)
  ) | {
      name: both(partial(trained, name, rounds), rounds, 3)
      for name, rounds in NETWORKS.items()
  }
  records.write(record, args.out)


if __name__ == '__main__':
  main()
