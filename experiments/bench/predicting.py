"""How many samples a network on images should predict at a time.

  python -m experiments.bench.predicting \\
      --out=experiments/bench/predicting.json

An epoch ends with a prediction for each test sample, also in attackers'
trainings. `nets.images.blockwise` makes them in blocks. Here several sizes of
blocks are timed, and 0, all samples at once. Times are in seconds, the least of
several turns, with all cores working on one call. 'megabytes' is the memory
that the program needs besides its arguments; 'same' says whether all numbers
are equal to those of size 0.
"""
import argparse
import time
from typing import Any

import jax
import numpy as np

from experiments.bench import records
from vfljax import nets
from vfljax.nets import images
from vfljax.runner.machine import device

SIZES = 0, 64, 128, 256, 512, 2048
# By network: so many halves of images, of that shape.
ASKED = dict(
    lenet5=(10_000, (28, 14, 1)), conv2=(10_000, (28, 14, 1)),
    vgg13=(500, (32, 16, 3)), resnet20=(2_000, (32, 16, 3)),
)


def measured(name: str, turns: int) -> dict[str, Any]:
  """By size: seconds, memory, and whether the numbers are those of size 0."""
  samples, shape = ASKED[name]
  options = {} if name == 'conv2' else dict(norm='none')
  net = nets.make(name, 64, **options)
  key = jax.random.key(0)
  x = np.random.default_rng(0).normal(size=(samples, *shape)).astype('f4')
  params = net.init(key, x[:2])
  # A training pass is never cut, and here the same function.
  plain = net._replace(apply=lambda p, x: net.run(p, key, x)[0], train=None)
  found: dict[str, Any] = {}
  want = None
  for size in SIZES:
    if size >= samples:
      continue
    asked = images.blockwise(plain, size) if size else plain
    made = jax.jit(asked.apply).lower(params, x).compile()
    y = np.asarray(made(params, x))
    want = y if want is None else want
    memory: Any = made.memory_analysis()
    found[str(size)] = dict(
        seconds=round(min(_once(made, params, x) for _ in range(turns)), 4),
        megabytes=round(memory.temp_size_in_bytes / 1e6),
        same=bool((y == want).all()),
    )
  return dict(samples=samples, shape=list(shape), sizes=found)


def _once(made, params, x) -> float:
  began = time.perf_counter()
  jax.block_until_ready(made(params, x))
  return time.perf_counter() - began


def main() -> None:
  first = (__doc__ or '').partition('\n')[0]
  parser = argparse.ArgumentParser(description=first)
  parser.add_argument('--turns', type=int, default=5)
  parser.add_argument('--out', default='', help='where the record is written')
  given = parser.parse_args()
  device.set_up(1, '')
  networks = {}
  for name in ASKED:
    networks[name] = measured(name, given.turns)
    print(name, networks[name], flush=True)
  record = records.begin() | records.machine()
  records.write(record | dict(networks=networks), given.out, aloud=False)


if __name__ == '__main__':
  main()
