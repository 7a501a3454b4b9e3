"""`Source`, a data set's registry entry: loader, facts, where to look for it.

If the number of rows or the shares of classes differ from the official data
set, there is a warning: it may be a subset on purpose, or half a download. If
the number of classes or features differs, it is another data set, and an error.
"""
from collections.abc import Callable, Sequence
import importlib.util
import pathlib
from typing import Any, NamedTuple
import warnings

import numpy as np

from vfljax.data.table import Table, listing

FAR = 0.1  # A share or a mean may differ by a tenth from the official one.
LOOKED_AT = 2000  # Number of images over which a mean is taken.
# The current folder, `data` in it, and the folder of TensorFlow Datasets.
FOLDERS = ('.', 'data', '~/tensorflow_datasets')
OWN = "the file's own"  # Licence of a user's own files.

# Among how many parties data sets of a kind can be split, and into what.
COLUMNS = '2 or more: columns'
IMAGES = '2: halves; 4: quadrants'
TEXTS = '2 or more: pieces of texts'


class Mismatch(UserWarning):
  """A data set of the right kind is not the whole official one."""


class Facts(NamedTuple):
  """What is known of an official data set.

  Attributes:
    train: Number of training rows; of all rows if there is no official test
      set.
    counts: Rows of each class, test rows included, in the order of the labels;
      shares of classes if the source does not give exact counts.
    source: Where these numbers come from.
    shape: Shape of one row's features; () if the loader's options set it.
    test: Number of rows of the official test set.
    whole: (option, value) pairs with which the loader reads everything. With
      other values, rows and classes are not compared.
    about: Relative difference in rows that causes no warning, for data sets
      whose sources do not say how many of their files are usable.
    means: (column, its mean) for some columns of a table or channels of images,
      to recognise another file of the same shape.
  """

  train: int
  counts: tuple[float, ...]
  source: str
  shape: tuple[int, ...] = ()
  test: int = 0
  whole: tuple[tuple[str, Any], ...] = ()
  about: float = 0.0
  means: tuple[tuple[int, float], ...] = ()

  @property
  def size(self) -> str:
    """'60000 + 10000 x 28x28x1', for a listing."""
    rows = f'{self.train} + {self.test}' if self.test else f'{self.train}'
    return f'{rows} x {"x".join(map(str, self.shape)) or "(by option)"}'


class Source(NamedTuple):
  """All that is known of a data set before it is read.

  Attributes:
    load: (path, **options) -> Table.
    task: For example 'binary' or '10 classes'.
    how: One line on how to get it and where to put it.
    licence: The data's licence.
    facts: What is known of the official data set; `None` for any data.
    extent: Its size in words if there are no facts: '(lines) x 500'.
    files: Customary names of its file or folder; `present` looks for them.
    parties: Among how many parties papers split it, and into what.
    own: Whether it is a user's own file, which is never cached.
    with_us: Whether it needs no file from the user.
    shipped: The file that a package ships for it, from the package's name on:
      'sklearn/datasets/data/wine_data.csv'.
  """

  load: Callable[..., Table]
  task: str
  how: str
  licence: str
  facts: Facts | None = None
  extent: str = 'any'
  files: tuple[str, ...] = ()
  parties: str = COLUMNS
  own: bool = False
  with_us: bool = False
  shipped: str = ''

  @property
  def size(self) -> str:
    """'569 x 30', for a listing."""
    return self.facts.size if self.facts else self.extent

  def reads(self, path: str) -> str:
    """The file that it reads; '' if there is none or it is not found.

    A shipped file is found without importing its package, which may take
    seconds.
    """
    if path or not self.shipped:
      return path
    package, _, rest = self.shipped.partition('/')
    found = importlib.util.find_spec(package)
    folders = (found and found.submodule_search_locations) or ()
    places = [pathlib.Path(folder) / rest for folder in folders]
    return next((str(place) for place in places if place.is_file()), '')

  def present(self, folders: Sequence[str] = FOLDERS) -> str:
    """Where it is: 'with us', a path, or '' if not found. Nothing is read."""
    if self.with_us:
      return 'with us'
    for folder in folders:
      for file in self.files:
        place = pathlib.Path(folder) / file
        if place.expanduser().exists():
          return str(place)
    return ''


def check_facts(
    name: str, facts: Facts | None, table: Table, options: dict[str, Any]
) -> Table:
  """Returns the table as it is, if it can be the data set of that name.

  Args:
    name: The data set's name, for messages.
    facts: Its facts; `None` checks nothing.
    table: The table that its loader read.
    options: The loader's options, defaults included.

  Raises:
    ValueError: (one line) for another number of classes or features.

  Warns:
    Mismatch: (one line) if the number of rows differs, or a class's share or a
      column's mean differs by more than a tenth.
  """
  if facts is None:
    return table
  found = table.features.shape[1:]
  if facts.shape and found != facts.shape:
    raise ValueError(
        f'{name} has features of shape {facts.shape} a row; these are of '
        f'shape {found} ({facts.source}).'
    )
  if len(table.classes) != len(facts.counts):
    raise ValueError(
        f'{name} has {len(facts.counts)} classes; here are '
        f'{len(table.classes)}: {listing(table.classes)} ({facts.source}).'
    )
  if all(options[key] == value for key, value in facts.whole):
    odd = [
        *_rows(facts, table), *_shares(facts, table), *_means(facts, table)
    ]
    if odd:
      _warn(name, f'{"; ".join(odd)} ({facts.source})')
  return table


def check_file(name: str, file: str, found: int, expected: int) -> None:
  """Warns (`Mismatch`) if one of several files has another number of rows.

  Args:
    name: The data set's name.
    file: The file's name.
    found: Number of rows in it.
    expected: Number of rows of the official file.
  """
  odd = _other('', found, expected, 0)
  if odd:
    _warn(name, f'{file} has {odd[0]}')


def _warn(name: str, odd: str) -> None:
  warnings.warn(
      f'This {name} is not the whole official one: {odd}.', Mismatch,
      stacklevel=4,
  )


def _rows(facts: Facts, table: Table) -> list[str]:
  if not facts.test:  # A test set that the loader made itself does not count.
    return _other('', len(table.labels), facts.train, facts.about)
  held = 0 if table.test is None else int(table.test.sum())
  training = len(table.labels) - held
  return [
      *_other('training ', training, facts.train, facts.about),
      *_other('test ', held, facts.test, facts.about),
  ]


def _other(part: str, found: int, expected: int, about: float) -> list[str]:
  if abs(found - expected) <= about * expected:
    return []
  return [f'{found} {part}rows instead of {expected}']


def _shares(facts: Facts, table: Table) -> list[str]:
  expected = np.array(facts.counts) / sum(facts.counts)
  found = np.bincount(table.labels, minlength=len(expected))
  found = found / len(table.labels)
  far = np.flatnonzero(abs(found - expected) > FAR * expected)
  if not len(far):
    return []
  words = [
      f'{table.classes[i]!r} {found[i]:.1%} instead of {expected[i]:.1%}'
      for i in far
  ]
  return [f'shares of classes are {listing(words, 3)}']


def _means(facts: Facts, table: Table) -> list[str]:
  """Columns whose mean is far from the official data set's."""
  x, odd = table.features, []
  if x.ndim == 4:  # Images spread over the file, in whatever order it is.
    x = x[:: max(len(x) // LOOKED_AT, 1)]
  for column, expected in facts.means:
    found = float(x[..., column].mean(dtype=np.float64))
    if abs(found - expected) > FAR * abs(expected):
      name = table.names[column] if table.names else f'channel {column}'
      odd.append(f'the mean of {name} is {found:.4g} instead of {expected:.4g}')
  return [listing(odd, 3)] if odd else []
