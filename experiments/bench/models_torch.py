"""The peer of `models.py`: the same federations as plain PyTorch loops.

One program has both parties' bottoms, the sum of their embeddings, the top and
fused SGD. Images have PyTorch's channels_last layout if that is faster. Tensors
are made once, and batches are gathered by index.

  python -m experiments.bench.models_torch --threads=2
  python -m experiments.bench.models_torch --device=cuda --dtype=bfloat16

On a GPU a round is one replay of a CUDA graph. --dtype=tf32 lets products of
float32 round to TF32, bfloat16 is PyTorch's autocast.
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


class Training:
  """So many rounds of one federation.

  Attributes:
    rows: [batch], the numbers of a round's samples.
  """

  def __init__(self, name, rounds, last, args):
    network, image = TASKS[name]
    torch.manual_seed(0)
    self.rounds, self.dtype, self.device = rounds, args.dtype, args.device
    layout = torch.channels_last if last else torch.contiguous_format
    x = torch.rand(2, rounds * BATCH, *image)
    self.parts = [
        part.to(self.device, memory_format=layout) for part in x
    ]
    self.y = torch.randint(0, 10, (rounds * BATCH,)).to(self.device)
    self.bottoms = [
        network(image).to(self.device, memory_format=layout) for _ in range(2)
    ]
    self.top = nn.Sequential(
        nn.Linear(WIDTH, 64), nn.ReLU(), nn.Linear(64, 10)
    ).to(self.device)
    nets = nn.ModuleList([*self.bottoms, self.top])
    self.opt = torch.optim.SGD(nets.parameters(), lr=0.01, fused=True)
    self.rows = torch.arange(BATCH, device=self.device)
    self.play = self.captured() if self.device == 'cuda' else self.round

  def round(self):
    half = torch.autocast(
        self.device, torch.bfloat16, enabled=self.dtype == 'bfloat16'
    )
    with half:
      said = [f(x[self.rows]) for f, x in zip(self.bottoms, self.parts)]
      logits = self.top(said[0] + said[1])
    self.opt.zero_grad()
    F.cross_entropy(logits.float(), self.y[self.rows]).backward()
    self.opt.step()

  def captured(self):
    side = torch.cuda.Stream()  # Warmed up on a stream of its own.
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
      for _ in range(3):
        self.round()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
      self.round()
    return graph.replay

  def __call__(self):
    order = torch.randperm(len(self.y), device=self.device)
    for i in range(self.rounds):
      self.rows.copy_(order[i * BATCH : (i + 1) * BATCH])
      self.play()
    if self.device == 'cuda':
      torch.cuda.synchronize()


def main() -> None:
  parser = argparse.ArgumentParser()
  parser.add_argument('--threads', type=int, default=2)
  parser.add_argument('--device', default='cpu')
  parser.add_argument('--dtype', default='float32')
  args = parser.parse_args()
  torch.set_num_threads(args.threads)
  torch.set_flush_denormal(True)
  for unit in torch.backends.cuda.matmul, torch.backends.cudnn:
    unit.allow_tf32 = args.dtype == 'tf32'
  torch.backends.cudnn.benchmark = True
  made = {}
  for line in sys.stdin:
    name, rounds = line.split()
    key = name, int(rounds)
    try:
      if key not in made:  # The faster of both layouts, each tried once warm.
        made.clear()
        made[key] = faster(*key, args)
      cpu, wall = time.process_time(), time.perf_counter()
      made[key]()
      wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
      answer = dict(wall=wall, cpu=cpu)
    except RuntimeError as error:
      answer = dict(error=str(error).splitlines()[0][:200])
    print(json.dumps(answer), flush=True)


def faster(name, rounds, args):
  tried = {}
  for last in (False, True):
    run = Training(name, rounds, last, args)
    run()
    began = time.perf_counter()
    run()
    tried[time.perf_counter() - began] = run
  return tried[min(tried)]


if __name__ == '__main__':
  main()
