"""Data sets by name: `load(name, path, ...)` gives a checked `Table`.

Nothing is downloaded. scikit-learn's tables and the synthetic generator need no
file; the others say in one line where theirs comes from.
"""
from collections.abc import Callable
import inspect
from typing import Any, NamedTuple

from vfljax.data import (
    bhi, bundled, credit, criteo, frame, isic, npz, nuswide, one_class,
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


def _keras(name, shape, classes, rows, licence) -> Source:
  size = f'{rows} x {"x".join(map(str, shape))}'
  load = npz.known(name, shape, classes)
  return Source(load, '10 classes', size, npz.how(name), licence)


def _prepared(name, task, rows, text, target, licence) -> Source:
  load = texts.prepared(name, text, target)
  how = texts.prepared_how(name)
  return Source(load, task, f'{rows} x (tokens)', how, licence)


_OWN = "the file's own"
REGISTRY: dict[str, Source] = {
    'breast_cancer': Source(
        bundled.breast_cancer, 'binary', '569 x 30', bundled.HOW, 'CC BY 4.0'
    ),
    'digits': Source(
        bundled.digits, '10 classes', '1797 x 8x8x1', bundled.HOW, 'CC BY 4.0'
    ),
    'wine': Source(
        bundled.wine, '3 classes', '178 x 13', bundled.HOW, 'CC BY 4.0'
    ),
    'spambase': Source(
        spambase.load, 'binary', '4601 x 57', spambase.HOW, 'CC BY 4.0'
    ),
    'reviews': Source(
        reviews.load, 'binary', '(lines) x 500', reviews.HOW, _OWN
    ),
    'imdb': Source(
        reviews.imdb, 'binary', '50000 x 500', reviews.IMDB_HOW, 'none stated'
    ),
    'criteo': Source(
        criteo.load, 'binary', '45840617 x 39', criteo.HOW, 'CC BY-NC-SA 4.0'
    ),
    'isic': Source(
        isic.load, 'binary', '33126 x 64x64x1', isic.HOW, 'CC BY-NC 4.0'
    ),
    'mnist': _keras(
        'mnist', (28, 28, 1), tuple('0123456789'), 70000, 'CC BY-SA 3.0'
    ),
    'fashion_mnist': _keras(
        'fashion_mnist', (28, 28, 1), npz.FASHION, 70000, 'MIT'
    ),
    'cifar10': _keras(
        'cifar10', (32, 32, 3), npz.CIFAR10, 60000, 'none stated'
    ),
    'fashion_mnist_binary': Source(
        one_class.against_rest(
            npz.known('fashion_mnist', (28, 28, 1), npz.FASHION), 6
        ),
        'binary', '70000 x 28x28x1', npz.how('fashion_mnist'), 'MIT',
    ),
    'credit': Source(
        credit.load, 'binary', '30000 x 23', credit.HOW, 'CC BY 4.0'
    ),
    'vehicle': Source(
        vehicle.load, 'binary', '50000 x 100', vehicle.HOW, 'none stated'
    ),
    'nuswide': Source(
        nuswide.load, 'any', '(samples) x 1634', nuswide.HOW, 'none stated'
    ),
    'bhi': Source(
        bhi.load, 'binary', '(pairs) x 50x100x3', bhi.HOW, 'as on Kaggle'
    ),
    'cifar100': Source(
        npz.known('cifar100', (32, 32, 3), tuple(map(str, range(100)))),
        '100 classes', '60000 x 32x32x3', npz.how('cifar100'), 'none stated',
    ),
    'svhn': Source(
        pictures.svhn, '10 classes', '99289 x 32x32x3', pictures.SVHN_HOW,
        'non-commercial use',
    ),
    'cinic10': Source(
        pictures.cinic10, '10 classes', '270000 x 32x32x3', pictures.CINIC_HOW,
        'MIT; ImageNet terms',
    ),
    'tiny_imagenet': Source(
        pictures.tiny_imagenet, '200 classes', '110000 x 64x64x3',
        pictures.TINY_HOW, 'ImageNet terms',
    ),
    'texts': Source(
        texts.load, 'any', '(lines) x (tokens)', texts.HOW, _OWN
    ),
    'imdb_texts': _prepared(
        'imdb_reviews', 'binary', 50000, 'text', 'label', 'none stated'
    ),
    'ag_news': _prepared(
        'ag_news_subset', '4 classes', 127600, 'description', 'label',
        'non-commercial use',
    ),
    'trec': _prepared(
        'trec', '6 classes', 5952, 'text', 'label-coarse', 'none stated'
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
    ValueError: (one line) for an unknown name or option, and for data that
      cannot be trained on; see `table.check`.
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
  return check(impute(table) if missing == 'impute' else table)


def options_of(name: str) -> dict[str, Any]:
  """The options of a registered data set and their defaults, without `path`."""
  parameters = inspect.signature(REGISTRY[name].load).parameters
  return {k: p.default for k, p in parameters.items() if k != 'path'}
