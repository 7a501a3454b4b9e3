"""NumPy archives in the layout of Keras's data sets.

The arrays are `x_train`, `y_train` and, for an official test set, `x_test` and
`y_test`. Images are [n, height, width] or [n, height, width, channels], tables
[n, columns]. Labels are [n] or, as in Keras's CIFAR-10, [n, 1].
"""
from collections.abc import Callable, Sequence
import warnings

import numpy as np

from vfljax.data import archive
from vfljax.data.columns import lost
from vfljax.data.dialect import Recognised
from vfljax.data.files import find
from vfljax.data.options import Names, flag, several
from vfljax.data.source import IMAGES, OWN, Facts, Source
from vfljax.data.table import Table, few_classes, listing, single

HOW = (
    'Write one with numpy.savez(path, x_train=..., y_train=..., x_test=...,'
    ' y_test=...).'
)
NAMES = ('x_train', 'y_train', 'x_test', 'y_test')
FASHION_CLASSES = (
    'T-shirt/top', 'Trouser', 'Pullover', 'Dress', 'Coat', 'Sandal', 'Shirt',
    'Sneaker', 'Bag', 'Ankle boot',
)
CIFAR10_CLASSES = (
    'airplane', 'automobile', 'bird', 'cat', 'deer', 'dog', 'frog', 'horse',
    'ship', 'truck',
)


def how(name: str) -> str:
  """The sentence on how to get a data set that Keras has."""
  return (
      f'Give the path of {name}.npz in the Keras layout: numpy.savez(path,'
      f' x_train=..., y_train=..., x_test=..., y_test=...) of'
      f' keras.datasets.{name}.load_data().'
  )


def load(path: str = '', rounded: Names = '', categories: int = 0) -> Table:
  """Any archive in this layout.

  The classes are the different labels, in order. Numbers other than uint8
  images become float32. `x_test` and `y_test` may be absent.

  Args:
    path: The file.
    rounded: Columns, as in 'x0,x7', whose numbers may be rounded to float32
      even if that makes some of them equal.
    categories: Up to so many different labels are accepted as classes, even in
      few rows.

  Raises:
    FileNotFoundError: if it is not there.
    ValueError: if it is incomplete or has another layout, if labels are no
      classes (fractions, or a different one in most rows), or if whole numbers
      are so large that float32 cannot tell them apart.

  Warns:
    Recognised: if images seem to have their channels first.
  """
  file = find(path, '', HOW)
  features, labels, test = _read(file, several(rounded))
  if labels.dtype.kind == 'f' and not np.isfinite(labels).all():
    raise ValueError(f'{file}: some labels are NaN or infinite.')
  values, index = np.unique(labels, return_inverse=True)
  tabular = features.ndim == 2
  first, *rest = features.shape[1:]
  if not tabular and first in (1, 3, 4) and min(rest) > 4:
    warnings.warn(
        f'{file}: images of {(first, *rest)}, channels last. If they come '
        'first, save x.transpose(0, 2, 3, 1).', Recognised, stacklevel=2,
    )
  columns = range(features.shape[1]) if tabular else ()
  if labels.dtype.kind == 'f':
    largest = float(abs(values).max())  # As float16 2**53 would overflow.
    if (values != np.round(values)).any() or largest >= 2**53:
      raise ValueError(
          f'{file}: labels must be whole numbers or words, because they are'
          f' classes; there are {listing(values)}.'
      )
    values = values.astype(np.int64)
  few_classes(
      len(values), len(labels), f'{file}: the label', categories,
      f'--config.data.options=categories={len(values)}',
  )
  return Table(
      features, index.reshape(-1).astype(np.int32),
      tuple(f'x{i}' for i in columns), tuple(map(str, values)), tuple(columns),
      test,
  )


def known(
    name: str, shape: tuple[int, ...], classes: tuple[str, ...]
) -> Callable[..., Table]:
  """A loader of one data set: images of `shape` with labels 0..classes-1."""

  def load_known(path: str = '') -> Table:
    file = find(path, f'{name}.npz', how(name))
    features, labels, test = _read(file)
    if features.shape[1:] != shape:
      raise ValueError(
          f'{file} has images of shape {features.shape[1:]}; those of {name}'
          f' are {shape}. Use the data set npz for other images.'
      )
    if labels.dtype.kind not in 'uif':
      raise ValueError(
          f'{file}: labels of {name} must be numbers; got {labels.dtype}.'
      )
    odd = np.setdiff1d(labels, np.arange(len(classes)))
    if len(odd):
      raise ValueError(
          f'{file}: labels of {name} must be 0..{len(classes) - 1}; there are '
          f'also {listing(odd)}.'
      )
    labels = labels.astype(np.int32)
    return Table(features, labels, (), classes, (), test)

  return load_known


def _read(
    file, rounded: Sequence[str] = ()
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
  """(features, labels, test mask) of both parts of an archive."""
  arrays = archive.arrays(file, NAMES)
  held = {'x_test', 'y_test'} & arrays.keys()
  parts = ['train', 'test'] if held else ['train']
  lacking = [
      f'{a}_{part}' for part in parts for a in 'xy'
      if f'{a}_{part}' not in arrays
  ]
  if lacking:
    raise ValueError(
        f'{file} lacks {listing(lacking)}; it has'
        f' {listing(arrays) or "nothing"}.'
    )
  x = [_features(file, arrays[f'x_{part}'], rounded) for part in parts]
  y = [_labels(file, arrays[f'y_{part}']) for part in parts]
  if x[0].shape[1:] != x[-1].shape[1:] or x[0].dtype != x[-1].dtype:
    raise ValueError(
        f'{file}: x_train and x_test differ in shape or dtype:'
        f' {x[0].shape} {x[0].dtype}, {x[-1].shape} {x[-1].dtype}.'
    )
  for a, b, part in zip(x, y, parts):
    if len(a) != len(b):
      raise ValueError(
          f'{file}: x_{part} has {len(a)} rows, y_{part} {len(b)}.'
      )
  test = np.arange(sum(map(len, y))) >= len(y[0]) if len(parts) > 1 else None
  return np.concatenate(x), np.concatenate(y), test


def _features(file, x: np.ndarray, rounded: Sequence[str]) -> np.ndarray:
  if x.ndim not in (2, 3, 4) or x.dtype.kind not in 'uifb':
    raw = ''
    if x.dtype.kind == 'V':  # What NumPy makes of types that it does not know.
      raw = ' It may have been bfloat16: save x.astype(numpy.float32).'
    raise ValueError(
        f'{file}: features must be numbers in 2, 3 or 4 dimensions; got shape'
        f' {x.shape}, {x.dtype}.{raw}'
    )
  columns = [f'x{i}' for i in range(x.shape[1] if x.ndim == 2 else 0)]
  strange = [repr(name) for name in rounded if name not in columns]
  if strange:
    raise ValueError(
        f'{file}: rounded names {listing(strange)}; there are'
        f' {f"x0 to {columns[-1]}" if columns else "no columns, but images"}.'
    )
  x = x[..., None] if x.ndim == 3 else x
  if x.dtype == np.uint8 and x.ndim == 4:
    return x
  if x.ndim == 2 and x.dtype != np.float32:
    for name, column in zip(columns, x.T):
      if name not in rounded and lost(column):
        raise ValueError(
            f'{file}: column {name} has numbers so far from 0 that float32'
            ' cannot tell many apart. Subtract its smallest value, or'
            f' leave it out. To round them instead: {flag(rounded=name)}.'
        )
  return single(x)


def _labels(file, y: np.ndarray) -> np.ndarray:
  y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
  if y.ndim != 1:
    raise ValueError(
        f'{file}: labels must be one number a row, shape [n] or [n, 1]; got'
        f' {y.shape}.'
    )
  if y.dtype.kind not in 'uifbUS':
    raise ValueError(
        f'{file}: labels must be whole numbers or words; got {y.dtype}.'
    )
  if y.dtype.kind == 'S':
    try:
      y = np.char.decode(y, 'utf-8')
    except UnicodeDecodeError:
      raise ValueError(
          f'{file}: labels are bytes that are not UTF-8; save them as words, '
          "such as numpy.char.decode(y, 'latin-1')."
      ) from None
  return np.char.strip(y) if y.dtype.kind == 'U' else y


def _source(
    name: str, classes: tuple[str, ...], facts: Facts, licence: str
) -> Source:
  return Source(
      known(name, facts.shape, classes), f'{len(classes)} classes', how(name),
      licence, facts, files=(f'{name}.npz',), parties=IMAGES,
  )


SOURCE = Source(load, 'any', HOW, OWN, own=True)
MNIST = _source(
    'mnist', tuple('0123456789'),
    Facts(
        60000, (6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958),
        'https://keras.io/api/datasets', (28, 28, 1), 10000,
        means=((0, 33.39),),
    ),
    'CC BY-SA 3.0',
)
FASHION_MNIST = _source(
    'fashion_mnist', FASHION_CLASSES,
    Facts(
        60000, (7000,) * 10, 'https://github.com/zalandoresearch/fashion-mnist',
        (28, 28, 1), 10000, means=((0, 72.97),),
    ),
    'MIT',
)
_CIFAR = 'https://www.cs.toronto.edu/~kriz/cifar.html'
CIFAR10 = _source(
    'cifar10', CIFAR10_CLASSES,
    Facts(
        50000, (6000,) * 10, _CIFAR, (32, 32, 3), 10000,
        means=((0, 125.4), (1, 123.1), (2, 114.0)),
    ), 'none stated',
)
CIFAR100 = _source(
    'cifar100', tuple(map(str, range(100))),
    Facts(
        50000, (600,) * 100, _CIFAR, (32, 32, 3), 10000,
        # Means of the training images, which many programs use to normalize;
        # the file itself was not at hand.
        means=((0, 129.3), (1, 124.1), (2, 112.4)),
    ), 'none stated',
)
