"""Speed of MID's training and of its attackers' restarts, beside PyTorch.

  python -m experiments.bench.mid --out=experiments/bench/mid.json

Three workloads on random data of MNIST's shape, timed in turns:

  training    all of Figure 5's strengths of MID x 5 seeds, 2 epochs of 39
              rounds of 256, in one program; the peer is the same training as a
              PyTorch loop, one cell after the other
  inversion   batch-level inference on one round of 2048: 4 starting points
              side by side, 50 steps, against one after the other in the same
              library, and against a PyTorch loop
  rebuilding  CAFE: 2 starting points side by side, 50 steps, against one after
              the other

Ratios are of seconds for the same work; above 1 ours is faster. Compile time is
listed separately; it is paid once for all strengths, seeds and restarts.
"""
import argparse
from collections.abc import Callable
import importlib.util
import os
import sys
import time
from typing import Any, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp
import optax

from experiments.bench import core, records
from experiments.mid.common import LAMBDAS
from vfljax import algorithms, nets, sweep, train
from vfljax.attacks.cafe import Recovery, begin, first_linear, recover
from vfljax.attacks.gradient_inversion import Dummies, Search, invert
from vfljax.defenses.mid import mid
from vfljax.nets import cafe
from vfljax.runner.machine import device
from vfljax.types import Batch
from vfljax.views import WhiteBox

BATCH, EPOCHS, SEEDS = 256, 2, 5
ROWS = 39 * BATCH
CELLS = len(LAMBDAS) * SEEDS
ROUND, STEPS, RESTARTS = 2048, 50, 4  # of batch-level inference
POOL, CAFE_ROUND, CAFE_STEPS, CAFE_RESTARTS = 60, 20, 50, 2


class Compiled(NamedTuple):
  """A call that does the whole work, and what compiling it took."""

  call: Callable[[], Any]
  seconds: float


def compiled(fn: Callable[..., Any], *args: Any, times: int = 1) -> Compiled:
  """`fn(*args)`, ready to run; `times` times over."""
  began = time.perf_counter()
  program = jax.jit(fn).lower(*args).compile()
  seconds = time.perf_counter() - began

  def call():
    for _ in range(times):
      jax.block_until_ready(program(*args))

  call()
  return Compiled(call, round(seconds, 2))


def training() -> dict[str, Compiled]:
  """MID at every strength and seed: Figure 5's federation."""
  net = nets.mlp(32, 10)
  vfl = algorithms.vhnn([net] * 2, nets.mlp(10))
  vfl = vfl._replace(top=algorithms.plain())
  halves = core.halves()
  data = jax.tree.map(lambda x: x[:ROWS], halves)

  def run(cell, data):
    key, weight = cell
    return train.fit(
        key, vfl, mid(weight), (optax.adam(1e-3),) * 2, data, epochs=EPOCHS,
        batch_size=BATCH,
    )

  keys = jax.random.split(jax.random.key(0), CELLS)
  weights = jnp.repeat(jnp.asarray(LAMBDAS, jnp.float32), SEEDS)
  cells = sweep.pad((keys, weights), jax.local_device_count())
  return {
      'vfljax': compiled(sweep.over_cells(run), *sweep.place(cells, data))
  }


def inversion() -> dict[str, Compiled]:
  """Batch-level inference with its restarts side by side, or in turn."""
  net = nets.mlp(32, 10)
  data: Batch = jax.tree.map(lambda x: x[:ROUND], core.halves())
  x = data.features[1]
  weights = net.init(jax.random.key(0), x[:1])

  def loss(weights):
    logits = net.apply(weights, data.features[0]) + net.apply(weights, x)
    return optax.softmax_cross_entropy(logits, data.labels).mean()

  gradients = jax.grad(loss)(weights)

  def attempt(key):
    start = Dummies(*jax.random.normal(key, (2, ROUND, 10), jnp.float32))
    return invert(
        net, weights, x, gradients, start, Search(STEPS)
    )

  return restarted(attempt, RESTARTS)


def rebuilding() -> dict[str, Compiled]:
  """CAFE with its restarts side by side, or in turn."""
  channels, hidden = (16, 32), (64, 32)
  middle = cafe.middle(10, channels, hidden)
  net = cafe.cafe(10, channels, hidden)
  key = jax.random.key(0)
  x = jax.random.uniform(key, (POOL, 14, 14, 1), jnp.float32)
  weights = net.init(key, x[:1])
  rows = jnp.arange(POOL).reshape(-1, CAFE_ROUND)

  def loss(weights, rows):
    return (net.apply(weights, x[rows]) ** 2).mean()

  gradients = lax.map(lambda r: jax.grad(loss)(weights, r), rows)
  view = WhiteBox(
      dict(bottom=weights, defense=()),
      dict(bottom=gradients, defense=()), rows, jnp.zeros_like(x),
  )
  vfl = algorithms.vhnn([net] * 2, nets.mlp(10))
  layer = first_linear(middle, vfl)

  def attempt(key):
    start = begin(key, view, layer)
    return recover(view, layer, start, Recovery(CAFE_STEPS))

  return restarted(attempt, CAFE_RESTARTS)


def restarted(attempt: Callable, restarts: int) -> dict[str, Compiled]:
  """An attack from several starting points: vmapped, and one by one."""
  keys = jax.random.split(jax.random.key(1), restarts)
  return {
      'vfljax': compiled(jax.vmap(attempt), keys),
      'vfljax, in turn': compiled(attempt, keys[0], times=restarts),
  }


WORKLOADS = dict(
    training=(training, CELLS), inversion=(inversion, RESTARTS),
    rebuilding=(rebuilding, CAFE_RESTARTS),
)
PEERS = ('training', 'inversion')  # What the PyTorch worker can do.


def compare(name: str, turns: int, peers: dict[str, core.Peer]) -> dict:
  """A workload by all who can do it, in turns."""
  make, count = WORKLOADS[name]
  ours = make()
  sides: dict[str, Callable[[], dict]] = {
      label: lambda c=c: core.timed(c.call) for label, c in ours.items()
  }
  if name in PEERS:
    for label, peer in peers.items():
      peer.time(name, 1)
      # One cell after the other: a few are enough to know the time of all.
      few = min(count, 5)
      sides[label] = lambda peer=peer, few=few: {
          k: v * count / few for k, v in peer.time(name, few).items()
      }
  times: dict[str, list] = {label: [] for label in sides}
  for _ in range(turns):
    for label, side in sides.items():
      times[label].append(side())
  found: dict[str, Any] = {k: core.summary(v) for k, v in times.items()}
  for label, side in ours.items():
    found[label]['compile_seconds'] = side.seconds
  best = found['vfljax']['wall_min']
  ratios = {
      f'ratio to {label}': round(f['wall_min'] / best, 2)
      for label, f in found.items() if label != 'vfljax'
  }
  return dict(trainings_or_restarts=count, **found, **ratios)


def worker() -> None:
  """Answers timing requests for the PyTorch loops, see `core_torch`."""
  from experiments.bench import core_torch
  import torch
  from torch import nn
  from torch.nn import functional as F

  def bottom():
    return nn.Sequential(nn.Linear(392, 32), nn.ReLU(), nn.Linear(32, 10))

  def fit(seed, data):
    torch.manual_seed(seed)
    xa, xb, y = data
    a, b, encoder = bottom(), bottom(), nn.Linear(10, 20)
    decoder = nn.Sequential(nn.Linear(10, 50), nn.ReLU(), nn.Linear(50, 10))
    parts = nn.ModuleList([a, b, encoder, decoder])
    opt = torch.optim.Adam(parts.parameters(), lr=1e-3, fused=True)
    for _ in range(EPOCHS):
      for rows in torch.randperm(ROWS).split(BATCH):
        mean, s = encoder(b(xb[rows])).chunk(2, 1)
        std = F.softplus(s - 0.5)
        z = decoder(mean + std * torch.randn_like(std))
        kl = (0.5 * (mean**2 + std**2 - 1) - std.log()).sum(1).mean()
        loss = F.cross_entropy(a(xa[rows]) + z, y[rows]) + 0.01 * kl
        opt.zero_grad()
        loss.backward()
        opt.step()

  def invert(seed, data):
    torch.manual_seed(seed)
    xa, xb, y = (x[:ROUND] for x in data)
    net = bottom()
    weights = list(net.parameters())
    loss = F.cross_entropy(net(xa).detach() + net(xb), y)
    target = torch.autograd.grad(loss, weights)
    hidden = torch.randn(ROUND, 10, requires_grad=True)
    labels = torch.randn(ROUND, 10, requires_grad=True)
    opt = torch.optim.Adam([hidden, labels], lr=0.05, fused=True)
    for _ in range(STEPS):
      loss = F.cross_entropy(net(xb) + hidden, labels.softmax(1))
      own = torch.autograd.grad(loss, weights, create_graph=True)
      gap = torch.stack([((g - t) ** 2).sum() for g, t in zip(own, target)])
      opt.zero_grad()
      gap.sum().backward(inputs=[hidden, labels])
      opt.step()

  tasks: dict[str, Any] = core_torch.TASKS
  tasks['training'] = (fit, core_torch.mnist_like)
  tasks['inversion'] = (invert, core_torch.mnist_like)
  core_torch.main()


def main() -> None:
  parser = argparse.ArgumentParser(description='Times MID and its attackers.')
  parser.add_argument('--out', default='', help='JSON file; empty prints only')
  parser.add_argument('--turns', type=int, default=3)
  parser.add_argument('--only', default='', choices=('', *WORKLOADS))
  args = parser.parse_args()
  device.set_up(0, '')
  peers: dict[str, core.Peer] = {}
  if importlib.util.find_spec('torch'):
    peers = {
        f'torch, threads {n}': core.Peer(n, __spec__.name) for n in (1, 2)
    }
  load = round(os.getloadavg()[0], 1)
  found: dict[str, Any] = records.begin() | dict(load_before=load)
  for name in WORKLOADS:
    if args.only in ('', name):
      found[name] = compare(name, args.turns, peers)
  for peer in peers.values():
    peer.close()
  records.write(found, args.out)


if __name__ == '__main__':
  worker() if any(a.startswith('--threads') for a in sys.argv) else main()
