"""Speed: rounds a second, compile time, and the ratio to PyTorch in one run.

  python -m experiments.bench.core --out=experiments/bench/core.json

Data are random, with the shapes of Spambase and of MNIST's halves, so no files
are needed. If PyTorch is installed, it is the peer (`core_torch.py`): one seed
after the other with one thread and with two, and all seeds together in one
compiled function. All take turns, at least three each, and the fastest and the
median time are kept. On a shared machine only ratios within one run mean
anything. If PyTorch is more than half slower with two threads than with one,
the run is marked as contended. Compile time is listed separately.
"""
import argparse
from collections.abc import Callable, Sequence
import importlib.util
import json
import statistics
import subprocess
import sys
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.bench import records
from vfljax import algorithms, attacks, nets, sweep, train
from vfljax.attacks.model_completion import Schedule
from vfljax.defense import none
from vfljax.defenses import marvell
from vfljax.runner.machine import device, tuning
from vfljax.sampling import per_class
from vfljax.types import Batch
from vfljax.views import TrainedBottom


class Workload(NamedTuple):
  """A training to be timed.

  Attributes:
    run: (key, data) -> anything, for one seed.
    data: The data.
    rounds: Number of rounds of one seed.
    seeds: Number of seeds in the headline ratio.
  """

  run: Callable[[Any, Any], Any]
  data: Any
  rounds: int
  seeds: int


def splitnn() -> Workload:
  """GAFM's vanilla splitNN: 57-16-1, 300 epochs of 3 batches of 1028."""
  rng = np.random.default_rng(0)
  x = rng.standard_normal((3220, 57), np.float32)
  y = (x[:, 0] + rng.standard_normal(3220) > 0).astype(int)
  data = Batch((None, jnp.asarray(x)), jax.nn.one_hot(y, 2))
  net = nets.mlp(16, 1, activation='leaky_relu')
  vfl = algorithms.vsnn([net], nets.mlp(1))._replace(top=algorithms.plain())

  def run(key, data):
    return train.fit(
        key, vfl, none(), (optax.adam(1e-4),) * 2, data, epochs=300,
        batch_size=1028,
    )

  return Workload(run, data, 900, 10)


def halves() -> Batch:
  rng = np.random.default_rng(0)
  x = rng.random((2, 60000, 392), np.float32)
  y = jax.nn.one_hot(rng.integers(0, 10, 60000), 10)
  return Batch(tuple(map(jnp.asarray, x)), y)


def mnist() -> Workload:
  """392-256-128 a party, top 256-128-10, one epoch of batch 128, SGD.

  The number of seeds is a multiple of the cores, as padding would be wasted.
  """
  bottom = nets.mlp(256, 128, final='relu')
  vfl = algorithms.vhnn([bottom] * 2, nets.mlp(128, 10))

  def run(key, data):
    return train.fit(
        key, vfl, none(), (optax.sgd(0.1),) * 2, data, epochs=1, batch_size=128
    )

  return Workload(run, halves(), 468, 10)


def completion() -> Workload:
  """Model completion with 40 labels, 50 epochs of batch 16, all weights."""
  bottom = nets.mlp(256, 128, final='relu')
  attack = attacks.model_completion(
      bottom, nets.mlp(64, 10), Schedule(50, 16, stages=1)
  )

  def run(key, data):
    k_bottom, k_known, k_run = jax.random.split(key, 3)
    x, y = data.features[0], data.labels
    known, _ = per_class(k_known, y, 4)
    view = TrainedBottom(
        bottom.init(k_bottom, x[:1]), x[known], y[known], x[:10000]
    )
    guess = attack.run(k_run, view)[-1]
    return (guess.argmax(-1) == y[:10000].argmax(-1)).mean()

  return Workload(run, halves(), 150, 16)


WORKLOADS = dict(splitnn=splitnn, mnist=mnist, completion=completion)
SIDE_BY_SIDE = 'splitnn', 'mnist'  # All seeds' rounds as one, by PyTorch, too.


class Peer:
  """A PyTorch worker process with a fixed number of threads."""

  def __init__(
      self, threads: int, module: str = 'experiments.bench.core_torch',
      more: Sequence[str] = (),
  ):
    self.process = subprocess.Popen(
        [sys.executable, '-m', module, f'--threads={threads}', *more],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )

  def time(self, name: str, seeds: int) -> dict[str, float]:
    assert self.process.stdin and self.process.stdout
    self.process.stdin.write(f'{name} {seeds}\n')
    self.process.stdin.flush()
    return json.loads(self.process.stdout.readline())

  def close(self) -> None:
    assert self.process.stdin
    self.process.stdin.close()
    self.process.wait()


def compiled(work: Workload, seeds: int):
  """(a call that trains all seeds, seconds to compile it)."""
  cells = sweep.pad(
      jax.random.split(jax.random.key(0), seeds), jax.local_device_count()
  )
  args = sweep.place(cells, work.data)
  began = time.perf_counter()
  program = tuning.compiled(jax.jit(sweep.over_cells(work.run)).lower(*args))
  return lambda: jax.block_until_ready(program(*args)), (
      time.perf_counter() - began
  )


def timed(call: Callable[[], Any]) -> dict[str, float]:
  cpu, wall = time.process_time(), time.perf_counter()
  call()
  return dict(
      wall=time.perf_counter() - wall, cpu=time.process_time() - cpu
  )


def summary(times: list[dict[str, float]]) -> dict[str, float]:
  walls = [t['wall'] for t in times]
  return dict(
      wall_min=round(min(walls), 4),
      wall_median=round(statistics.median(walls), 4),
      cpu_min=round(min(t['cpu'] for t in times), 4),
  )


def against_peers(name: str, turns: int, peers: dict[str, Peer]) -> dict:
  """A workload at its number of seeds, in turns with the peers."""
  work = WORKLOADS[name]()
  call, compile_seconds = compiled(work, work.seeds)
  call()
  sides: dict[str, Callable[[], dict]] = {'vfljax': lambda: timed(call)}
  for label, peer in peers.items():
    peer.time(name, 1)
    sides[label] = lambda peer=peer: peer.time(name, work.seeds)
  if peers and name in SIDE_BY_SIDE:
    label, peer = list(peers.items())[-1]
    many = lambda: peer.time(f'{name}/graph', work.seeds)
    if 'error' not in many():  # By which it is compiled.
      sides[f'{label}, side by side'] = many
  times: dict[str, list] = {label: [] for label in sides}
  for _ in range(turns):
    for label, side in sides.items():
      times[label].append(side())
  found: dict[str, Any] = {k: summary(v) for k, v in times.items()}
  ours = found['vfljax']
  ours['compile_seconds'] = round(compile_seconds, 2)
  ours['rounds_per_second'] = round(
      work.rounds * work.seeds / ours['wall_min']
  )
  for label in list(sides)[1:]:
    found[f'ratio to {label}'] = round(
        found[label]['wall_min'] / ours['wall_min'], 2
    )
  if len(peers) == 2:
    one, two = (found[label]['wall_min'] for label in peers)
    found['contention'] = two > 1.5 * one
  return dict(seeds=work.seeds, **found)


def scaling(name: str, counts: list[int], turns: int) -> list[dict]:
  """Rounds a second and compile time against the number of seeds."""
  work, rows = WORKLOADS[name](), []
  for seeds in counts:
    call, compile_seconds = compiled(work, seeds)
    call()
    best = min(timed(call)['wall'] for _ in range(turns))
    rows.append(dict(
        seeds=seeds, compile_seconds=round(compile_seconds, 2),
        wall_min=round(best, 4),
        rounds_per_second=round(work.rounds * seeds / best),
    ))
  return rows


def marvell_solves(dimension: int, peer_file: str) -> dict:
  """Solves a second in a scan, and of the authors' solver where its file is."""
  rng = np.random.default_rng(0)
  u, v = rng.uniform(1e-9, 1e-8, (2, 20000)).astype(np.float32)
  g = rng.uniform(1e-8, 1e-7, 20000).astype(np.float32)
  p = rng.uniform(0.1, 0.9, 20000).astype(np.float32)

  @jax.jit
  def many(u, v, g, p):
    def one(total, x):
      u, v, g, p = x
      return total + marvell.solve(u, v, dimension, g, p, g).sum_kl, None
    return jax.lax.scan(one, jnp.zeros(()), (u, v, g, p))[0]

  many(u, v, g, p).block_until_ready()
  best = min(
      timed(lambda: many(u, v, g, p).block_until_ready())['wall']
      for _ in range(5)
  )
  found: dict[str, Any] = dict(dimension=dimension, vfljax=round(20000 / best))
  if peer_file:
    found |= _peer_solves(peer_file, dimension, (u, v, g, p), found['vfljax'])
  return found


def _peer_solves(file: str, dimension: int, problems, ours: int) -> dict:
  spec = importlib.util.spec_from_file_location('peer_solver', file)
  assert spec and spec.loader
  solver = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(solver)
  done, failed, began = 0, 0, time.perf_counter()
  for u, v, g, p in zip(*(map(float, x[:200]) for x in problems)):
    try:
      solver.solve_isotropic_covariance(u=u, v=v, d=dimension, g=g, p=p, P=g)
      done += 1
    except (ZeroDivisionError, RecursionError):
      failed += 1
  speed = done / (time.perf_counter() - began)
  if not done:
    return dict(peer='fails on all', peer_failed=failed)
  return dict(peer=round(speed), peer_failed=failed, ratio=round(ours / speed))


def second_start(name: str) -> float:
  """Seconds to compile in a new process that finds the persistent cache."""
  code = (
      'from experiments.bench import core;'
      'core.device.set_up(0, "~/.cache/vfljax");'
      f'work = core.WORKLOADS["{name}"]();'
      'print(core.compiled(work, work.seeds)[1])'
  )
  run = lambda: subprocess.run(
      [sys.executable, '-c', code], check=True, capture_output=True, text=True
  ).stdout
  run()
  return round(float(run()), 2)


def main() -> None:
  parser = argparse.ArgumentParser(description='Times vfljax beside PyTorch.')
  parser.add_argument('--out', default='', help='JSON file; empty prints only')
  parser.add_argument('--turns', type=int, default=3)
  parser.add_argument('--only', default='', help='a part: splitnn, mnist, ...')
  parser.add_argument(
      '--marvell_peer', default='', help="the Marvell authors' solver.py"
  )
  args = parser.parse_args()
  device.set_up(0, '')
  peers: dict[str, Peer] = {}
  if importlib.util.find_spec('torch'):
    peers = {f'torch, {n} thread{"s" * (n > 1)}': Peer(n) for n in (1, 2)}
  found = records.begin()
  for name in WORKLOADS:
    if args.only in ('', name):
      found[name] = against_peers(name, args.turns, peers)
      found[name]['second_start_compile_seconds'] = second_start(name)
  if args.only in ('', 'scaling'):
    counts = [1, 2, 5, 10, 32]
    found['splitnn by seeds'] = scaling('splitnn', counts, args.turns)
  if args.only in ('', 'marvell'):
    found['marvell solves a second'] = [
        marvell_solves(d, args.marvell_peer) for d in (1, 16, 128)
    ]
  for peer in peers.values():
    peer.close()
  records.write(found, args.out)


if __name__ == '__main__':
  main()
