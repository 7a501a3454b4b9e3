"""The peer of `models.py`: the same federations as plain PyTorch loops.

Both parties' bottoms, the sum of their embeddings, the top, and fused SGD, in
one program; images in PyTorch's channels_last layout where that is faster.
Tensors are made once and batches gathered by index.

  python -m experiments.bench.models_torch --threads=2
"""
import argparse
import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, BATCH = 64, 128


def lenet5(image):
  """28x14 pixels: 14x7 after one pooling, 7x3 after two."""
  return nn.Sequential(
      nn.Conv2d(image[0], 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
      nn.Conv2d(6, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
      nn.Linear(16 * (image[1] // 4) * (image[2] // 4), 120), nn.ReLU(),
      nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, WIDTH),
  )


def normed(into, out, side, stride=1):
  conv = nn.Conv2d(into, out, side, stride, side // 2)
  return nn.Sequential(conv, nn.BatchNorm2d(out))


def vgg13(image):
  parts, into, (high, wide) = [], image[0], image[1:]
  for out in (64, 128, 256, 512, 512):
    for _ in range(2):
      parts += [normed(into, out, 3), nn.ReLU()]
      into = out
    window = (min(high, 2), min(wide, 2))
    parts.append(nn.MaxPool2d(window))
    high, wide = max(high // 2, 1), max(wide // 2, 1)
  width = into * high * wide
  return nn.Sequential(
      *parts, nn.Flatten(), nn.Linear(width, 512), nn.ReLU(),
      nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, WIDTH),
  )


class Block(nn.Module):
  """ResNet's block of two convolutions."""

  def __init__(self, into, out, stride):
    super().__init__()
    self.first = normed(into, out, 3, stride)
    self.second = normed(out, out, 3)
    same = into == out and stride == 1
    self.shortcut = nn.Identity() if same else normed(into, out, 1, stride)

  def forward(self, x):
    y = self.second(F.relu(self.first(x)))
    return F.relu(y + self.shortcut(x))


def resnet18(image):
  parts, into = [normed(image[0], 64, 3), nn.ReLU()], 64
  for i, out in enumerate((64, 128, 256, 512)):
    for j in range(2):
      parts.append(Block(into, out, 2 if i and not j else 1))
      into = out
  return nn.Sequential(
      *parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(into, WIDTH)
  )


TASKS = dict(
    lenet5=(lenet5, (1, 28, 14)), vgg13=(vgg13, (3, 32, 16)),
    resnet18=(resnet18, (3, 32, 16)),
)


def make(name, rounds, last):
  """A function that trains `rounds` rounds."""
  network, image = TASKS[name]
  torch.manual_seed(0)
  layout = torch.channels_last if last else torch.contiguous_format
  x = torch.rand(2, rounds * BATCH, *image)
  a, b = (part.to(memory_format=layout) for part in x)
  y = torch.randint(0, 10, (rounds * BATCH,))
  one, two = (network(image).to(memory_format=layout) for _ in range(2))
  top = nn.Sequential(nn.Linear(WIDTH, 64), nn.ReLU(), nn.Linear(64, 10))
  params = [*one.parameters(), *two.parameters(), *top.parameters()]
  opt = torch.optim.SGD(params, lr=0.01, fused=True)

  def run():
    order = torch.randperm(len(y))
    for i in range(rounds):
      rows = order[i * BATCH : (i + 1) * BATCH]
      loss = F.cross_entropy(top(one(a[rows]) + two(b[rows])), y[rows])
      opt.zero_grad()
      loss.backward()
      opt.step()

  return run


def main() -> None:
  parser = argparse.ArgumentParser()
  parser.add_argument('--threads', type=int, default=2)
  torch.set_num_threads(parser.parse_args().threads)
  torch.set_flush_denormal(True)
  made = {}
  for line in sys.stdin:
    name, rounds = line.split()
    key = name, int(rounds)
    if key not in made:  # The faster of both layouts, each tried once warm.
      tried = {}
      for last in (False, True):
        run = make(*key, last)
        run()
        began = time.perf_counter()
        run()
        tried[time.perf_counter() - began] = run
      made[key] = tried[min(tried)]
    cpu, wall = time.process_time(), time.perf_counter()
    made[key]()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps(dict(wall=wall, cpu=cpu)), flush=True)


if __name__ == '__main__':
  main()
