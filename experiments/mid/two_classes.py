"""Two classes of an image archive, equally many samples of each.

  python -m experiments.mid.two_classes mnist.npz 3 8 mnist_3_8.npz

Zou et al. (2023) draw two classes at random for binary tasks, and do not say
which. Read the result with --config.data.name=npz.
"""
import argparse

import numpy as np


def select(x: np.ndarray, y: np.ndarray, classes: tuple[int, int]):
  """The rows of two classes in their order, the larger cut to the smaller.

  Raises:
    ValueError: if a class has no rows.
  """
  y = y.reshape(-1)
  rows = [np.flatnonzero(y == c) for c in classes]
  count = min(map(len, rows))
  if not count:
    raise ValueError(f'There are no samples of both classes {classes}.')
  chosen = np.sort(np.concatenate([r[:count] for r in rows]))
  return x[chosen], (y[chosen] == classes[1]).astype(np.int64)


def main() -> None:
  parser = argparse.ArgumentParser(description=(__doc__ or '')[:67])
  parser.add_argument('archive')
  parser.add_argument('first', type=int)
  parser.add_argument('second', type=int)
  parser.add_argument('out')
  args = parser.parse_args()
  pair = args.first, args.second
  with np.load(args.archive) as held:
    arrays = {}
    for part in ('train', 'test'):
      arrays[f'x_{part}'], arrays[f'y_{part}'] = select(
          held[f'x_{part}'], held[f'y_{part}'], pair
      )
  np.savez_compressed(args.out, **arrays)


if __name__ == '__main__':
  main()
