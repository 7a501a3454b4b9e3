"""Refuses sets of samples of one class alone, for which there is no AUC.

In a training or test set it would look like a training that diverged. In a
validation set no epoch would be the best one, so that the last one would be
kept in silence.
"""
from collections.abc import Iterator

import numpy as np

from vfljax.runner.experiment import division
from vfljax.runner.experiment.setting import Setting

_SURELY = 20  # Expected samples of a class; P(none) is then at most exp(-20).
_LOOKED_AT = 1000  # Seeds that are checked, at most; the first ones.
_PARTS = 'training', 'test', 'validation'  # As `division.counts` has them.


def check(setting: Setting) -> None:
  """Refuses training, test or, with `train.best`, validation sets of one class.

  A class with more than `_SURELY` expected samples is in every seed's sets.

  Raises:
    ValueError: naming the set, and the seed that draws it.
  """
  if setting.classes != 2:
    return
  labels = np.asarray(setting.samples.labels)
  rarest = int(labels.sum(0).min())
  for part, of, count in _sets(setting, labels):
    if count.min() == 0:
      raise ValueError(
          f'The {part} set{of} has one class alone, for which there is no '
          f'AUC: {rarest} of {len(labels)} samples are of the other. Give more '
          'of them, or choose another '
          f'--config.data.{"validation" if part == _PARTS[2] else "test"} or '
          '--config.first_seed.'
      )


def _sets(
    setting: Setting, labels: np.ndarray
) -> Iterator[tuple[str, str, np.ndarray]]:
  """(which set, ' of seed 3' or '', samples of each class) where one may lack.
  """
  config, sizes = setting.config, setting.sizes
  names, sampled = [*_PARTS[:2]], [sizes.train, sizes.test]
  if setting.official:
    parts = labels[: -sizes.test], labels[-sizes.test :]
    yield from ((name, '', x.sum(0)) for name, x in zip(names, parts))
    names, sampled = [], []
  if config.train.best and sizes.validation:
    names, sampled = [*names, _PARTS[2]], [*sampled, sizes.validation]
  rarest = labels.sum(0).min()
  if not names or rarest * min(sampled) > _SURELY * len(labels):
    return
  drawn = config.seeds if config.data.resplit else 1
  seeds = config.first_seed + np.arange(min(drawn, _LOOKED_AT))
  found = division.counts(seeds, labels, sizes, setting.official)
  for seed, counts in zip(seeds, np.asarray(found)):
    for part, count in zip(_PARTS, counts):
      if part in names:
        yield part, f' of seed {seed}', count
