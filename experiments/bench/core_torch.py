"""The peer of `core.py`: the same trainings as efficient PyTorch loops.

This worker reads one task from each line of standard input and answers with a
line of JSON, {"wall", "cpu"} in seconds. Tensors are made once, optimizers are
fused, and batches are gathered by index; there is no DataLoader and no logging.

  python -m experiments.bench.core_torch --threads=2
  python -m experiments.bench.core_torch --device=cuda

A task is a name and a number of seeds, trained one after the other; a name
with /graph trains them side by side (`torch.func.vmap`), compiled, and on a GPU
each round of all is one replay of a CUDA graph: the most that PyTorch gives a
small network.
"""
import argparse
import json
import sys
import time

import torch
from torch import nn
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.nn import functional as F

DEVICE = 'cpu'


def spambase_like():
  g = torch.Generator().manual_seed(0)
  x = torch.randn(3220, 57, generator=g)
  y = (x[:, 0] + torch.randn(3220, generator=g) > 0).float()
  return x.to(DEVICE), y.to(DEVICE)


def mnist_like():
  g = torch.Generator().manual_seed(0)
  halves = torch.rand(2, 60000, 392, generator=g)
  y = torch.randint(0, 10, (60000,), generator=g)
  return *(x.to(DEVICE) for x in halves), y.to(DEVICE)


def order_of(n):
  return torch.randperm(n, device=DEVICE)


def splitnn_net():
  return nn.Sequential(nn.Linear(57, 16), nn.LeakyReLU(), nn.Linear(16, 1))


def splitnn_loss(model, x, y):
  return F.binary_cross_entropy_with_logits(model(x)[:, 0], y)


def splitnn(seed, data):
  """57-16-1 and a sigmoid, 300 epochs of 3 batches of 1028, Adam 1e-4."""
  x, y = data
  torch.manual_seed(seed)
  model = splitnn_net().to(DEVICE)
  opt = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
  for _ in range(300):
    order = order_of(len(x))
    for i in range(3):
      rows = order[i * 1028 : (i + 1) * 1028]
      loss = splitnn_loss(model, x[rows], y[rows])
      opt.zero_grad()
      loss.backward()
      opt.step()


def bottom():
  return nn.Sequential(
      nn.Linear(392, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU()
  )


class Halves(nn.Module):
  """Two bottoms and a top."""

  def __init__(self):
    super().__init__()
    self.a, self.b = bottom(), bottom()
    self.top = nn.Sequential(
        nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)
    )

  def forward(self, xa, xb):
    return self.top(torch.cat([self.a(xa), self.b(xb)], 1))


def mnist_loss(model, xa, xb, y):
  return F.cross_entropy(model(xa, xb), y)


def mnist(seed, data):
  """392-256-128 a party, top 256-128-10, one epoch of batch 128, SGD 0.1."""
  torch.manual_seed(seed)
  model = Halves().to(DEVICE)
  opt = torch.optim.SGD(model.parameters(), lr=0.1, fused=True)
  order = order_of(len(data[-1]))
  for i in range(len(order) // 128):
    rows = order[i * 128 : (i + 1) * 128]
    loss = mnist_loss(model, *(x[rows] for x in data))
    opt.zero_grad()
    loss.backward()
    opt.step()


def completion_net():
  head = nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)
  return nn.Sequential(bottom(), *head)


def completion_loss(model, x, y):
  return F.cross_entropy(model(x), y)


def known_of(y):
  return torch.cat([
      torch.nonzero(y == c)[:, 0][torch.randperm(4, device=y.device)]
      for c in range(10)
  ])


def completion(seed, data):
  """40 labels, 50 epochs of batch 16, Adam 1e-3, all trained; 10000 guesses."""
  x, _, y = data
  torch.manual_seed(seed)
  model = completion_net().to(DEVICE)
  opt = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
  known = known_of(y)
  kx, ky = x[known], y[known]
  for _ in range(50):
    order = order_of(40)
    for i in range(0, 40, 16):
      rows = order[i : i + 16]
      loss = completion_loss(model, kx[rows], ky[rows])
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
# As above: the network, its loss, how its optimizer is made, batch and epochs.
MANY = {
    'splitnn': (
        splitnn_net, splitnn_loss,
        lambda p: torch.optim.Adam(p, lr=1e-4, fused=True, capturable=True),
        1028, 300,
    ),
    'mnist': (
        Halves, mnist_loss, lambda p: torch.optim.SGD(p, lr=0.1, fused=True),
        128, 1,
    ),
}


class Graphed:
  """All seeds' rounds as one CUDA graph, played again for every batch.

  Made once for a number of seeds; a call begins with weights of their own.
  """

  def __init__(self, name, seeds, data):
    net, loss, optimizer, batch, self.epochs = MANY[name]
    self.seeds, self.samples = seeds, len(data[0])
    self.rows = torch.zeros(seeds, batch, dtype=torch.long, device=DEVICE)
    nets = [net().to(DEVICE) for _ in range(seeds)]
    stacked, _ = stack_module_state(nets)
    names, base = list(stacked), net().to('meta')
    leaves = [nn.Parameter(stacked[k].detach().clone()) for k in names]
    opt = optimizer(leaves)
    self.leaves = leaves

    def one(params, *batch):
      return loss(lambda *x: functional_call(base, params, x), *batch)

    slopes = torch.compile(vmap(grad(one)))

    def step():
      with torch.no_grad():
        found = slopes(
            dict(zip(names, leaves)), *(x[self.rows] for x in data)
        )
        for k, leaf in zip(names, leaves):
          leaf.grad = found[k]
        opt.step()

    self.step = self.captured(step)

  def captured(self, step):
    if DEVICE == 'cpu':
      return step
    side = torch.cuda.Stream()  # Warmed up on a stream of its own.
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
      for _ in range(3):
        step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
      step()
    return graph.replay

  def __call__(self):
    batch = self.rows.shape[1]
    with torch.no_grad():
      for leaf in self.leaves:
        leaf.uniform_(-0.1, 0.1)
    for _ in range(self.epochs):
      order = torch.rand(
          self.seeds, self.samples, device=DEVICE
      ).argsort(1)
      for i in range(self.samples // batch):
        self.rows.copy_(order[:, i * batch : (i + 1) * batch])
        self.step()


def call_of(name, seeds, data, made):
  """What trains so many seeds."""
  if not name.endswith('/graph'):
    train, _ = TASKS[name]
    return lambda: [train(seed, data) for seed in range(seeds)]
  key = name, seeds
  if key not in made:
    made.clear()  # Memory of one at a time.
    made[key] = Graphed(name.removesuffix('/graph'), seeds, data)
    made[key]()
  return made[key]


def finish():
  if DEVICE != 'cpu':
    torch.cuda.synchronize()


def main() -> None:
  global DEVICE
  parser = argparse.ArgumentParser()
  parser.add_argument('--threads', type=int, default=2)
  parser.add_argument('--device', default='cpu')
  args = parser.parse_args()
  DEVICE = args.device
  torch.set_num_threads(args.threads)
  torch.set_flush_denormal(True)
  data, made = {}, {}
  for line in sys.stdin:
    name, seeds = line.split()
    _, make = TASKS[name.removesuffix('/graph')]
    if make not in data:
      data[make] = make()
    try:
      call = call_of(name, int(seeds), data[make], made)
      finish()
      cpu, wall = time.process_time(), time.perf_counter()
      call()
      finish()
      wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
      answer = dict(wall=wall, cpu=cpu)
    except RuntimeError as error:
      answer = dict(error=str(error).splitlines()[0][:200])
    print(json.dumps(answer), flush=True)


if __name__ == '__main__':
  main()
