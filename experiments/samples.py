"""Which samples are for what: training, validation, test, an attacker's own."""
from collections.abc import Callable
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.config import Config
from vfljax.data import scale
from vfljax.data.split import apply as vertical
from vfljax.data.table import Table
from vfljax.shuffle import permutation
from vfljax.types import Array, Batch, Key


class Sizes(NamedTuple):
  """How many samples go where."""

  train: int
  validation: int
  test: int
  auxiliary: int = 0
  spare: int = 0


class Splits(NamedTuple):
  """One seed's samples, standardised on its training samples.

  The auxiliary ones are an attacker's and the spare ones the defender's; nobody
  trains the federation on them.
  """

  train: Batch
  validation: Batch
  test: Batch
  auxiliary: Batch
  spare: Batch | None = None


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
  spare = 0 if config.auxiliary.data else config.auxiliary.samples
  both = 'attack.auxiliary + auxiliary.samples'
  aside = {'attack.auxiliary': auxiliary, 'auxiliary.samples': spare}
  for name, size in (aside | {both: auxiliary + spare}).items():
    if not 0 <= size < count - held:
      raise ValueError(
          f'{name} must be 0 or more and leave some of the {count - held} '
          f'training samples to train on; got {size}.'
      )
  rest = count - held - auxiliary - spare
  validation = math.ceil(data.validation * rest)
  return order, Sizes(
      rest - validation, validation, held, auxiliary, spare
  )


def split(
    key: Key, samples: Batch, sizes: Sizes, official: bool, how: str
) -> Splits:
  """One seed's split of the samples, features scaled by its training part.

  Args:
    samples: The test set last, if there is an official one.
    how: 'standard', 'minmax' or 'none'.
  """
  fit = sizes.train + sizes.validation + sizes.auxiliary + sizes.spare
  if official:
    known, test = _rows(samples, slice(fit)), _rows(samples, slice(fit, None))
    if fit > sizes.train:
      known = _rows(known, permutation(key, fit))
  else:
    order = permutation(key, fit + sizes.test)
    known, test = _rows(samples, order[:fit]), _rows(samples, order[fit:])
  training = _rows(known, slice(sizes.train))
  rest = _rows(known, slice(sizes.train, None))
  validation = _rows(rest, slice(sizes.validation))
  kept = sizes.validation + sizes.auxiliary
  auxiliary = _rows(rest, slice(sizes.validation, kept))
  spare = _rows(rest, slice(kept, None))
  scalers = [x if x is None else _scaler(x, how) for x in training.features]

  def scaled(batch):
    return batch._replace(features=tuple(
        f and f(x) for f, x in zip(scalers, batch.features)
    ))

  parts = (training, validation, test, auxiliary, spare)
  return Splits(*map(scaled, parts))


def distorted(key: Key, samples: Batch, classes: int, noise: float) -> Batch:
  """Samples that are not as the others: VMask's non-IID auxiliary samples.

  Args:
    classes: Those of other classes than the first so many lose their labels,
      so that they do not count; 0 keeps all.
    noise: Deviation of normal noise on the features.
  """
  labels = samples.labels
  if classes:
    labels = labels * (jnp.arange(labels.shape[-1]) < classes)
  if not noise:
    return samples._replace(labels=labels)
  keys = jax.random.split(key, len(samples.features))
  return Batch(tuple(
      x if x is None else x + noise * jax.random.normal(k, x.shape, x.dtype)
      for k, x in zip(keys, samples.features)
  ), labels)


def outside(table: Table, spec, sizes: int, how: str) -> Batch:
  """`sizes` samples of another data set, split alike and scaled by themselves.

  Raises:
    ValueError: if it has fewer.
  """
  if not 0 < sizes <= len(table.labels):
    raise ValueError(
        f'auxiliary.samples must be 1..{len(table.labels)}, the other data '
        f"set's samples; got {sizes}."
    )
  rows = np.random.default_rng(0).choice(len(table.labels), sizes, False)
  chosen = table._replace(
      features=table.features[rows], labels=table.labels[rows], test=None
  )
  parts = [x if x is None else jnp.asarray(x) for x in vertical(chosen, spec)]
  return Batch(
      tuple(x if x is None else _scaler(x, how)(x) for x in parts),
      jax.nn.one_hot(jnp.asarray(chosen.labels), len(table.classes)),
  )


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
