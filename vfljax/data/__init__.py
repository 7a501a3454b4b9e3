"""Data sets by name: `load(name, path, ...)` returns a checked `Table`.

Nothing is downloaded. scikit-learn's tables and the synthetic generator need no
file. If the file of another data set is missing, the message says how to get
it. Each data set has a module here with its `Source`; register your own with
`REGISTRY['toy'] = toy.SOURCE`.
"""
from collections.abc import Callable, Iterator
import contextlib
import functools
import inspect
import pathlib
from typing import Any

from vfljax.data import (
    bhi, bundled, credit, criteo, frame, isic, npz, nuswide, one_class,
    parties, pictures, reviews, spambase, synthetic, texts, tfds, vehicle,
)
from vfljax.data import cache as arrays
from vfljax.data.dialect import Recognised
from vfljax.data.files import LONGEST
from vfljax.data.options import converted
from vfljax.data.parties import joined
from vfljax.data.source import Facts, Mismatch, Source, check_facts
from vfljax.data.table import Table, check, impute

REGISTRY: dict[str, Source] = dict(
    breast_cancer=bundled.BREAST_CANCER,
    digits=bundled.DIGITS,
    wine=bundled.WINE,
    spambase=spambase.SOURCE,
    reviews=reviews.SOURCE,
    imdb=reviews.IMDB,
    criteo=criteo.SOURCE,
    isic=isic.SOURCE,
    mnist=npz.MNIST,
    fashion_mnist=npz.FASHION_MNIST,
    cifar10=npz.CIFAR10,
    cifar100=npz.CIFAR100,
    fashion_mnist_binary=one_class.FASHION_MNIST_BINARY,
    credit=credit.SOURCE,
    vehicle=vehicle.SOURCE,
    nuswide=nuswide.SOURCE,
    bhi=bhi.SOURCE,
    svhn=pictures.SVHN,
    cinic10=pictures.CINIC10,
    tiny_imagenet=pictures.TINY_IMAGENET,
    texts=texts.SOURCE,
    imdb_texts=texts.IMDB,
    ag_news=texts.AG_NEWS,
    trec=texts.TREC,
    npz=npz.SOURCE,
    csv=frame.CSV,
    parquet=frame.PARQUET,
    parties=parties.SOURCE,
    tfds=tfds.SOURCE,
    synthetic=synthetic.SOURCE,
)


def load(
    name: str, path: str = '', label: str = '', missing: str = 'refuse',
    cache: str = '', **options: Any,
) -> Table:
  """Loads a data set and checks it.

  Args:
    name: One of `REGISTRY`.
    path: Its file or folder.
    label: Name of the label column, for data sets that need one.
    missing: 'refuse', or 'impute': missing numbers become their column's
      median, missing categories a category of their own.
    cache: A folder that keeps the data read from `path` as arrays, see
      `cache.cached`; '' keeps nothing. Users' own files (csv, npz, texts, ...)
      are never kept.
    **options: The loader's own, see `options_of`.

  Raises:
    FileNotFoundError: (one line) if its file is missing; says how to get it.
    ValueError: (one line, with `path`) for an unknown name or option, a value
      of the wrong type, data that cannot be trained on (see `table.check`) or
      do not fit into memory, another number of classes or features than the
      official data set has, or a package that is not installed.

  Warns:
    Mismatch: (one line) if it is not the whole official data set.
    Recognised: (one line) if a column was read in a way that may be wrong.
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
  source = REGISTRY[name]
  given = converted(source.load, given, name)
  with _named(path or name):
    reads = source.reads(path) if cache and not source.own else ''
    if reads:
      read = source.load if path else functools.partial(_shipped, source.load)
      table = arrays.cached(read, cache, name, reads, given, source.load)
    else:
      table = source.load(path, **given)
    if not isinstance(table, Table):
      from vfljax import check as checks  # Data need no JAX.
      raise ValueError(
          f'The loader of {name} must return a data.table.Table; it returned '
          f'{checks.kind(table)}.'
      )
    table = check(impute(table) if missing == 'impute' else table)
    return check_facts(name, source.facts, table, known | given)


def _shipped(load: Callable[..., Table], path: str, **options: Any) -> Table:
  """Loads a data set that a package ships; the package finds the file."""
  del path
  return load('', **options)


@contextlib.contextmanager
def _named(path: str) -> Iterator[None]:
  """A context where errors are one line and name the file, or the data set."""
  try:
    yield
  except MemoryError as error:
    raise ValueError(f'{path} needs more memory than there is.') from error
  except ValueError as error:
    said = ' '.join(str(error).split('\n'))
    near = pathlib.Path(path).name
    whole = said if near and near in said or not path else f'{path}: {said}'
    if whole == str(error) and len(whole) <= 4 * LONGEST:
      raise
    raise ValueError(whole[: 4 * LONGEST]) from error


def options_of(name: str) -> dict[str, Any]:
  """The options of a registered data set and their defaults, without `path`."""
  parameters = inspect.signature(REGISTRY[name].load).parameters
  return {k: p.default for k, p in parameters.items() if k != 'path'}


__all__ = [
    'REGISTRY', 'Facts', 'Mismatch', 'Recognised', 'Source', 'Table', 'check',
    'impute', 'joined', 'load', 'options_of',
]
