"""Where convolutions of 3x3 take Winograd's algorithm on a CPU: layer by layer.

  python -m experiments.bench.winograd --out=experiments/bench/winograd.json

A layer is its output and both gradients, in a loop as a training has it, as one
product of patches and as `nets.winograd` computes it: milliseconds, the fastest
of several, in turns. 'chosen' is what `nets.winograd.worth_it` says. 'errors'
are of the output: the root of the mean squared difference from float64's, over
the root of the mean square.
"""
import argparse
from collections.abc import Callable
import time
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from experiments.bench import records
from vfljax.nets import convolution, winograd
from vfljax.runner import device, tuning

SHAPES = (  # (images, rows, columns, channels, channels of the output)
    (128, 32, 16, 64, 64), (128, 16, 8, 128, 128), (128, 8, 4, 256, 256),
    (128, 4, 2, 512, 512), (128, 32, 16, 16, 16), (128, 16, 8, 32, 32),
    (128, 8, 4, 64, 64), (128, 8, 4, 64, 256), (128, 32, 16, 16, 64),
    (128, 32, 16, 8, 32), (128, 32, 16, 4, 8), (128, 32, 16, 3, 64),
    (128, 7, 7, 64, 64), (128, 7, 4, 64, 64), (128, 4, 2, 64, 64),
    (128, 3, 3, 64, 64), (128, 3, 2, 64, 64), (128, 2, 2, 64, 64),
    (128, 2, 1, 512, 512), (32, 8, 4, 256, 256), (8, 8, 4, 256, 256),
    (8, 4, 2, 64, 64), (1, 32, 16, 64, 64), (1, 8, 4, 64, 64),
)
WORK = 2e9  # Pixels times both channels, about, that a call is to have.
PADS = ((1, 1), (1, 1))


def patches(x, kernel):
  return convolution.convolve(x, kernel, how='patches')


WAYS: dict[str, Callable] = dict(patches=patches, winograd=winograd.convolve)


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


def layer(shape: tuple[int, ...], turns: int) -> dict[str, Any]:
  """Both ways' milliseconds, and how far each is off."""
  *image, channels = shape
  sizes = image, (3, 3, image[-1], channels), (*image[:-1], channels)
  rng = np.random.default_rng(0)
  double = [rng.normal(size=size) for size in sizes]
  inputs = tuple(jnp.asarray(values, 'f') for values in double)
  x, kernel, _ = inputs
  times = max(1, round(WORK / (np.prod(image) * channels)))
  calls = {name: trained(way, inputs, times) for name, way in WAYS.items()}
  found: dict[str, list[float]] = {name: [] for name in WAYS}
  for turn in range(turns + 1):  # The first one does not count.
    for name, call in calls.items():
      began = time.perf_counter()
      call()
      if turn:
        found[name].append(time.perf_counter() - began)
  best = {name: 1e3 * min(own) / times for name, own in found.items()}
  return dict(
      shape=shape, **{name: round(ms, 3) for name, ms in best.items()},
      ratio=round(best['patches'] / best['winograd'], 2),
      chosen=winograd.worth_it(x, kernel, (1, 1), PADS),
      errors=errors(*double[:2]),
  )


def errors(x: np.ndarray, kernel: np.ndarray) -> dict[str, float]:
  """Of each way in float32, relative to the output's size."""
  single = x.astype('f4'), kernel.astype('f4')
  with jax.enable_x64(True):
    exact = np.asarray(jax.jit(patches)(*(v.astype('f8') for v in single)))
  size = np.sqrt(np.mean(exact**2))
  off = {
      name: np.sqrt(np.mean((np.asarray(jax.jit(way)(*single)) - exact) ** 2))
      for name, way in WAYS.items()
  }
  return {name: float(f'{value / size:.2g}') for name, value in off.items()}


def main() -> None:
  first = (__doc__ or '').partition('\n')[0]
  parser = argparse.ArgumentParser(description=first)
  parser.add_argument('--out', default='', help='where the record is written')
  parser.add_argument('--turns', type=int, default=5)
  given = parser.parse_args()
  device.set_up(1, '')
  layers = []
  for shape in SHAPES:
    layers.append(layer(shape, given.turns))
    print(layers[-1], flush=True)
  records.write(
      records.begin() | records.machine() | dict(layers=layers), given.out,
      aloud=False,
  )


if __name__ == '__main__':
  main()
