"""Image sets in their official layouts, on a few images of our own."""
import numpy as np
from PIL import Image
import pytest
from scipy import io

from vfljax import data
from vfljax.data import files
from vfljax.data.npz import CIFAR10_CLASSES

GREY = 77


def picture(file, side, value=GREY, mode='RGB'):
  file.parent.mkdir(parents=True, exist_ok=True)
  Image.new(mode, (side, side), value if mode == 'L' else (value,) * 3).save(
      file, 'png' if file.suffix == '.png' else 'jpeg'
  )


@pytest.fixture
def cinic(tmp_path):
  for part, count in dict(train=2, valid=1, test=1).items():
    for k, name in enumerate(CIFAR10_CLASSES):
      for i in range(count):
        picture(tmp_path / part / name / f'{i}.png', 32, 10 * k + i)
  return tmp_path


def test_cinic10(cinic):
  table = data.load('cinic10', str(cinic))
  assert table.features.shape == (40, 32, 32, 3)
  assert table.test is not None
  assert table.test.sum() == 10
  np.testing.assert_array_equal(np.bincount(table.labels), [4] * 10)
  # What is in an image is its class and its number.
  np.testing.assert_array_equal(table.features[:, 0, 0, 0] // 10, table.labels)
  assert len(data.load('cinic10', str(cinic), rows=1).labels) == 30


def test_what_is_wrong_with_cinic10_is_said(cinic):
  with pytest.raises(FileNotFoundError, match='No path'):
    data.load('cinic10')
  file = cinic / 'valid' / 'frog' / '0.png'
  whole = file.read_bytes()
  file.write_bytes(whole[: len(whole) // 2])
  with pytest.raises(ValueError, match=r'frog.0\.png is not an image'):
    data.load('cinic10', str(cinic))
  picture(file, 16)
  with pytest.raises(ValueError, match='16 by 16'):
    data.load('cinic10', str(cinic))
  file.unlink()
  with pytest.raises(FileNotFoundError, match='has no'):
    data.load('cinic10', str(cinic))
  picture(file, 32)
  (cinic / 'test' / 'zebra').mkdir()
  with pytest.raises(ValueError, match='zebra'):
    data.load('cinic10', str(cinic))


@pytest.fixture
def tiny(tmp_path):
  names = ('n02', 'n01', *(f'n{i}' for i in range(100, 298)))
  (tmp_path / 'wnids.txt').write_text('\n'.join(names) + '\n')
  for name in names:
    for i in range(2 if name in names[:2] else 1):
      picture(tmp_path / 'train' / name / 'images' / f'{name}_{i}.JPEG', 64)
  picture(tmp_path / 'val' / 'images' / 'val_0.JPEG', 64, mode='L')
  (tmp_path / 'val' / 'val_annotations.txt').write_text(
      'val_0.JPEG\tn01\t0\t0\t62\t62\n'
  )
  return tmp_path


def test_tiny_imagenet(tiny):
  table = data.load('tiny_imagenet', str(tiny))
  assert table.features.shape == (203, 64, 64, 3)
  assert table.classes[:3] == ('n02', 'n01', 'n100')
  np.testing.assert_array_equal(table.labels, [0, 0, 1, 1, *range(2, 200), 1])
  np.testing.assert_array_equal(table.test, np.arange(203) == 202)
  assert (table.features == GREY).all()  # Grey images have three channels too.


def test_images_are_refused_by_their_bytes(tiny, monkeypatch):
  monkeypatch.setattr(files, 'memory', lambda: 203 * 64 * 64 * 3)
  data.load('tiny_imagenet', str(tiny))
  monkeypatch.setattr(files, 'memory', lambda: 203 * 64 * 64 * 3 - 1)
  with pytest.raises(ValueError, match='203 images would take'):
    data.load('tiny_imagenet', str(tiny))


def test_what_is_wrong_with_tiny_imagenet_is_said(tiny):
  (tiny / 'wnids.txt').write_text('n02\nn01\n')
  with pytest.raises(ValueError, match='200 classes; here are 2: n02, n01'):
    data.load('tiny_imagenet', str(tiny))
  notes = tiny / 'val' / 'val_annotations.txt'
  notes.write_text('val_0.JPEG\tn09\n')
  with pytest.raises(ValueError, match='line 1'):
    data.load('tiny_imagenet', str(tiny))
  notes.write_text('val_1.JPEG\tn01\n')
  with pytest.raises(FileNotFoundError, match=r'val_1\.JPEG'):
    data.load('tiny_imagenet', str(tiny))
  notes.write_text('val_0.JPEG\tn01\n')
  file = tiny / 'val' / 'images' / 'val_0.JPEG'
  file.write_bytes(file.read_bytes()[:40])
  with pytest.raises(ValueError, match='is not an image'):
    data.load('tiny_imagenet', str(tiny))
  (tiny / 'wnids.txt').unlink()
  with pytest.raises(FileNotFoundError, match=r'wnids\.txt'):
    data.load('tiny_imagenet', str(tiny))


def digits(folder, labels=(1, 10, 3), **changed):
  x = np.arange(32 * 32 * 3 * 3, dtype=np.uint8).reshape(32, 32, 3, 3)
  for part in ('train', 'test'):
    found = dict(X=x, y=np.array(labels, np.uint8)[:, None]) | changed
    io.savemat(folder / f'{part}_32x32.mat', found)
  return x


def test_svhn(tmp_path):
  x = digits(tmp_path)
  table = data.load('svhn', str(tmp_path))
  np.testing.assert_array_equal(table.labels, [1, 0, 3, 1, 0, 3])
  np.testing.assert_array_equal(table.features[4], x[..., 1])
  np.testing.assert_array_equal(table.test, [False] * 3 + [True] * 3)


def test_what_is_wrong_with_svhn_is_said(tmp_path):
  digits(tmp_path, (1, 11, 3))
  with pytest.raises(ValueError, match=r'1\.\.10'):
    data.load('svhn', str(tmp_path))
  digits(tmp_path, X=np.zeros((3, 32, 32, 3), np.uint8))
  with pytest.raises(ValueError, match='expected X'):
    data.load('svhn', str(tmp_path))
  digits(tmp_path)
  file = tmp_path / 'test_32x32.mat'
  file.write_bytes(file.read_bytes()[:500])
  with pytest.raises(ValueError, match='cannot be read'):
    data.load('svhn', str(tmp_path))
  file.unlink()
  with pytest.raises(FileNotFoundError, match='test_32x32'):
    data.load('svhn', str(tmp_path))
