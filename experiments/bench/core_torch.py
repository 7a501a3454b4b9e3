"""The peer of `bench.py`: the same trainings as plain PyTorch loops, done well.

A worker that reads one task a line from standard input and answers with a line
of JSON, {"wall", "cpu"} in seconds. Tensors are made once, optimizers are
fused, batches are gathered by index; there is no DataLoader and no logging.

  python -m experiments.bench.core_torch --threads=2
"""
import argparse
import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F


def spambase_like():
  g = torch.Generator().manual_seed(0)
  x = torch.randn(3220, 57, generator=g)
  return x, (x[:, 0] + torch.randn(3220, generator=g) > 0).float()


def mnist_like():
  g = torch.Generator().manual_seed(0)
  halves = torch.rand(2, 60000, 392, generator=g)
  return *halves, torch.randint(0, 10, (60000,), generator=g)


def splitnn(seed, data):
  """57-16-1 and a sigmoid, 300 epochs of 3 batches of 1028, Adam 1e-4."""
  x, y = data
  torch.manual_seed(seed)
  model = nn.Sequential(nn.Linear(57, 16), nn.LeakyReLU(), nn.Linear(16, 1))
  opt = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
  for _ in range(300):
    order = torch.randperm(len(x))
    for i in range(3):
      rows = order[i * 1028 : (i + 1) * 1028]
      loss = F.binary_cross_entropy_with_logits(model(x[rows])[:, 0], y[rows])
      opt.zero_grad()
      loss.backward()
      opt.step()


def bottom():
  return nn.Sequential(
      nn.Linear(392, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU()
  )


def mnist(seed, data):
  """392-256-128 a party, top 256-128-10, one epoch of batch 128, SGD 0.1."""
  xa, xb, y = data
  torch.manual_seed(seed)
  a, b = bottom(), bottom()
  top = nn.Sequential(nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
  params = [*a.parameters(), *b.parameters(), *top.parameters()]
  opt = torch.optim.SGD(params, lr=0.1, fused=True)
  order = torch.randperm(len(y))
  for i in range(len(y) // 128):
    rows = order[i * 128 : (i + 1) * 128]
    logits = top(torch.cat([a(xa[rows]), b(xb[rows])], 1))
    loss = F.cross_entropy(logits, y[rows])
    opt.zero_grad()
    loss.backward()
    opt.step()


def completion(seed, data):
  """40 labels, 50 epochs of batch 16, Adam 1e-3, all trained; 10000 guesses."""
  x, _, y = data
  torch.manual_seed(seed)
  head = nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)
  model = nn.Sequential(bottom(), *head)
  opt = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
  known = torch.cat([
      torch.nonzero(y == c)[:, 0][torch.randperm(4)] for c in range(10)
  ])
  kx, ky = x[known], y[known]
  for _ in range(50):
    order = torch.randperm(40)
    for i in range(0, 40, 16):
      rows = order[i : i + 16]
      loss = F.cross_entropy(model(kx[rows]), ky[rows])
      opt.zero_grad()
      loss.backward()
      opt.step()
  with torch.no_grad():
    return (model(x[:10000]).argmax(1) == y[:10000]).float().mean().item()


TASKS = {
    'splitnn': (splitnn, spambase_like),
    'mnist': (mnist, mnist_like),
    'completion': (completion, mnist_like),
}


def main() -> None:
  parser = argparse.ArgumentParser()
  parser.add_argument('--threads', type=int, default=2)
  torch.set_num_threads(parser.parse_args().threads)
  torch.set_flush_denormal(True)
  data = {}
  for line in sys.stdin:
    name, seeds = line.split()
    train, make = TASKS[name]
    data.setdefault(make, make())
    cpu, wall = time.process_time(), time.perf_counter()
    for seed in range(int(seeds)):
      train(seed, data[make])
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps(dict(wall=wall, cpu=cpu)), flush=True)


if __name__ == '__main__':
  main()
