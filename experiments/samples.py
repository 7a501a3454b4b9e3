"""Which samples are for what: training, validation, test, an attacker's own."""
from collections.abc import Callable
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.config import Config
from vfljax.data import scale
from vfljax.data.table import Table
from vfljax.shuffle import permutation
from vfljax.types import Array, Batch, Key


class Sizes(NamedTuple):
  """How many samples go where."""

  train: int
  validation: int
  test: int
  auxiliary: int = 0


class Splits(NamedTuple):
  """One seed's samples, standardised on its training samples.

  The auxiliary ones are an attacker's; nobody trains the federation on them.
  """

  train: Batch
  validation: Batch
  test: Batch
  auxiliary: Batch


def divide(table: Table, config: Config):
  """The order of the samples, and how many are for what."""
  data, count = config.data, len(table.labels)
  if not 0 < data.test < 1 or not 0 <= data.validation < 1:
    raise ValueError(
        'data.test must be inside (0, 1) and data.validation inside [0, 1); '
        f'got {data.test} and {data.validation}.'
    )
  if table.test is not None:
    order = np.argsort(table.test, kind='stable')
    held = int(table.test.sum())
  else:
    order, held = slice(None), math.ceil(data.test * count)
  auxiliary = config.attack.auxiliary
  if not 0 <= auxiliary < count - held:
    raise ValueError(
        f'attack.auxiliary must be 0 or more and leave some of the '
        f'{count - held} training samples to train on; got {auxiliary}.'
    )
  validation = math.ceil(data.validation * (count - held - auxiliary))
  return order, Sizes(
      count - held - auxiliary - validation, validation, held, auxiliary
  )


def split(
    key: Key, samples: Batch, sizes: Sizes, official: bool, how: str
) -> Splits:
  """One seed's split of the samples, features scaled by its training part.

  Args:
    samples: The test set last, if there is an official one.
    how: 'standard', 'minmax' or 'none'.
  """
  fit = sizes.train + sizes.validation + sizes.auxiliary
  if official:
    known, test = _rows(samples, slice(fit)), _rows(samples, slice(fit, None))
    if sizes.validation or sizes.auxiliary:
      known = _rows(known, permutation(key, fit))
  else:
    order = permutation(key, fit + sizes.test)
    known, test = _rows(samples, order[:fit]), _rows(samples, order[fit:])
  training = _rows(known, slice(sizes.train))
  rest = _rows(known, slice(sizes.train, None))
  validation = _rows(rest, slice(sizes.validation))
  auxiliary = _rows(rest, slice(sizes.validation, None))
  scalers = [x if x is None else _scaler(x, how) for x in training.features]

  def scaled(batch):
    return batch._replace(features=tuple(
        f and f(x) for f, x in zip(scalers, batch.features)
    ))

  return Splits(*map(scaled, (training, validation, test, auxiliary)))


def _rows(samples: Batch, rows: Array | slice) -> Batch:
  return jax.tree.map(lambda x: x[rows], samples)


def _scaler(x: Array, how: str) -> Callable[[Array], Array]:
  """How features are scaled, by the training samples `x`.

  Images keep one mean and deviation for all their pixels.
  """
  if x.ndim == 4:
    seen = scale.images(x)
    mean, std = (seen.mean(), seen.std()) if how == 'standard' else (0.0, 1.0)
    return lambda x: (scale.images(x) - mean) / jnp.maximum(std, 1e-12)
  if how == 'none':
    return lambda x: x
  fit = scale.fit if how == 'standard' else scale.fit_min_max
  stats = fit(x, jnp.ones(len(x), bool))
  return lambda x: scale.transform(x, stats)


def known(key: Key, training: Batch, count: int) -> Batch:
  """An attacker's labeled samples: `count` random ones a class; 0 is all."""
  if not count:
    return training
  lot = jax.random.uniform(key, (len(training.labels), 1))
  ranked = jnp.where(training.labels > 0, lot, -1.0)  # [samples, classes]
  chosen = jax.lax.top_k(ranked.T, count)[1].ravel()
  return jax.tree.map(lambda x: x[chosen], training)
