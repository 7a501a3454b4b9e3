"""Images a second through LeNet5, VGG13 and ResNet18, beside PyTorch.

  python -m experiments.bench.models --out=experiments/bench/models.json

Two parties train on random images with the shapes of MNIST's and CIFAR-10's
halves, in batches of 128, by SGD; everything is compiled beforehand. If PyTorch
is installed, it is the peer (`models_torch.py`). All take turns, and the
fastest counts. Beside our default, each layer is also computed as one product
of patches. With LeNet5, that and XLA's convolutions are compared inside a scan
and as one compiled round after another.
"""
import argparse
import importlib.util
import json
from pathlib import Path
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.bench import core, records
from vfljax import algorithms, nets, protocol, train
from vfljax.defense import none
from vfljax.runner.machine import device
from vfljax.types import Batch

BATCH = 128
SHAPES = dict(
    lenet5=(28, 14, 1), vgg13=(32, 16, 3), resnet18=(32, 16, 3),
    resnet20=(32, 16, 3),
)
# A call's memory is new in its first round: two say little of a training.
ROUNDS = dict(lenet5=40, vgg13=8, resnet18=8)
TXS = (optax.sgd(0.01),) * 2


def setup(name: str, rounds: int, **options: Any):
  """(federation, samples for so many rounds)."""
  rng = np.random.default_rng(0)
  x = rng.random((2, rounds * BATCH, *SHAPES[name]), np.float32)
  y = jax.nn.one_hot(rng.integers(0, 10, rounds * BATCH), 10)
  net = nets.make(name, 64, **options)
  vfl = algorithms.vhnn([net] * 2, nets.mlp(64, 10), 'sum')
  return vfl, Batch(tuple(map(jnp.asarray, x)), y)


def scanned(name: str, rounds: int, **options: Any):
  """(a call that trains an epoch in one program, seconds to compile it)."""
  vfl, data = setup(name, rounds, **options)
  plan = train.Plan(vfl, none(), TXS, 1, BATCH)
  run = jax.jit(lambda key: train.start(key, plan, data))(jax.random.key(0))
  advance = lambda run, data: train.advance(plan, run, data, 0, 1)
  began = time.perf_counter()
  program = jax.jit(advance).lower(run, data).compile()
  seconds = time.perf_counter() - began
  return lambda: jax.block_until_ready(program(run, data)), seconds


def stepwise(name: str, rounds: int, **options: Any):
  """The same as a Python loop over compiled rounds."""
  vfl, data = setup(name, rounds, **options)
  first = jax.tree.map(lambda x: x[:BATCH], data)
  state = jax.jit(
      lambda key: protocol.init(key, vfl, none(), TXS, first)
  )(jax.random.key(0))
  play = lambda key, state, batch: protocol.play_round(
      key, vfl, none(), TXS, state, batch
  )[0]
  began = time.perf_counter()
  program = jax.jit(play).lower(jax.random.key(0), state, first).compile()
  seconds = time.perf_counter() - began
  parts = [
      jax.tree.map(lambda x, i=i: x[i * BATCH : (i + 1) * BATCH], data)
      for i in range(rounds)
  ]

  def call():
    now = state
    for i, part in enumerate(parts):
      now = program(jax.random.key(i), now, part)
    return jax.block_until_ready(now)

  return call, seconds


def speed(images: int, seconds: float) -> float:
  return round(images / seconds, 1)


def beside(name: str, turns: int, peers: dict[str, core.Peer]) -> dict:
  """A network's images a second, ours and the peers'."""
  rounds = ROUNDS[name]
  call, compiling = scanned(name, rounds)
  call()
  sides = {'vfljax': lambda: core.timed(call)}
  windows, _ = scanned(name, rounds, how='patches')
  windows()
  sides['vfljax, patches'] = lambda: core.timed(windows)
  for label, peer in peers.items():
    peer.time(name, rounds)
    sides[label] = lambda peer=peer: peer.time(name, rounds)
  times: dict[str, list] = {label: [] for label in sides}
  for _ in range(turns):
    for label, side in sides.items():
      times[label].append(side())
  found: dict[str, Any] = {}
  for label, own in times.items():
    best = core.summary(own)
    found[label] = dict(
        images_per_second=speed(rounds * BATCH, best['wall_min']), **best
    )
  found['vfljax']['compile_seconds'] = round(compiling, 1)
  for label in peers:
    found[f'ratio to {label}'] = round(
        found[label]['wall_min'] / found['vfljax']['wall_min'], 2
    )
  return dict(rounds=rounds, **found)


def formulations(turns: int) -> dict[str, dict[str, float]]:
  """LeNet5 with both ways of convolving, scanned and round by round."""
  found = {}
  for how in ('patches', 'conv'):
    for make in (scanned, stepwise):
      call, compiling = make('lenet5', 10, how=how)
      call()
      best = min(core.timed(call)['wall'] for _ in range(turns))
      found[f'{how}, {make.__name__}'] = dict(
          images_per_second=speed(10 * BATCH, best),
          compile_seconds=round(compiling, 1),
      )
  return found


def main() -> None:
  parser = argparse.ArgumentParser(description='Times networks on images.')
  parser.add_argument('--out', default='', help='JSON file; empty prints only')
  parser.add_argument('--turns', type=int, default=3)
  parser.add_argument('--only', default='', help='lenet5, vgg13, ...')
  args = parser.parse_args()
  device.set_up(1, '')
  peers: dict[str, core.Peer] = {}
  if importlib.util.find_spec('torch'):
    peers = {
        f'torch, {n} thread{"s" * (n > 1)}': core.Peer(
            n, 'experiments.bench.models_torch'
        ) for n in (1, 2)
    }
  place = Path(args.out) if args.out else None
  found: dict[str, Any] = {}
  if args.only and place and place.exists():
    found = json.loads(place.read_text('utf-8'))
  found |= records.begin() | dict(batch=BATCH)
  for name in ROUNDS:
    if args.only in ('', name):
      # With `--only`, other networks' numbers may be another machine's.
      found[name] = beside(name, args.turns, peers) | records.machine()
  if args.only in ('', 'formulations'):
    found['lenet5, formulations'] = formulations(args.turns)
  for peer in peers.values():
    peer.close()
  records.write(found, place)


if __name__ == '__main__':
  main()
