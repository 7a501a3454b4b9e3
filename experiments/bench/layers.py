"""How fast each way to compute a convolution is on a CPU, layer by layer.

  python -m experiments.bench.layers --out=experiments/bench/layers.json

Timed are a layer's output and both gradients in a loop, as in training: as one
product of patches, by `nets.winograd` (3x3) with tiles of 2x2, of 4x4 and of
what it chooses, and by `nets.banded`. Times are in milliseconds, the fastest of
several, in turns. 'chosen' is the choice of `nets.convolution.quickest`.
'errors' are of the output: the root mean squared difference from float64 over
the root mean square.
"""
import argparse
from collections.abc import Callable
from functools import partial
import time
from typing import Any, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from experiments.bench import records
from vfljax.nets import banded, convolution, winograd
from vfljax.runner.machine import device, tuning

WORK = 8e8  # Of a call, about: pixels times both channels, for windows of 3x3.


class Layer(NamedTuple):
  """A convolution with zeros around the image."""

  images: int
  rows: int
  columns: int
  inputs: int
  outputs: int
  side: int = 3
  step: int = 1

  @property
  def pads(self) -> tuple[tuple[int, int], ...]:
    edge = self.side // 2, self.side // 2
    return edge, edge

  def drawn(self) -> list[np.ndarray]:
    """An image, a kernel and a gradient of the output, in float64."""
    rng = np.random.default_rng(0)
    image = self.rows, self.columns
    small = (-(-n // self.step) for n in image)
    sizes = (
        (self.images, *image, self.inputs),
        (self.side, self.side, self.inputs, self.outputs),
        (self.images, *small, self.outputs),
    )
    return [rng.normal(size=size) for size in sizes]


LAYERS = (
    # ResNets' and VGG13's; few images, small images, few channels.
    Layer(128, 32, 16, 64, 64), Layer(128, 16, 8, 128, 128),
    Layer(128, 8, 4, 256, 256), Layer(128, 4, 2, 512, 512),
    Layer(128, 32, 16, 16, 16), Layer(128, 16, 8, 32, 32),
    Layer(128, 8, 4, 64, 64), Layer(128, 8, 4, 64, 256),
    Layer(128, 7, 7, 64, 64), Layer(128, 7, 4, 64, 64),
    Layer(128, 4, 2, 64, 64), Layer(128, 3, 3, 64, 64),
    Layer(128, 3, 2, 64, 64), Layer(128, 2, 2, 64, 64),
    Layer(128, 2, 1, 512, 512), Layer(32, 8, 4, 256, 256),
    Layer(8, 8, 4, 256, 256), Layer(8, 4, 2, 64, 64), Layer(1, 32, 16, 64, 64),
    Layer(1, 8, 4, 64, 64), Layer(128, 32, 16, 16, 64),
    Layer(128, 32, 16, 8, 32), Layer(128, 32, 16, 4, 8),
    Layer(128, 32, 16, 3, 64), Layer(128, 32, 16, 3, 16),
    Layer(128, 16, 8, 8, 8), Layer(128, 28, 14, 1, 16),
    # LeNet5's, of halves and of whole images; networks like it.
    Layer(128, 28, 14, 1, 6, 5), Layer(128, 14, 7, 6, 16, 5),
    Layer(128, 28, 28, 1, 6, 5), Layer(128, 14, 14, 6, 16, 5),
    Layer(128, 32, 16, 3, 6, 5), Layer(128, 16, 8, 6, 16, 5),
    Layer(8, 28, 14, 1, 6, 5), Layer(8, 14, 7, 6, 16, 5),
    Layer(1, 28, 14, 1, 6, 5), Layer(1, 14, 7, 6, 16, 5),
    Layer(128, 32, 16, 3, 12, 5, 2), Layer(128, 16, 8, 12, 12, 5, 2),
    Layer(128, 8, 4, 12, 12, 5),
)


def tile_of(layer: Layer) -> tuple[int, int]:
  return winograd.best((layer.images, layer.rows, layer.columns, layer.inputs))


def winograds(tile: tuple[int, int]) -> str:
  return 'winograd {}x{}'.format(*tile)


def chosen(layer: Layer) -> str:
  """Which of its `ways` a network takes."""
  image, kernel, _ = (jnp.zeros(v.shape, 'f') for v in layer.drawn())
  steps = layer.step, layer.step
  name = convolution.quickest(image, kernel, steps, layer.pads)
  return winograds(tile_of(layer)) if name == 'winograd' else name


def ways(layer: Layer) -> dict[str, Callable]:
  """Those that can compute it: functions of an image and a kernel."""
  steps = layer.step, layer.step
  found: dict[str, Callable] = dict(patches=partial(
      convolution.convolve, strides=steps, padding=layer.pads, how='patches'
  ))
  if layer.side == 3 and layer.step == 1:
    for tile in ((2, 2), (4, 4), tile_of(layer)):
      found[winograds(tile)] = partial(winograd.convolve, tile=tile)
  found['banded'] = partial(banded.convolve, strides=steps, pads=layer.pads)
  return found


def trained(way: Callable, inputs: tuple, times: int) -> Callable[[], Any]:
  """A call that computes output and gradients so many times."""

  def step(moved, _):
    x, kernel, dy = moved
    y, back = jax.vjp(way, x, kernel)
    dx, dkernel = back(dy)
    return (x + 1e-6 * dx, kernel + 1e-6 * dkernel, dy + 1e-6 * y), None

  loop = jax.jit(lambda moved: lax.scan(step, moved, None, times)[0])
  program = tuning.compiled(loop.lower(inputs))
  return lambda: jax.block_until_ready(program(inputs))


def measured(layer: Layer, turns: int) -> dict[str, Any]:
  """Each way's milliseconds, and how far each is off."""
  x, kernel, dy = double = layer.drawn()
  inputs = tuple(jnp.asarray(values, 'f') for values in double)
  pixels = dy.size // layer.outputs
  work = pixels * kernel.size / 9
  times = int(np.clip(WORK / work, 1, 2000))
  calls = {
      name: trained(way, inputs, times) for name, way in ways(layer).items()
  }
  found: dict[str, list[float]] = {name: [] for name in calls}
  for turn in range(turns + 1):  # The first one does not count.
    for name, call in calls.items():
      began = time.perf_counter()
      call()
      if turn:
        found[name].append(time.perf_counter() - began)
  return dict(
      layer=layer._asdict(),
      ms={k: round(1e3 * min(own) / times, 3) for k, own in found.items()},
      chosen=chosen(layer),
      errors=errors(layer, x, kernel),
  )


def errors(layer: Layer, x: np.ndarray, kernel: np.ndarray) -> dict[str, float]:
  """Of each way in float32, relative to the output's size."""
  single = x.astype('f4'), kernel.astype('f4')
  patches = jax.jit(ways(layer)['patches'])
  with jax.enable_x64(True):
    exact = np.asarray(patches(*(v.astype('f8') for v in single)))
  size = np.sqrt(np.mean(exact**2))
  off = {
      name: np.sqrt(np.mean((np.asarray(jax.jit(way)(*single)) - exact) ** 2))
      for name, way in ways(layer).items()
  }
  return {name: float(f'{value / size:.2g}') for name, value in off.items()}


def main() -> None:
  first = (__doc__ or '').partition('\n')[0]
  parser = argparse.ArgumentParser(description=first)
  parser.add_argument('--out', default='', help='where the record is written')
  parser.add_argument('--turns', type=int, default=3)
  given = parser.parse_args()
  device.set_up(1, '')
  layers = []
  for layer in LAYERS:
    layers.append(measured(layer, given.turns))
    print(*layer, layers[-1]['ms'], layers[-1]['chosen'], flush=True)
  records.write(
      records.begin() | records.machine() | dict(layers=layers), given.out,
      aloud=False,
  )


if __name__ == '__main__':
  main()
