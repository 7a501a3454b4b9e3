"""What a convolution's training costs on a CPU, piece by piece, beside PyTorch.

  python -m experiments.bench.convolutions \\
      --out=experiments/bench/convolutions.json

The layers are those of VGG13 and LeNet5, for 128 halves of images. Timed are a
layer's output and both gradients, as `nets.convolution` computes them (windows,
and one matrix product each), and its pieces alone: the three products, taking
windows out, and adding windows up to an image. If PyTorch is installed, it runs
the whole layer with oneDNN, and the same three products. Times are the least of
several, in milliseconds; a product's 'gflops' are its operations over its time.
"""
import argparse
from collections.abc import Callable
import importlib
import importlib.util
import time
from typing import Any, NamedTuple

import jax
from jax import lax

from experiments.bench import records
from vfljax.nets.convolution import convolve
from vfljax.nets.windows import windows
from vfljax.runner.machine import device

BATCH = 128


class Layer(NamedTuple):
  """A convolution of stride 1 that keeps an image's size."""

  high: int
  wide: int
  inputs: int
  outputs: int
  side: int = 3

  @property
  def sizes(self) -> tuple[int, int, int]:
    """Of the product: windows [rows, taps] and weights [taps, outputs]."""
    rows = BATCH * self.high * self.wide
    return rows, self.side**2 * self.inputs, self.outputs


LAYERS = {
    'lenet5, 2nd': Layer(14, 7, 6, 16, 5),
    'vgg13, 2nd': Layer(32, 16, 64, 64),
    'vgg13, 4th': Layer(16, 8, 128, 128),
    'vgg13, 6th': Layer(8, 4, 256, 256),
    'vgg13, 8th': Layer(4, 2, 512, 512),
}
PRODUCTS = ('output', 'of weights', 'of images')


def least(call: Callable[[], Any], turns: int) -> float:
  """Milliseconds of the fastest call, after a first one."""
  call()
  times = []
  for _ in range(turns):
    began = time.perf_counter()
    call()
    times.append(time.perf_counter() - began)
  return round(1e3 * min(times), 3)


def timed(fn: Callable, turns: int, *arguments: Any) -> float:
  compiled = jax.jit(fn).lower(*arguments).compile()
  return least(lambda: jax.block_until_ready(compiled(*arguments)), turns)


def ours(layer: Layer, turns: int) -> dict[str, float]:
  """Milliseconds of our layer and of its pieces."""
  keys = jax.random.split(jax.random.key(0), 4)
  image = BATCH, layer.high, layer.wide
  kernel = layer.side, layer.side, layer.inputs, layer.outputs
  rows, taps, outputs = layer.sizes
  normal = jax.random.normal
  x, w = normal(keys[0], (*image, layer.inputs)), normal(keys[1], kernel)
  g = normal(keys[2], (*image, layer.outputs))
  a, b = normal(keys[3], (rows, taps)), w.reshape(taps, outputs)
  flat = g.reshape(rows, outputs)
  half = layer.side // 2
  take = lambda x: windows(
      x, (layer.side,) * 2, (1, 1), [(half, half), (half, half)]
  )
  spread = a.reshape(*image, taps)

  def whole(x, w, g):
    y, back = jax.vjp(lambda x, w: convolve(x, w, how='patches'), x, w)
    return y, back(g)

  across = lambda a, g: lax.dot_general(a, g, (((0,), (0,)), ((), ())))
  return {
      'layer': timed(whole, turns, x, w, g),
      'output': timed(lambda a, b: a @ b, turns, a, b),
      'of weights': timed(across, turns, a, flat),
      'of images': timed(lambda g, b: g @ b.T, turns, flat, b),
      'windows taken': timed(take, turns, x),
      'windows put back': timed(
          lambda s, x: jax.vjp(take, x)[1](s)[0], turns, spread, x
      ),
  }


def peer(layer: Layer, turns: int) -> dict[str, float]:
  """PyTorch's layer, and the three products."""
  torch: Any = importlib.import_module('torch')
  rows, taps, outputs = layer.sizes
  conv = torch.nn.Conv2d(
      layer.inputs, layer.outputs, layer.side, padding=layer.side // 2,
      bias=False,
  ).to(memory_format=torch.channels_last)
  channels_last = lambda channels: torch.randn(
      BATCH, channels, layer.high, layer.wide
  ).to(memory_format=torch.channels_last)
  x, g = channels_last(layer.inputs).requires_grad_(), channels_last(outputs)
  a, b = torch.randn(rows, taps), torch.randn(taps, outputs)
  flat = torch.randn(rows, outputs)
  return {
      'layer': least(
          lambda: torch.autograd.grad(conv(x), (x, conv.weight), g), turns
      ),
      'output': least(lambda: a @ b, turns),
      'of weights': least(lambda: a.T @ flat, turns),
      'of images': least(lambda: flat @ b.T, turns),
  }


def gflops(found: dict[str, float], layer: Layer) -> dict[str, Any]:
  """With each product's billions of operations a second."""
  rows, taps, outputs = layer.sizes
  work = 2 * rows * taps * outputs / 1e6
  return found | dict(gflops={
      name: round(work / found[name]) for name in PRODUCTS
  } | dict(layer=round(3 * work / found['layer'])))


def main() -> None:
  first = (__doc__ or '').partition('\n')[0]
  parser = argparse.ArgumentParser(description=first)
  parser.add_argument('--out', default='', help='where the record is written')
  parser.add_argument('--turns', type=int, default=7)
  given = parser.parse_args()
  device.set_up(1, '')
  found: dict[str, Any] = {}
  for name, layer in LAYERS.items():
    found[name] = dict(vfljax=gflops(ours(layer, given.turns), layer))
    if importlib.util.find_spec('torch'):
      found[name]['torch'] = gflops(peer(layer, given.turns), layer)
  records.write(
      records.begin() | records.machine() | dict(
          versions=records.versions(), batch=BATCH, layers=found
      ), given.out,
  )


if __name__ == '__main__':
  main()
