"""Image sets of folders: CINIC-10 and Tiny ImageNet, and SVHN's matrices.

  CINIC-10       {train, valid, test}/{airplane, ...}/*.png, 32 x 32
                 https://datashare.ed.ac.uk/handle/10283/3192
  Tiny ImageNet  wnids.txt, train/<wnid>/images/*.JPEG, val/images/*.JPEG and
                 val/val_annotations.txt, 64 x 64
                 http://cs231n.stanford.edu/tiny-imagenet-200.zip
  SVHN           train_32x32.mat, test_32x32.mat
                 http://ufldl.stanford.edu/housenumbers

As in VMask, CINIC-10's train and valid parts (180000 images) are for training.
Tiny ImageNet is tested on its val part (10000), because its test part has no
labels.
"""
import pathlib

import numpy as np

from vfljax.data.files import find, fits, folder, lines, reading
from vfljax.data.npz import CIFAR10_CLASSES
from vfljax.data.options import whole
from vfljax.data.photo import photo
from vfljax.data.source import IMAGES, Facts, Source
from vfljax.data.table import Table, listing

CINIC_HOW = (
    'Get CINIC-10.tar.gz from https://datashare.ed.ac.uk/handle/10283/3192 and'
    ' give the folder with train, valid and test.'
)
TINY_HOW = (
    'Get http://cs231n.stanford.edu/tiny-imagenet-200.zip and give the folder'
    ' tiny-imagenet-200.'
)
SVHN_HOW = (
    'Get train_32x32.mat and test_32x32.mat from'
    ' http://ufldl.stanford.edu/housenumbers and give their folder.'
)


def cinic10(path: str = '', rows: int = 0) -> Table:
  """CINIC-10, uint8 [n, 32, 32, 3]; valid is for training, as in VMask.

  Args:
    path: The folder of the three parts.
    rows: At most so many images of each class in each part; 0 takes all (270000
      images are 830 MB).

  Raises:
    FileNotFoundError: if a part or a class's folder is not there or is empty.
    ValueError: for a folder that is no class, or a file that is no image of 32
      by 32 pixels, or if Pillow is not installed.
  """
  whole('cinic10', 0, rows=rows)
  root = folder(path, CINIC_HOW)
  files, labels, test = [], [], []
  for part in ('train', 'valid', 'test'):
    place = folder(str(root / part), CINIC_HOW)
    names = {f.name for f in place.iterdir() if f.is_dir()}
    if names - set(CIFAR10_CLASSES):
      raise ValueError(
          f'{place} has folders that are no class of CINIC-10:'
          f' {listing(sorted(names - set(CIFAR10_CLASSES)))}.'
      )
    for label, name in enumerate(CIFAR10_CLASSES):
      found = _some(place / name, '*.png', rows, CINIC_HOW)
      files += found
      labels += [label] * len(found)
      test += [part == 'test'] * len(found)
  return _table(files, labels, test, CIFAR10_CLASSES, 32)


def tiny_imagenet(path: str = '', rows: int = 0) -> Table:
  """Tiny ImageNet, uint8 [n, 64, 64, 3], 200 classes; val is the test set.

  Args:
    path: The folder tiny-imagenet-200.
    rows: At most so many training images of each class; 0 takes all.

  Raises:
    FileNotFoundError: if a list, a class's folder or an image is not there.
    ValueError: for an image of a class that wnids.txt does not have, a line of
      another form, or a file that is no image of 64 by 64 pixels; if
      Pillow is not installed.
  """
  whole('tiny_imagenet', 0, rows=rows)
  root = folder(path, TINY_HOW)
  known = find(str(root / 'wnids.txt'), '', TINY_HOW)
  classes = [word for _, line in lines(known) for word in line.split()]
  if not classes or len(set(classes)) < len(classes):
    raise ValueError(f'{known} must name every class once.')
  number = {name: i for i, name in enumerate(classes)}
  files, labels = [], []
  for name in classes:
    place = root / 'train' / name / 'images'
    found = _some(place, '*.JPEG', rows, TINY_HOW)
    files += found
    labels += [number[name]] * len(found)
  training = len(files)
  notes = find(str(root / 'val' / 'val_annotations.txt'), '', TINY_HOW)
  for i, line in lines(notes):
    words = line.split('\t')
    if len(words) < 2 or words[1] not in number:
      raise ValueError(
          f'{notes}, line {i}: expected a file, a tab and a class of wnids.txt;'
          f' got {line[:40]!r}.'
      )
    files.append(find(str(root / 'val' / 'images' / words[0]), '', TINY_HOW))
    labels.append(number[words[1]])
  test = [i >= training for i in range(len(files))]
  return _table(files, labels, test, tuple(classes), 64)


def svhn(path: str = '') -> Table:
  """SVHN's cropped digits, uint8 [n, 32, 32, 3]; class 0 is stored as 10.

  Args:
    path: The folder of the two files.

  Raises:
    FileNotFoundError: if one is not there.
    ValueError: if one is damaged, or has other shapes or labels.
  """
  root = folder(path, SVHN_HOW)
  parts = [_matrices(root / f'{p}_32x32.mat') for p in ('train', 'test')]
  labels = np.concatenate([y for _, y in parts])
  return Table(
      np.concatenate([x for x, _ in parts]), labels, (), tuple('0123456789'),
      (), np.arange(len(labels)) >= len(parts[0][1]),
  )


def _matrices(file: pathlib.Path) -> tuple[np.ndarray, np.ndarray]:
  from scipy import io

  file = find(str(file), '', SVHN_HOW)
  with reading(file, 'cannot be read'):
    found = io.loadmat(file, variable_names=('X', 'y'))
    x, y = np.asarray(found['X']), np.asarray(found['y']).reshape(-1)
    if y.dtype.kind not in 'uif':
      raise ValueError(f'y has no numbers but {y.dtype}')
  if x.shape != (32, 32, 3, len(y)) or x.dtype != np.uint8:
    raise ValueError(
        f'{file}: expected X uint8 [32, 32, 3, n] and y [n, 1]; got'
        f' {x.shape} {x.dtype} and {y.shape}.'
    )
  if not np.isin(y, np.arange(1, 11)).all():
    raise ValueError(
        f'{file}: labels must be 1..10; got {listing(np.unique(y))}.'
    )
  return x.transpose(3, 0, 1, 2), (y % 10).astype(np.int32)


def _some(
    place: pathlib.Path, pattern: str, rows: int, how: str
) -> list[pathlib.Path]:
  files = sorted(folder(str(place), how).glob(pattern))
  if not files:
    raise FileNotFoundError(f'{place} has no {pattern}. {how}')
  return files[:rows] if rows else files


def _table(files, labels, test, classes: tuple[str, ...], side: int) -> Table:
  fits(len(files) * side * side * 3, f'{len(files)} images')
  x = np.empty((len(files), side, side, 3), np.uint8)
  for i, file in enumerate(files):
    x[i] = photo(file, size=(side, side))
  return Table(
      x, np.array(labels, np.int32), (), classes, (), np.array(test)
  )


CINIC10 = Source(
    cinic10, '10 classes', CINIC_HOW, 'MIT; ImageNet terms',
    Facts(
        180000, (27000,) * 10, 'https://datashare.ed.ac.uk/handle/10283/3192',
        (32, 32, 3), 90000, (('rows', 0),),
    ),
    files=('CINIC-10', 'cinic10'), parties=IMAGES,
)
TINY_IMAGENET = Source(
    tiny_imagenet, '200 classes', TINY_HOW, 'ImageNet terms',
    Facts(
        100000, (550,) * 200, 'http://cs231n.stanford.edu/tiny-imagenet-200.zip',
        (64, 64, 3), 10000, (('rows', 0),),
    ),
    files=('tiny-imagenet-200',), parties=IMAGES,
)
SVHN = Source(
    svhn, '10 classes', SVHN_HOW, 'non-commercial use',
    Facts(
        73257, (6692, 18960, 14734, 11379, 9981, 9266, 7704, 7614, 6705, 6254),
        'http://ufldl.stanford.edu/housenumbers', (32, 32, 3), 26032,
    ),
    files=('train_32x32.mat', 'SVHN', 'svhn'), parties=IMAGES,
)
