"""Divides samples: training, validation, test, attacker's and defender's."""
import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vfljax.data import scale
from vfljax.data.split import apply as vertical
from vfljax.data.table import Table
from vfljax.permuting import permutation
from vfljax.runner.config import Config
from vfljax.sampling import per_class
from vfljax.types import Array, Batch, Key


class Sizes(NamedTuple):
  """How many samples each part of `Splits` has."""

  train: int
  validation: int
  test: int
  auxiliary: int = 0
  spare: int = 0


class Splits(NamedTuple):
  """One seed's samples, scaled by statistics of its training samples.

  `auxiliary` belongs to an attacker and `spare` to the defender; the federation
  is trained on neither.
  """

  train: Batch
  validation: Batch
  test: Batch
  auxiliary: Batch
  spare: Batch | None = None


def divide(table: Table, config: Config):
  """(order, sizes): how to sort the samples, and how many each part has.

  `order` is an index array, or a slice of everything; it moves an official test
  set to the end.

  Raises:
    ValueError: if a share is out of its range, or no training samples are left.
  """
  data, count = config.data, len(table.labels)
  if not 0 < data.test < 1 or not 0 <= data.validation < 1:
    raise ValueError(
        'data.test must be inside (0, 1) and data.validation inside [0, 1); '
        f'got {data.test} and {data.validation}.'
    )
  if table.test is not None:
    order = np.argsort(table.test, kind='stable')
    if (np.diff(order) == 1).all():  # Nothing to copy.
      order = slice(None)
    held = int(table.test.sum())
  else:
    order, held = slice(None), _part('test', data.test, count)
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
  validation = _part('validation', data.validation, rest)
  return order, Sizes(rest - validation, validation, held, auxiliary, spare)


def _part(name: str, share: float, count: int) -> int:
  """A share of samples, rounded up; ValueError if that is all of them."""
  part = math.ceil(share * count)
  if part >= count:
    raise ValueError(
        f'No training samples are left of {count}: type a share that is smaller'
        f' than --config.data.{name}={share:g}.'
    )
  return part


def key_of(seed: Array | int) -> Key:
  """The key of a seed's split."""
  return jax.random.fold_in(jax.random.key(seed), 0)


def rows_of(key: Key, sizes: Sizes, official: bool) -> tuple[Any, ...]:
  """The rows of each part of one seed's split.

  Args:
    key: The split's, see `key_of`.
    sizes: How many samples each part has.
    official: Whether the last `sizes.test` samples are the test set.

  Returns:
    (training, validation, test, auxiliary, spare), each an index array [n], or
    a slice if no order is drawn.
  """
  fit = sizes.train + sizes.validation + sizes.auxiliary + sizes.spare
  known, test = None, slice(fit, fit + sizes.test)
  if not official:
    order = permutation(key, fit + sizes.test)
    known, test = order[:fit], order[fit:]
  elif fit > sizes.train:
    known = permutation(key, fit)
  ends = np.cumsum([
      0, sizes.train, sizes.validation, sizes.auxiliary, sizes.spare
  ])
  cuts: list[Any] = [slice(int(a), int(b)) for a, b in zip(ends, ends[1:])]
  if known is not None:
    cuts = [known[cut] for cut in cuts]
  training, validation, auxiliary, spare = cuts
  return training, validation, test, auxiliary, spare


@functools.partial(jax.jit, static_argnames=('sizes', 'official'))
def counts(
    seeds: Array, labels: Array, sizes: Sizes, official: bool = False
) -> Array:
  """Samples of each class for training, test, validation: [seeds, 3, classes].

  Args:
    seeds: The seeds, [seeds].
    labels: One-hot labels, [samples, classes].
    sizes: How many samples each part has.
    official: As in `rows_of`.
  """

  def one(seed):
    training, held, test, _, _ = rows_of(key_of(seed), sizes, official)
    return jnp.stack([labels[part].sum(0) for part in (training, test, held)])

  return jax.lax.map(one, seeds)


# Every program of a training begins with it. Under jit it is traced only once.
@functools.partial(
    jax.jit, static_argnames=('sizes', 'official', 'how'), inline=True
)
def split(
    key: Key, samples: Batch, sizes: Sizes, official: bool, how: str
) -> Splits:
  """One seed's split, with features scaled by statistics of the training part.

  Args:
    key: The split's, see `key_of`.
    samples: All samples; an official test set comes last.
    sizes: How many samples each part has.
    official: Whether the last `sizes.test` samples are the test set.
    how: 'standard', 'minmax' or 'none'.
  """
  rows = rows_of(key, sizes, official)
  parts = Splits(*(_rows(samples, own) for own in rows))
  return scaled(parts, tuple(
      x if x is None else _scale_of(x, how) for x in parts.train.features
  ))


def scaled(splits: Splits, scales: tuple) -> Splits:
  """Applies `scale_by` to every part, with one scale for each party."""
  change: Any = lambda part: part and part._replace(
      features=scale_all(part.features, scales)
  )
  return Splits(*map(change, splits))


def scale_all(features: tuple, scales: tuple) -> tuple:
  """Applies `scale_by` to every party's features of one batch."""
  return tuple(
      x if x is None else scale_by(x, own) for x, own in zip(features, scales)
  )


def distorted(key: Key, samples: Batch, classes: int, noise: float) -> Batch:
  """Samples from another distribution: VMask's non-IID auxiliary samples.

  Args:
    key: Seeds the noise.
    samples: The samples.
    classes: Number of classes to keep. Labels of later classes become zeros,
      so that those samples do not count; 0 keeps all classes.
    noise: Standard deviation of normal noise added to the features.
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


def outside(table: Table, like: Table, spec, sizes: int, how: str) -> Batch:
  """Samples of another data set, divided among the parties in the same way.

  Args:
    table: The other data set.
    like: The data set that is trained on: a split by correlation, or by columns
      that belong together, is that of its columns.
    spec: How features are divided among the parties.
    sizes: How many samples to draw.
    how: How to scale them, by their own statistics: see `split`.

  Raises:
    ValueError: if `sizes` is below 1 or above the data set's size.
  """
  if not 0 < sizes <= len(table.labels):
    raise ValueError(
        f'auxiliary.samples must be 1..{len(table.labels)}, the other data '
        f"set's samples; got {sizes}."
    )
  rows = np.random.default_rng(0).choice(len(table.labels), sizes, False)
  held = vertical(like, spec, table.features[rows])
  parts = [x if x is None else jnp.asarray(x) for x in held]
  return Batch(
      tuple(x if x is None else scale_by(x, _scale_of(x, how)) for x in parts),
      jax.nn.one_hot(jnp.asarray(table.labels[rows]), len(table.classes)),
  )


def _rows(samples: Batch, rows: Array | slice) -> Batch:
  return jax.tree.map(lambda x: x[rows], samples)


def _scale_of(x: Array, how: str) -> scale.Stats | None:
  """Statistics of the training samples `x` to scale by; `None` for no scaling.

  Images have one shift for all their pixels, and one spread to divide by, which
  is 0 if all pixels are equal. uint8 images are in 0..1 without 'minmax'.
  """
  if how == 'none' or is_in_range(x, how):
    return None
  if x.ndim == 4:
    seen = scale.images(x)
    low, wide = seen.min(), jnp.ptp(seen)
    if how == 'minmax':
      return scale.Stats(low, wide)
    # The mean of many equal numbers is rounded.
    return scale.Stats(seen.mean(), jnp.where(wide > 0, seen.std(), 0))
  fit = scale.fit if how == 'standard' else scale.fit_min_max
  return fit(x, jnp.ones(len(x), bool))


def is_in_range(x: Any, how: str) -> bool:
  """Whether 'minmax' has nothing to do: uint8 images have a range already."""
  return how == 'minmax' and x.ndim == 4 and x.dtype == np.uint8


def scale_by(x: Array, own: scale.Stats | None) -> Array:
  """Scales features by statistics; images by one shift and one spread."""
  if x.ndim == 4:
    pixels = scale.images(x)
    if own is None:
      return pixels
    # As in a table: what is constant in training becomes 0 everywhere.
    varies = own.factor > 0
    spread = jnp.where(varies, own.factor, 1)
    return jnp.where(varies, (pixels - own.shift) / spread, 0)
  return x if own is None else scale.transform(x, own)


def known(key: Key, training: Batch, count: int) -> Batch:
  """An attacker's labeled samples: `count` random ones a class; 0 means all.

  If the training part has fewer of a class, other samples fill its rows, with
  zeros as labels: their labels are unknown.
  """
  if not count:
    return training
  chosen, own = per_class(key, training.labels, count)
  return _rows(training, chosen)._replace(labels=own)


def fewer(known: Batch, count: Array | int) -> Batch:
  """The samples of `known`, with labels for the first `count` of each class.

  They are those that `known` draws with the same key and `count`, which may be
  traced; the labels of the others become zeros.

  Args:
    known: At least `count` samples of each class, as `known` returns them.
    count: 1 or more.
  """
  labels = known.labels
  by_class = labels.reshape(labels.shape[1], -1, labels.shape[1])
  told = jnp.arange(by_class.shape[1]) < count
  own = (by_class * told[:, None]).reshape(labels.shape)
  return known._replace(labels=own)
