"""TFDS data sets, written here in the array_record layout and read back.

The files are made with TFDS's own serialisation and array_record's writer:
what a prepared data set has on disk, without TensorFlow.
"""
import io
import json
import sys

import numpy as np
from PIL import Image
import pytest

from array_record.python.array_record_module import ArrayRecordWriter
from tensorflow_datasets import features as tf
from vfljax import data


def png(pixels):
  file = io.BytesIO()
  Image.fromarray(pixels).save(file, 'png')
  file.seek(0)
  return file


def store(root, name, features, splits, supervised=(), version='1.0.0'):
  """Writes one data set; returns its folder."""
  folder = root / name / version
  folder.mkdir(parents=True)
  infos = []
  for part, rows in splits.items():
    file = folder / f'{name}-{part}.array_record-00000-of-00001'
    writer = ArrayRecordWriter(str(file), 'group_size:1')
    for row in rows:
      writer.write(features.serialize_example(features.encode_example(row)))
    writer.close()
    infos.append(dict(
        name=part, shardLengths=[str(len(rows))], numBytes='1',
        filepathTemplate='{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}',
    ))
  keys = [dict(featureKey=key) for key in supervised]
  info = dict(
      name=name, version=version, fileFormat='array_record', splits=infos,
  )
  if keys:
    info |= dict(supervisedKeys=dict(tuple=dict(items=keys)))
  (folder / 'dataset_info.json').write_text(json.dumps(info))
  features.save_config(str(folder))
  return folder.parent


def picture(i, size=4):
  return np.full((size, size), 10 * i, np.uint8)


def pictures(root, version='1.0.0', sizes=(4,)):
  features = tf.FeaturesDict({
      'image': tf.Image(shape=(None, None, 1)),
      'kind': tf.ClassLabel(names=['cat', 'dog', 'cow']),
  })
  row = lambda i: {
      'image': png(picture(i, sizes[i % len(sizes)])), 'kind': i % 2
  }
  splits = {'train': [row(i) for i in range(7)],
            'test': [row(i) for i in range(7, 10)]}
  return store(root, 'pets', features, splits, ('image', 'kind'), version)


def test_images_with_the_official_test_set(tmp_path):
  folder = pictures(tmp_path)
  want = np.stack([picture(i) for i in range(10)])[..., None]
  for options in (
      dict(path=str(folder)), dict(path=str(folder / '1.0.0')),
      dict(dataset='pets', data_dir=str(tmp_path)),
      dict(dataset='pets:1.0.0', data_dir=str(tmp_path)),
  ):
    table = data.load('tfds', **options)
    np.testing.assert_array_equal(table.features, want)
    assert table.features.dtype == np.uint8 and table.names == ()
    assert table.labels.tolist() == [i % 2 for i in range(10)]
    assert table.classes == ('cat', 'dog', 'cow')
    np.testing.assert_array_equal(table.test, np.arange(10) >= 7)
  assert 'tensorflow' not in sys.modules


def test_a_split_and_the_newest_version(tmp_path):
  folder = pictures(tmp_path)
  table = data.load('tfds', str(folder), split='train[2:5]')
  assert table.labels.tolist() == [0, 1, 0] and table.test is None
  newer = folder / '10.0.0'
  pictures(tmp_path / 'other', '10.0.0', sizes=(6,)).joinpath(
      '10.0.0').rename(newer)
  pictures(tmp_path / 'third', '9.0.0', sizes=(5,)).joinpath(
      '9.0.0').rename(folder / '9.0.0')
  assert data.load('tfds', str(folder)).features.shape == (10, 6, 6, 1)
  with pytest.raises(ValueError, match="split 'nope': Unknown split"):
    data.load('tfds', str(folder), split='nope')


def people(root, deck=0):
  features = tf.FeaturesDict({
      'age': np.float32, 'member': np.bool_, 'city': tf.Text(),
      'deck': tf.ClassLabel(names=['upper', 'lower']),
      'size': tf.Tensor(shape=(2,), dtype=np.float32),
      'home': {'rooms': np.int64}, 'won': np.int64,
  })
  rows = [
      dict(age=20. + i, member=i > 1, city=('Rome', 'Oslo')[i % 2],
           deck=i % 2 if i else deck,
           size=np.array([i, -i], 'f4'), home=dict(rooms=i + 1), won=i // 2 * 5)
      for i in range(4)
  ]
  return store(root, 'people', features, {'train': rows})


def test_tabular_features(tmp_path):
  table = data.load('tfds', str(people(tmp_path)), 'won')
  columns = dict(zip(table.names, table.features.T.tolist()))
  assert columns == {
      'age': [20, 21, 22, 23], 'member': [0, 0, 1, 1],
      'city=Oslo': [0, 1, 0, 1], 'city=Rome': [1, 0, 1, 0],
      'deck=lower': [0, 1, 0, 1], 'deck=upper': [1, 0, 1, 0],
      'size[0]': [0, 1, 2, 3], 'size[1]': [0, -1, -2, -3],
      'home/rooms': [1, 2, 3, 4],
  }
  groups = dict(zip(table.names, table.groups))
  assert groups['city=Oslo'] == groups['city=Rome']
  assert groups['deck=lower'] == groups['deck=upper'] != groups['city=Oslo']
  assert table.classes == ('0', '5') and table.labels.tolist() == [0, 0, 1, 1]


def test_an_unknown_class_is_a_missing_value(tmp_path):
  folder = str(people(tmp_path, deck=-1))  # TFDS's mark for 'not known'.
  with pytest.raises(ValueError, match="'deck' in 1 of 4 rows"):
    data.load('tfds', folder, 'won')
  table = data.load('tfds', folder, 'won', missing='impute')
  columns = dict(zip(table.names, table.features.T.tolist()))
  assert columns['deck=(missing)'] == [1, 0, 0, 0]
  assert columns['deck=upper'] == [0, 0, 1, 0]


def test_tfds_refuses(tmp_path, monkeypatch):
  folder = pictures(tmp_path, sizes=(4, 5))
  with pytest.raises(ValueError, match='2 different shapes'):
    data.load('tfds', str(folder))
  with pytest.raises(ValueError, match="no label 'x'; the features are image"):
    data.load('tfds', str(folder), 'x')
  with pytest.raises(ValueError, match='either the folder .* or its name'):
    data.load('tfds')
  for options in (
      dict(path=str(tmp_path / 'none')),
      dict(dataset='mnist', data_dir=str(tmp_path)),
  ):
    with pytest.raises(FileNotFoundError, match='_and_prepare') as error:
      data.load('tfds', **options)
    assert '\n' not in str(error.value)
  people(tmp_path)
  with pytest.raises(ValueError, match='several data sets'):
    data.load('tfds', str(tmp_path))
  info = folder / '1.0.0' / 'dataset_info.json'
  info.write_text(info.read_text().replace('array_record', 'tfrecord'))
  with pytest.raises(FileNotFoundError, match='not as array_record') as error:
    data.load('tfds', str(folder))
  assert '\n' not in str(error.value)
  monkeypatch.setitem(sys.modules, 'tensorflow_datasets.core', None)
  with pytest.raises(ValueError, match=r"pip install 'vfljax\[data\]'"):
    data.load('tfds', str(folder))


def odd(**kinds):
  """Rows of features of these kinds, with a label `y`."""
  values = dict(
      a=lambda: png(picture(1)), b=lambda: png(picture(2)), deck=lambda: 2,
      grid=lambda: np.ones((2, 2), 'f4'), size=lambda: np.ones(2, 'f4'),
  )
  rows = [{k: values[k]() for k in kinds} | dict(y=i % 2) for i in range(4)]
  return tf.FeaturesDict(kinds | dict(y=np.int64)), rows


IMAGE = tf.Image(shape=(None, None, 1))
THREE = tf.ClassLabel(names=['upper', 'lower', 'roof'])
PAIR = tf.Tensor(shape=(2,), dtype=np.float32)


def test_a_test_set_without_rows_is_none(tmp_path):
  features, rows = odd(size=PAIR)
  folder = str(store(tmp_path, 'odd', features, {'train': rows, 'test': []}))
  table = data.load('tfds', folder, 'y')
  assert table.features.shape == (4, 2) and table.test is None
  with pytest.raises(ValueError, match="odd: the split 'test' has no rows"):
    data.load('tfds', folder, 'y', split='test')


@pytest.mark.parametrize('kinds, label, options, message', [
    (dict(a=IMAGE, b=IMAGE), 'y', {}, 'several images: a, b'),
    (dict(grid=tf.Tensor(shape=(2, 2), dtype=np.float32)), 'y', {},
     "'grid' is neither an image, a value nor a vector of fixed"),
    (dict(size=PAIR), 'size', {}, "label 'size' is not one value a row"),
    (dict(size=PAIR), 'y', dict(split='train[:0]'), r"train.:0.' has no rows"),
    (dict(deck=THREE, size=PAIR), 'y', {}, "'deck' has a class beyond its 2"),
])
def test_examples_of_other_kinds_are_refused(
    kinds, label, options, message, tmp_path
):
  features, rows = odd(**kinds)
  folder = store(tmp_path, 'odd', features, {'train': rows})
  if 'deck' in kinds:  # Which the names, a file of their own, do not have.
    names, = folder.rglob('deck.labels.txt')
    names.write_text('upper\nlower\n')
  with pytest.raises(ValueError, match=message) as error:
    data.load('tfds', str(folder), label, **options)
  assert '\n' not in str(error.value)
