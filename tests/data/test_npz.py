"""NumPy archives: Keras's layout, anybody's own, and what is refused."""
import io
import warnings
import zipfile

import jax
import numpy as np
import pytest

from vfljax import data
from vfljax.data import npz

BFLOAT16 = np.zeros((4, 3), jax.numpy.bfloat16)


def write_npz(folder, name='mine', **arrays):
  file = folder / f'{name}.npz'
  np.savez(file, **arrays)
  return str(file)


def one_line(error):
  return '\n' not in str(error.value)


def images(n, shape=(28, 28), seed=0):
  rng = np.random.default_rng(seed)
  return rng.integers(0, 256, (n, *shape)).astype(np.uint8)


def test_mnist_and_cifar10_read_keras_layout(tmp_path):
  train, test = images(12), images(4, seed=1)
  y = np.arange(16).astype(np.uint8) % 10
  for name in ('mnist', 'fashion_mnist'):
    write_npz(
        tmp_path, name, x_train=train, y_train=y[:12],
        x_test=test, y_test=y[12:],
    )
    table = data.load(name, str(tmp_path))
    assert table.features.shape == (16, 28, 28, 1)
    assert table.features.dtype == np.uint8 and table.names == ()
    np.testing.assert_array_equal(table.features[:12, ..., 0], train)
    np.testing.assert_array_equal(table.features[12:, ..., 0], test)
    np.testing.assert_array_equal(table.labels, y)
    np.testing.assert_array_equal(table.test, np.arange(16) >= 12)
  assert table.classes[9] == 'Ankle boot'
  color = images(12, (32, 32, 3))
  path = write_npz(  # Keras has CIFAR-10's labels as a column.
      tmp_path, 'cifar10', x_train=color, y_train=y[:12, None],
      x_test=color[:4], y_test=y[12:, None],
  )
  table = data.load('cifar10', path)
  assert table.features.shape == (16, 32, 32, 3)
  assert table.labels.tolist() == y.tolist() and table.classes[8] == 'ship'
  with pytest.raises(ValueError, match=r'those of mnist are \(28, 28, 1\)'):
    data.load('mnist', path)


def test_npz_reads_tables_and_any_labels(tmp_path):
  x = np.arange(12).reshape(4, 3)
  table = data.load('npz', write_npz(
      tmp_path, x_train=x, y_train=np.array([7., 3., 7., 5.])
  ))
  assert table.features.dtype == np.float32 and table.test is None
  assert table.classes == ('3', '5', '7') and table.names == ('x0', 'x1', 'x2')
  assert table.labels.tolist() == [2, 0, 2, 1]
  y = np.array(['no', 'yes', 'no', 'no'])
  table = data.load('npz', write_npz(tmp_path, x_train=x / 7, y_train=y))
  assert table.classes == ('no', 'yes')
  assert table.labels.tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize('change, message', [
    (dict(y_train=None), 'lacks y_train; it has x_train, x_test, y_test'),
    (dict(y_test=None), 'lacks y_test'),
    (dict(x_test=None), 'lacks x_test'),
    (dict(x_test=np.zeros((2, 5))), 'x_train and x_test differ'),
    (dict(x_test=np.zeros((1, 3))), 'x_test has 1 rows, y_test 2'),
    (dict(x_train=np.full((4, 3), np.nan)), "'x0' in 4.* of 6 rows"),
    (dict(x_train=np.full((4, 3), 1e300)), "'x0' in 4.* of 6 rows"),
    (dict(y_train=np.eye(4)), r'one number a row'),
    (dict(y_train=np.array([np.nan, 0, 1, 1])), 'labels are NaN'),
    (dict(y_train=np.ones(4), y_test=np.ones(2)), "All 6 labels are '1'"),
    (dict(x_train=np.array([[None] * 3] * 4)), 'plain arrays'),
    (dict(y_train=np.array(['a', 'b'] * 2, object)), 'y_train.* Python object'),
    (dict(x_train=np.array([['a'] * 3] * 4)), 'features must be numbers'),
    (dict(x_train=np.zeros(4), x_test=np.zeros(2)), 'in 2, 3 or 4 dimensions'),
    (dict(x_train=BFLOAT16, x_test=BFLOAT16[:2]), 'may have been bfloat16'),
])
def test_npz_refuses(change, message, tmp_path):
  arrays = dict(
      x_train=np.ones((4, 3)), y_train=np.array([0., 1, 0, 1]),
      x_test=np.zeros((2, 3)), y_test=np.array([0., 1]),
  ) | change
  path = write_npz(
      tmp_path, **{k: v for k, v in arrays.items() if v is not None}
  )
  with pytest.raises(ValueError, match=message) as error:
    data.load('npz', path)
  assert one_line(error)


@pytest.mark.parametrize('keep', [0, 1, 100, 1000, -1, -40])
def test_a_truncated_archive_is_refused_in_one_line(keep, tmp_path):
  y = np.array([0, 1] * 10)
  path = write_npz(tmp_path, 'mnist', x_train=images(20), y_train=y)
  whole = (tmp_path / 'mnist.npz').read_bytes()
  (tmp_path / 'mnist.npz').write_bytes(whole[:keep])
  with pytest.raises(ValueError, match='is not a whole .npz archive') as error:
    data.load('mnist', path)
  assert one_line(error)


def test_a_damaged_or_single_array_is_refused(tmp_path):
  y = np.array([0, 1] * 10)
  path = write_npz(tmp_path, x_train=images(20), y_train=y)
  whole = bytearray((tmp_path / 'mine.npz').read_bytes())
  whole[5000] ^= 255  # Inside the pixels: only the checksum can tell.
  (tmp_path / 'mine.npz').write_bytes(whole)
  with pytest.raises(ValueError, match='is not a whole .npz archive'):
    data.load('npz', path)
  np.save(tmp_path / 'lone.npy', y)
  with pytest.raises(ValueError, match='is not a whole .npz archive'):
    data.load('npz', str(tmp_path / 'lone.npy'))
  assert npz.CIFAR10_CLASSES.index('cat') == 3


def forged(folder, header, body=b''):
  """An archive whose x_train has a header of its own; its checksums are right.
  """
  array = io.BytesIO()
  np.lib.format.write_array_header_1_0(array, header)
  labels = io.BytesIO()
  np.save(labels, np.arange(4) % 2)
  with zipfile.ZipFile(folder / 'mine.npz', 'w') as archive:
    archive.writestr('x_train.npy', array.getvalue() + body)
    archive.writestr('y_train.npy', labels.getvalue())
  return str(folder / 'mine.npz')


@pytest.mark.parametrize('shape', [
    (10**12, 1), (2**62, 4), (4, 4), (2, 3), (10**30, 10**30), (-1, 3),
])
def test_what_a_header_claims_is_what_is_there(shape, tmp_path):
  header = dict(descr='<f4', fortran_order=False, shape=shape)
  body = np.arange(12, dtype='f4').tobytes()
  with pytest.raises(ValueError, match='is not a whole .npz archive'):
    data.load('npz', forged(tmp_path, header, body))
  path = forged(tmp_path, header | dict(shape=(4, 3)), body)
  assert data.load('npz', path).features.shape == (4, 3)


def test_a_header_may_be_of_a_later_version(tmp_path):
  """As of arrays whose header is long."""
  x, array = np.arange(12, dtype='f4').reshape(4, 3), io.BytesIO()
  np.lib.format.write_array(array, x, version=(2, 0))
  path = forged(tmp_path, dict(descr='<f4', fortran_order=False, shape=(4, 3)))
  with zipfile.ZipFile(path) as archive:
    labels = archive.read('y_train.npy')
  with zipfile.ZipFile(path, 'w') as archive:
    archive.writestr('x_train.npy', array.getvalue())
    archive.writestr('y_train.npy', labels)
  np.testing.assert_array_equal(data.load('npz', path).features, x)


def test_an_encrypted_or_doubled_archive_is_refused(tmp_path):
  path = write_npz(tmp_path, x_train=np.ones((4, 3)), y_train=[0, 1, 0, 1])
  file = tmp_path / 'mine.npz'
  raw = file.read_bytes()
  for sign, at in ((b'PK\x03\x04', 6), (b'PK\x01\x02', 8)):
    for part in range(raw.count(sign)):
      start = [i for i in range(len(raw)) if raw.startswith(sign, i)][part]
      raw = raw[: start + at] + b'\1' + raw[start + at + 1:]
  file.write_bytes(raw)
  with pytest.raises(ValueError, match='is not a whole .npz archive'):
    data.load('npz', path)
  with zipfile.ZipFile(file, 'w') as archive, warnings.catch_warnings():
    warnings.simplefilter('ignore')
    for name in ('x_train.npy', 'y_train.npy', 'y_train.npy'):
      archive.writestr(name, b'')
  with pytest.raises(ValueError, match='is not a whole .npz archive'):
    data.load('npz', path)


@pytest.mark.parametrize('y, message', [
    (np.linspace(0, 1, 40), 'labels must be whole numbers or words'),
    (np.full(40, 1e300), 'labels must be whole numbers or words'),
    (np.arange(40), 'has 40 different values in 40 rows'),
    (np.arange(40).astype('M8[D]'), r'or words; got datetime64\[D\]'),
    (np.arange(40) * 1j, 'or words; got complex128'),
])
def test_labels_that_are_no_classes_are_refused(y, message, tmp_path):
  path = write_npz(tmp_path, x_train=np.ones((40, 3)), y_train=y)
  with pytest.raises(ValueError, match=message) as error:
    data.load('npz', path)
  assert one_line(error)


def test_class_numbers_in_half_precision_are_read_without_a_warning(tmp_path):
  y = np.array([0, 1] * 10, np.float16)
  file = write_npz(tmp_path, x_train=np.ones((20, 2), np.float32), y_train=y)
  with warnings.catch_warnings():
    warnings.simplefilter('error')
    table = data.load('npz', file)
  assert table.classes == ('0', '1')
  np.testing.assert_array_equal(table.labels, y)


def test_labels_of_a_known_set_are_numbers(tmp_path):
  y = np.array(['1', '2'] * 10)
  write_npz(tmp_path, 'mnist', x_train=images(20), y_train=y)
  with pytest.raises(ValueError, match='labels of mnist must be numbers; got'):
    data.load('mnist', str(tmp_path))


def test_whole_numbers_that_float32_makes_one_are_refused(tmp_path):
  x = np.zeros((40, 2), np.int64)
  x[:, 1] = 1_600_000_000 + np.arange(40)
  y = np.arange(40) % 2
  with pytest.raises(ValueError, match='column x1 has numbers so far from 0'):
    data.load('npz', write_npz(tmp_path, x_train=x, y_train=y))
  x[:, 1] -= x[0, 1]
  data.load('npz', write_npz(tmp_path, x_train=x, y_train=y))


def test_what_is_large_or_many_is_taken_by_choice(tmp_path):
  times = 1_600_000_000 + np.arange(40)
  x = np.stack([np.arange(40), times], axis=1)
  path = write_npz(tmp_path, x_train=x, y_train=np.arange(40) % 2)
  with pytest.raises(ValueError, match='--config.data.options=rounded=x1'):
    data.load('npz', path, rounded='x0')
  found = data.load('npz', path, rounded='x1').features
  np.testing.assert_array_equal(found, x.astype(np.float32))
  for odd in ('x2', 'y', 'x-1'):
    with pytest.raises(ValueError, match=f"names '{odd}'; there are x0 to x1"):
      data.load('npz', path, rounded=f'x1,{odd}')
  path = write_npz(tmp_path, x_train=x[:, :1], y_train=np.arange(40))
  with pytest.raises(ValueError, match='--config.data.options=categories=40'):
    data.load('npz', path, categories=39)
  assert len(data.load('npz', path, categories=40).classes) == 40
  path = write_npz(tmp_path, x_train=images(4), y_train=[0, 1, 0, 1])
  with pytest.raises(ValueError, match='no columns, but images'):
    data.load('npz', path, rounded='x0')


def test_channels_that_may_come_first_are_told(tmp_path):
  y = np.array([0, 1] * 10)
  path = write_npz(tmp_path, x_train=images(20, (3, 8, 8)), y_train=y)
  with pytest.warns(data.Recognised, match=r'\(3, 8, 8\), channels last'):
    assert data.load('npz', path).features.shape == (20, 3, 8, 8)
  for shape in ((8, 8, 3), (3, 3, 3), (8, 8, 9), (1, 9, 2), (2, 9, 9)):
    path = write_npz(tmp_path, x_train=images(20, shape), y_train=y)
    data.load('npz', path)


@pytest.mark.parametrize('words', [
    np.array([b'caf\xc3\xa9', b'bar']), np.array(['caf\xe9', 'bar ']),
])
def test_classes_are_words_without_marks_around_them(words, tmp_path):
  y = np.concatenate([words, np.char.strip(words)])
  path = write_npz(tmp_path, x_train=images(4), y_train=y)
  table = data.load('npz', path)
  assert table.classes == ('bar', 'caf\xe9')
  assert table.labels.tolist() == [1, 0, 1, 0]


def test_bytes_of_another_encoding_are_not_made_one_class(tmp_path):
  y = np.array([b'caf\xe9', b'caf\xe8'] * 2)
  path = write_npz(tmp_path, x_train=images(4), y_train=y)
  with pytest.raises(ValueError, match='bytes that are not UTF-8; save them'):
    data.load('npz', path)
