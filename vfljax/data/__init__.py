"""Data sets by name: `load(name, path, ...)` gives a checked `Table`.

Nothing is downloaded. scikit-learn's tables and the synthetic generator need no
file; the others say in one line where theirs comes from.
"""
from collections.abc import Callable
import inspect
from typing import Any, NamedTuple

from vfljax.data import (
    bhi, bundled, credit, criteo, facts, frame, isic, npz, nuswide, one_class,
    pictures, reviews, spambase, synthetic, texts, tfds, vehicle,
)
from vfljax.data import cache as arrays
from vfljax.data.table import Table, check, impute


class Source(NamedTuple):
  """Where a data set comes from.

  Attributes:
    load: (path, **options) -> Table.
    task: For example 'binary' or '10 classes'.
    size: For example '569 x 30'.
    how: One line: how to get it and where to put it.
    licence: Of the data.
  """

  load: Callable[..., Table]
  task: str
  size: str
  how: str
  licence: str


def _size(name: str) -> str:
  return facts.OFFICIAL[name].size


def _keras(name, classes, licence) -> Source:
  known = facts.OFFICIAL[name]
  load = npz.known(name, known.shape, classes)
  task = f'{len(known.counts)} classes'
  return Source(load, task, known.size, npz.how(name), licence)


def _prepared(own, name, task, text, target, licence) -> Source:
  load = texts.prepared(name, text, target)
  how = texts.prepared_how(name)
  return Source(load, task, _size(own), how, licence)


_OWN = "the file's own"
REGISTRY: dict[str, Source] = {
    'breast_cancer': Source(
        bundled.breast_cancer, 'binary', _size('breast_cancer'), bundled.HOW,
        'CC BY 4.0',
    ),
    'digits': Source(
        bundled.digits, '10 classes', _size('digits'), bundled.HOW, 'CC BY 4.0'
    ),
    'wine': Source(
        bundled.wine, '3 classes', _size('wine'), bundled.HOW, 'CC BY 4.0'
    ),
    'spambase': Source(
        spambase.load, 'binary', _size('spambase'), spambase.HOW, 'CC BY 4.0'
    ),
    'reviews': Source(
        reviews.load, 'binary', '(lines) x 500', reviews.HOW, _OWN
    ),
    'imdb': Source(
        reviews.imdb, 'binary', _size('imdb'), reviews.IMDB_HOW, 'none stated'
    ),
    'criteo': Source(
        criteo.load, 'binary', _size('criteo'), criteo.HOW, 'CC BY-NC-SA 4.0'
    ),
    'isic': Source(
        isic.load, 'binary', _size('isic'), isic.HOW, 'CC BY-NC 4.0'
    ),
    'mnist': _keras('mnist', tuple('0123456789'), 'CC BY-SA 3.0'),
    'fashion_mnist': _keras('fashion_mnist', npz.FASHION, 'MIT'),
    'cifar10': _keras('cifar10', npz.CIFAR10, 'none stated'),
    'cifar100': _keras('cifar100', tuple(map(str, range(100))), 'none stated'),
    'fashion_mnist_binary': Source(
        one_class.against_rest(
            npz.known('fashion_mnist', (28, 28, 1), npz.FASHION), 6
        ),
        'binary', _size('fashion_mnist_binary'), npz.how('fashion_mnist'),
        'MIT',
    ),
    'credit': Source(
        credit.load, 'binary', _size('credit'), credit.HOW, 'CC BY 4.0'
    ),
    'vehicle': Source(
        vehicle.load, 'binary', _size('vehicle'), vehicle.HOW, 'none stated'
    ),
    'nuswide': Source(
        nuswide.load, 'any', '(samples) x 1634', nuswide.HOW, 'none stated'
    ),
    'bhi': Source(
        bhi.load, 'binary', _size('bhi'), bhi.HOW, 'as on Kaggle'
    ),
    'svhn': Source(
        pictures.svhn, '10 classes', _size('svhn'), pictures.SVHN_HOW,
        'non-commercial use',
    ),
    'cinic10': Source(
        pictures.cinic10, '10 classes', _size('cinic10'), pictures.CINIC_HOW,
        'MIT; ImageNet terms',
    ),
    'tiny_imagenet': Source(
        pictures.tiny_imagenet, '200 classes', _size('tiny_imagenet'),
        pictures.TINY_HOW, 'ImageNet terms',
    ),
    'texts': Source(
        texts.load, 'any', '(lines) x (tokens)', texts.HOW, _OWN
    ),
    'imdb_texts': _prepared(
        'imdb_texts', 'imdb_reviews', 'binary', 'text', 'label', 'none stated'
    ),
    'ag_news': _prepared(
        'ag_news', 'ag_news_subset', '4 classes', 'description', 'label',
        'non-commercial use',
    ),
    'trec': _prepared(
        'trec', 'trec', '6 classes', 'text', 'label-coarse', 'none stated'
    ),
    'npz': Source(npz.load, 'any', 'any', npz.HOW, _OWN),
    'csv': Source(frame.csv, 'any', 'any', frame.HOW, _OWN),
    'parquet': Source(frame.parquet, 'any', 'any', frame.HOW, _OWN),
    'tfds': Source(tfds.load, 'any', 'any', tfds.HOW, "the data set's own"),
    'synthetic': Source(
        synthetic.load, 'any', '(samples) x (columns a party)',
        'drawn from a seed; no path', 'none needed',
    ),
}


def load(
    name: str, path: str = '', label: str = '', missing: str = 'refuse',
    cache: str = '', **options: Any,
) -> Table:
  """Loads a data set and checks it.

  Args:
    name: One of `REGISTRY`.
    path: Where its file or folder is.
    label: Name of the label column, for those that need one.
    missing: 'refuse', or 'impute': missing numbers become their column's
      median, missing categories a category of their own.
    cache: A folder that keeps what was read from `path` as arrays, see
      `cache.cached`; '' keeps nothing. Data sets that are a person's own (csv,
      npz, texts, ...) are never kept.
    **options: The loader's own, see `options_of`.

  Raises:
    FileNotFoundError: (one line) if its file is not there: how to get it.
    ValueError: (one line) for an unknown name or option, for data that cannot
      be trained on, see `table.check`, and for another number of classes or
      features than the official data set of that name has.

  Warns:
    facts.Mismatch: (one line) if it is not the whole official data set.
  """
  if name not in REGISTRY:
    known = ', '.join(REGISTRY)
    raise ValueError(f'Unknown data set {name!r}; known: {known}.')
  if missing not in ('refuse', 'impute'):
    raise ValueError(f"missing must be 'refuse' or 'impute'; got {missing!r}.")
  known = options_of(name)
  given = options | ({'label': label} if label else {})
  for option in given:
    if option not in known:
      raise ValueError(
          f'Data set {name!r} has no option {option!r}; it has'
          f' {", ".join(known) or "none"}.'
      )
  if 'missing' in known:
    given['missing'] = missing
  read = lambda: REGISTRY[name].load(path, **given)
  # A person's own files are not copied anywhere.
  keep = cache and path and REGISTRY[name].licence != _OWN
  table = arrays.cached(read, cache, name, path, given) if keep else read()
  table = check(impute(table) if missing == 'impute' else table)
  return facts.check(name, table, known | given)


def options_of(name: str) -> dict[str, Any]:
  """The options of a registered data set and their defaults, without `path`."""
  parameters = inspect.signature(REGISTRY[name].load).parameters
  return {k: p.default for k, p in parameters.items() if k != 'path'}
