"""What the official data sets are known to be: rows, shapes, class counts.

Whoever cuts a data set down means to, or has half a download: another number of
rows and another share of a class are a warning. Another number of classes or
features is another data set, and an error.
"""
from typing import Any, NamedTuple
import warnings

import numpy as np

from vfljax.data.table import Table, listing

FAR = 0.1  # A class's share may be off by a tenth of what it should be.


class Mismatch(UserWarning):
  """A data set of the right kind is not the whole official one."""


class Facts(NamedTuple):
  """One official data set.

  Attributes:
    train: Rows for training; all rows where there is no official test set.
    counts: Rows a class, test rows included, in the order of the labels; of a
      data set whose exact counts its source does not give, the shares.
    source: Where these numbers are from.
    shape: Of one row's features; () if the loader's options set it.
    test: Rows of the official test set.
    whole: The loader's options under which it reads everything: with others,
      rows and classes are not counted.
    about: Relative difference in rows that is no news: of data sets whose
      sources do not say how many of their files are usable.
  """

  train: int
  counts: tuple[float, ...]
  source: str
  shape: tuple[int, ...] = ()
  test: int = 0
  whole: tuple[tuple[str, Any], ...] = ()
  about: float = 0.0

  @property
  def size(self) -> str:
    """'60000 + 10000 x 28x28x1', for a listing."""
    rows = f'{self.train} + {self.test}' if self.test else f'{self.train}'
    return f'{rows} x {"x".join(map(str, self.shape)) or "(by option)"}'


_KERAS = 'https://keras.io/api/datasets'
_CIFAR = 'https://www.cs.toronto.edu/~kriz/cifar.html'
_SKLEARN = 'https://scikit-learn.org/stable/datasets/toy_dataset.html'
_BOTH = (('rows', 0), ('test_rows', 0))
_FASHION = Facts(
    60000, (7000,) * 10, 'https://github.com/zalandoresearch/fashion-mnist',
    (28, 28, 1), 10000,
)
OFFICIAL: dict[str, Facts] = dict(
    breast_cancer=Facts(569, (357, 212), _SKLEARN, (30,)),
    digits=Facts(
        1797, (178, 182, 177, 183, 181, 182, 181, 179, 174, 180), _SKLEARN,
        (8, 8, 1),
    ),
    wine=Facts(178, (59, 71, 48), _SKLEARN, (13,)),
    spambase=Facts(
        4601, (2788, 1813), 'https://archive.ics.uci.edu/dataset/94', (57,)
    ),
    credit=Facts(
        30000, (23364, 6636), 'https://archive.ics.uci.edu/dataset/350', (23,)
    ),
    vehicle=Facts(
        50000, (0.5, 0.5), 'Kang et al. (2022), Appendix B: "1 : 1"', (100,),
        whole=(('samples', 50000),),
    ),
    criteo=Facts(
        45840617, (0.744, 0.256),
        'https://www.kaggle.com/c/criteo-display-ad-challenge', (39,),
        whole=(('rows', 0),),
    ),
    isic=Facts(
        33126, (32542, 584), 'Rotemberg et al. (2021), SIIM-ISIC 2020',
        whole=(('rows', 0),),
    ),
    # Patches at the edge and patients' odd ones have no pair.
    bhi=Facts(
        138762, (198738, 78786), 'https://www.kaggle.com/datasets/'
        'paultimothymooney/breast-histopathology-images (277524 patches)',
        (50, 100, 3), whole=(('pairs', 0),), about=0.05,
    ),
    mnist=Facts(
        60000, (6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958),
        _KERAS, (28, 28, 1), 10000,
    ),
    fashion_mnist=_FASHION,
    fashion_mnist_binary=_FASHION._replace(counts=(63000, 7000)),
    cifar10=Facts(50000, (6000,) * 10, _CIFAR, (32, 32, 3), 10000),
    cifar100=Facts(50000, (600,) * 100, _CIFAR, (32, 32, 3), 10000),
    svhn=Facts(
        73257, (6692, 18960, 14734, 11379, 9981, 9266, 7704, 7614, 6705, 6254),
        'http://ufldl.stanford.edu/housenumbers', (32, 32, 3), 26032,
    ),
    cinic10=Facts(
        180000, (27000,) * 10, 'https://datashare.ed.ac.uk/handle/10283/3192',
        (32, 32, 3), 90000, (('rows', 0),),
    ),
    tiny_imagenet=Facts(
        100000, (550,) * 200, 'http://cs231n.stanford.edu/tiny-imagenet-200.zip',
        (64, 64, 3), 10000, (('rows', 0),),
    ),
    imdb=Facts(
        25000, (25000,) * 2, 'Maas et al. (2011)', test=25000,
    ),
    imdb_texts=Facts(
        25000, (25000,) * 2, 'Maas et al. (2011)', test=25000, whole=_BOTH,
    ),
    ag_news=Facts(
        120000, (31900,) * 4, 'Zhang et al. (2015)', test=7600, whole=_BOTH,
    ),
    trec=Facts(  # DESC, ENTY, ABBR, HUM, NUM, LOC: the order of TFDS.
        5452, (1300, 1344, 95, 1288, 1009, 916), 'Li and Roth (2002)',
        test=500, whole=_BOTH,
    ),
)


# Rows of the official files from which a loader chooses.
FILES: dict[str, dict[str, int]] = dict(
    nuswide=dict(Train=161789, Test=107859),
    vehicle={'combined': 78823, 'combined.t': 19705},
)


def check(name: str, table: Table, options: dict[str, Any]) -> Table:
  """Returns the table as it is, if it can be the data set of that name.

  Args:
    name: Of the data set; one that is not `OFFICIAL` is not checked.
    table: What its loader read.
    options: The loader's, its defaults among them.

  Raises:
    ValueError: (one line) for another number of classes or features.

  Warns:
    Mismatch: (one line) if rows are missing or too many, or a class has a share
      that is far off.
  """
  facts = OFFICIAL.get(name)
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
    odd = [*_rows(facts, table), *_shares(facts, table)]
    if odd:
      _warn(name, f'{"; ".join(odd)} ({facts.source})')
  return table


def check_file(name: str, file: str, found: int) -> None:
  """Warns (`Mismatch`) of one of `FILES` that has not the official rows."""
  odd = _other('', found, FILES[name][file], 0)
  if odd:
    _warn(name, f'{file} has {odd[0]}')


def _warn(name: str, odd: str) -> None:
  warnings.warn(
      f'This {name} is not the whole official one: {odd}.', Mismatch,
      stacklevel=4,
  )


def _rows(facts: Facts, table: Table) -> list[str]:
  if not facts.test:  # A loader may have made a test set of its own.
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
