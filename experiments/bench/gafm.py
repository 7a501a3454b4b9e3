"""Speed of GAFM on Spambase: all repetitions in one program, beside PyTorch.

  python -m experiments.bench.gafm --out=experiments/bench/gafm.json

Ten seeds train for 300 epochs of 3 batches of 1028 and one of 136: 57-16-1 and
a sigmoid, G 1-16-1, D 1-10-10-1, Adam 1e-4 for all three. The peer is the same
algorithm as a PyTorch loop, one seed after the other; its time is proportional
to the number of seeds, so a few are enough. Ratios are of seconds for each
seed. Data are random with Spambase's shape, and both sides take turns. The
paper's time is ten minutes for each repetition, its measurements included.
"""
import argparse
import importlib.util
import os
import sys
from typing import Any

import optax

from experiments.bench import core, records
from vfljax import algorithms, nets, train
from vfljax.defenses.gafm import gafm as defense
from vfljax.runner.machine import device

BATCH, EPOCHS, SEEDS = 1028, 300, 10


def workload() -> core.Workload:
  """GAFM's training on data of Spambase's shape."""
  data = core.splitnn().data
  bottom = nets.mlp(16, 1, activation='leaky_relu', final='sigmoid')
  vfl = algorithms.vsnn([bottom], nets.mlp(1))

  def run(key, data):
    return train.fit(
        key, vfl, defense(), (optax.adam(1e-4),) * 2, data, epochs=EPOCHS,
        batch_size=BATCH, remainder='keep',
    )

  rounds = EPOCHS * -(-len(data.labels) // BATCH)
  return core.Workload(run, data, rounds, SEEDS)


def worker() -> None:
  """Answers timing requests for the PyTorch loop, see `core_torch`."""
  from experiments.bench import core_torch
  import torch
  from torch import nn

  def networks():
    leaky = nn.LeakyReLU
    bottom = nn.Sequential(
        nn.Linear(57, 16), leaky(), nn.Linear(16, 1), nn.Sigmoid()
    )
    generator = nn.Sequential(
        nn.Linear(1, 16), leaky(), nn.Linear(16, 1), nn.Sigmoid()
    )
    critic = nn.Sequential(
        nn.Linear(1, 10), leaky(), nn.Linear(10, 10), leaky(),
        nn.Linear(10, 1), leaky(),
    )
    return bottom, generator, critic

  def step(nets, opts, x, y):
    bottom, generator, critic = nets
    f = bottom(x)
    cut = f.detach().requires_grad_()
    noise = 0.01 * torch.randn_like(y)
    with torch.no_grad():
      fake = generator(cut)
    opts[2].zero_grad()
    (critic(fake).mean() - critic(y + noise).mean()).backward()
    opts[2].step()
    with torch.no_grad():
      for weight in critic.parameters():
        weight.clamp_(-0.1, 0.1)
    opts[1].zero_grad()
    (-critic(generator(cut.detach())).mean()).backward()
    opts[1].step()
    by_gan, = torch.autograd.grad(-critic(generator(cut)).mean(), cut)
    target = 0.5 + (2 * y - 1) * 0.05 * torch.rand_like(y)
    ce = nn.functional.binary_cross_entropy(cut, target)
    by_ce, = torch.autograd.grad(ce, cut)
    opts[0].zero_grad()
    f.backward(by_gan / by_gan.norm() + by_ce / by_ce.norm())
    opts[0].step()

  def gafm(seed, data):
    x, y = data
    torch.manual_seed(seed)
    nets = networks()
    opts = [
        torch.optim.Adam(net.parameters(), lr=1e-4, fused=True) for net in nets
    ]
    for _ in range(EPOCHS):
      for rows in torch.randperm(len(x)).split(BATCH):
        step(nets, opts, x[rows], y[rows][:, None])

  core_torch.TASKS['gafm'] = (gafm, core_torch.spambase_like)
  core_torch.main()


def compare(turns: int, peers: dict[str, core.Peer], peer_seeds: int) -> dict:
  """Ours, all seeds in one program, in turns with the peers."""
  work = workload()
  call, compile_seconds = core.compiled(work, work.seeds)
  call()
  for peer in peers.values():
    peer.time('gafm', 1)
  times: dict[str, list] = {label: [] for label in ('vfljax', *peers)}
  for _ in range(turns):
    times['vfljax'].append(core.timed(call))
    for label, peer in peers.items():
      times[label].append(peer.time('gafm', peer_seeds))
  found: dict[str, Any] = {k: core.summary(v) for k, v in times.items()}
  ours = found['vfljax']
  ours['seeds'], ours['compile_seconds'] = SEEDS, round(compile_seconds, 2)
  ours['rounds_per_second'] = round(
      work.rounds * SEEDS / ours['wall_min']
  )
  per_seed = ours['wall_min'] / SEEDS, ours['wall_median'] / SEEDS
  for label in peers:
    theirs = found[label]
    theirs['seeds'] = peer_seeds
    theirs['rounds_per_second'] = round(
        work.rounds * peer_seeds / theirs['wall_min']
    )
    found[f'ratio to {label}, fastest'] = round(
        theirs['wall_min'] / peer_seeds / per_seed[0], 2
    )
    found[f'ratio to {label}, median'] = round(
        theirs['wall_median'] / peer_seeds / per_seed[1], 2
    )
  return found


def main() -> None:
  parser = argparse.ArgumentParser(description='Times GAFM beside PyTorch.')
  parser.add_argument('--out', default='', help='JSON file; empty prints only')
  parser.add_argument('--turns', type=int, default=3)
  parser.add_argument(
      '--peer_seeds', type=int, default=2, help="seeds in a peer's turn"
  )
  parser.add_argument(
      '--peer_threads', default='1,2', help="one PyTorch peer for each number"
  )
  args = parser.parse_args()
  device.set_up(0, '')
  peers: dict[str, core.Peer] = {}
  if importlib.util.find_spec('torch'):
    peers = {
        f'torch, threads {n}': core.Peer(int(n), __spec__.name)
        for n in args.peer_threads.split(',')
    }
  found = records.begin() | dict(
      load_before=round(os.getloadavg()[0], 1),
      gafm=compare(args.turns, peers, args.peer_seeds),
  )
  for peer in peers.values():
    peer.close()
  records.write(found, args.out)


if __name__ == '__main__':
  worker() if any(a.startswith('--threads') for a in sys.argv) else main()
