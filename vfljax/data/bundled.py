"""Small data sets that scikit-learn ships: they need no network and no file."""
import numpy as np

from vfljax.data.source import COLUMNS, IMAGES, Facts, Source
from vfljax.data.table import Table
from vfljax.need import extra

HOW = 'comes with scikit-learn; no path'


def breast_cancer(path: str = '') -> Table:
  """Wisconsin diagnostic breast cancer: 569 x 30; class 1 is malignant.

  scikit-learn gives malignant the number 0; here it is the positive class, as
  in the VFL papers.
  """
  with extra():
    from sklearn import datasets

  _no_path(path)
  raw = _bunch(datasets.load_breast_cancer())
  return _tabular(raw, 1 - raw['target'], ('benign', 'malignant'))


def wine(path: str = '') -> Table:
  """Chemical analysis of wines from three cultivars: 178 x 13."""
  with extra():
    from sklearn import datasets

  _no_path(path)
  raw = _bunch(datasets.load_wine())
  return _tabular(raw, raw['target'], tuple(map(str, raw['target_names'])))


def digits(path: str = '') -> Table:
  """Handwritten digits: 1797 images of 8 x 8, float32 in 0..1."""
  with extra():
    from sklearn import datasets

  _no_path(path)
  raw = _bunch(datasets.load_digits())
  # The pixels count 0..16 dark points of a 4 x 4 block.
  images = (raw['images'] / 16).astype(np.float32)[..., None]
  labels = raw['target'].astype(np.int32)
  return Table(images, labels, (), tuple('0123456789'), ())


def _bunch(raw) -> dict:
  return dict(raw)


def _tabular(raw: dict, labels, classes) -> Table:
  names = tuple(map(str, raw['feature_names']))
  features = raw['data'].astype(np.float32)
  groups = tuple(range(len(names)))
  return Table(features, labels.astype(np.int32), names, classes, groups)


def _no_path(path: str) -> None:
  if path:
    raise ValueError(
        f'This data set comes with scikit-learn and reads no file; got {path!r}'
        ' (leave the path empty).'
    )


def _source(
    load, file: str, facts: Facts, task: str, parties: str = COLUMNS
) -> Source:
  return Source(
      load, task, HOW, 'CC BY 4.0', facts, parties=parties, with_us=True,
      shipped=f'sklearn/datasets/data/{file}',
  )


_PAGE = 'https://scikit-learn.org/stable/datasets/toy_dataset.html'
BREAST_CANCER = _source(
    breast_cancer, 'breast_cancer.csv',
    Facts(569, (357, 212), _PAGE, (30,)), 'binary',
)
DIGITS = _source(
    digits, 'digits.csv.gz',
    Facts(
        1797, (178, 182, 177, 183, 181, 182, 181, 179, 174, 180), _PAGE,
        (8, 8, 1),
    ),
    '10 classes', IMAGES,
)
WINE = _source(
    wine, 'wine_data.csv', Facts(178, (59, 71, 48), _PAGE, (13,)), '3 classes'
)
