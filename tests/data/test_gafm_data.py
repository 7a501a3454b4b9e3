"""GAFM's data sets from small files in their raw layouts; Wide & Deep."""
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.gafm import criteo as criteo_config, isic as isic_config
from tests.raw_layouts import (
    TEXTS, write_criteo, write_imdb, write_isic, write_reviews,
)
from vfljax import data
from vfljax.data import criteo, reviews
from vfljax.nets.convolutional import convolutional
from vfljax.nets.wide_deep import wide_and_deep
from vfljax.runner.checking import checks
from vfljax.runner.cli.arguments import load_data


def test_reviews_are_one_hot_words(tmp_path):
  table = data.load('reviews', write_reviews(tmp_path), words=3)
  # film 3, good 3 (twice in one text), bad 2; then a and it's, once each.
  assert table.names == ('film', 'good', 'bad')
  np.testing.assert_array_equal(
      table.features, [[1, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1]]
  )
  np.testing.assert_array_equal(table.labels, [1, 0, 1, 0])


def test_words_are_chosen_on_training_rows():
  test = np.array([False, False, True, True])
  table = reviews.table(TEXTS, np.array([1, 0, 1, 0]), 2, test)
  assert table.names == ('good', 'bad')
  assert table.test is test


def test_sentences_of_a_label_make_longer_texts():
  texts = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
  labels, joined = reviews.join(np.array([1, 0, 1, 1, 0, 1, 1]), texts, 2)
  assert joined == ['b e', 'a c', 'd f']  # 'g' has nothing to go with.
  np.testing.assert_array_equal(labels, [0, 1, 1])


@pytest.mark.parametrize('count', [0, 3])
def test_texts_need_as_many_sentences(tmp_path, count):
  with pytest.raises(ValueError, match='sentences must be between 1 and 2'):
    data.load('reviews', write_reviews(tmp_path), sentences=count)


@pytest.mark.parametrize('lines, message', [
    (['1\tfine', 'no tab'], 'line 2'), (['2\tfine'], 'line 1'),
])
def test_reviews_refuse_other_lines(tmp_path, lines, message):
  with pytest.raises(ValueError, match=message):
    data.load('reviews', write_reviews(tmp_path, lines))


def test_reviews_and_imdb_say_how_to_get_them(tmp_path):
  with pytest.raises(FileNotFoundError, match='label TAB text'):
    data.load('reviews', str(tmp_path / 'none.tsv'))
  with pytest.raises(FileNotFoundError, match='imdb_reviews'):
    data.load('imdb')
  with pytest.raises(ValueError, match='words'):
    data.load('reviews', write_reviews(tmp_path), words=0)


def test_imdb_from_tfds(tmp_path):
  table = data.load('imdb', str(write_imdb(tmp_path)), words=3)
  assert table.names == ('film', 'good', 'bad')
  np.testing.assert_array_equal(table.labels, [1, 0, 1, 0, 1])
  np.testing.assert_array_equal(table.features[-1], [1, 1, 0])
  assert table.test is not None
  np.testing.assert_array_equal(table.test, [False] * 4 + [True])


def test_criteo_bins_counts_merges_rare_values_and_hashes(tmp_path):
  table = data.load('criteo', write_criteo(tmp_path), buckets=50)
  assert table.features.shape == (24, 39)
  column = dict(zip(table.names, table.features.T))
  assert (column['I2'] == criteo.UNKNOWN).all()
  assert (column['C1'][-2:] == criteo.RARE).all()
  assert len(set(column['C1'][:-2])) == 1 and column['C1'][0] >= 2
  # Counts 21..23 have floor(ln(v)^2) = 9, too few for a category of their own.
  assert math.floor(math.log(21) ** 2) == math.floor(math.log(23) ** 2) == 9
  assert (column['I1'][-3:] == criteo.RARE).all()
  assert table.features.max() < 50
  # Vocabularies of their own: 'cc' has another number in most columns.
  assert len({column[f'C{i}'][0] for i in range(2, 27)}) > 10
  few = data.load('criteo', str(tmp_path), rows=5, rare=0)
  assert len(few.labels) == 5 and (few.features != criteo.RARE).all()


@pytest.mark.parametrize('count, want', [
    (-1, -3), (0, -2), (2, 0), (3, 1), (20, 8), (1000, 47),
])
def test_criteo_counts(count, want):
  assert criteo.bin_count(count) == want


def test_a_small_count_of_criteo_shares_its_category_with_no_larger_one():
  small = [criteo.bin_count(v) for v in (-2, -1, 0, 1, 2)]
  assert len({*small}) == len(small)
  assert not {*small} & {criteo.bin_count(v) for v in range(3, 200)}


def test_criteo_refuses(tmp_path):
  (tmp_path / 'train.txt').write_text('0\t1\t2\n1\t2\t3\n')
  with pytest.raises(ValueError, match='40 tab-separated'):
    data.load('criteo', str(tmp_path))
  with pytest.raises(ValueError, match='buckets'):
    data.load('criteo', write_criteo(tmp_path), buckets=2)
  with pytest.raises(FileNotFoundError, match='kaggle'):
    data.load('criteo', str(tmp_path / 'gone'))


def test_isic_is_grey_and_small(tmp_path):
  table = data.load('isic', write_isic(tmp_path), size=16)
  assert table.features.shape == (4, 16, 16, 1)
  assert table.features.dtype == np.uint8
  for i, image in enumerate(table.features):
    np.testing.assert_allclose(image, 60 * i, atol=2)
  np.testing.assert_array_equal(table.labels, [0, 1, 0, 1])


def test_isic_names_are_as_they_stand_there(tmp_path):
  folder = write_isic(tmp_path)
  images = tmp_path / 'jpeg' / 'train'
  for old, new in (('ISIC_0', '1'), ('ISIC_1', '001'), ('ISIC_2', 'NA')):
    (images / f'{old}.jpg').rename(images / f'{new}.jpg')
  file = tmp_path / 'train.csv'
  file.write_text('image_name,target\n001,1\nNA,0\n')
  table = data.load('isic', folder, size=16)
  np.testing.assert_allclose(table.features.mean((1, 2, 3)), [60, 120], atol=2)
  file.write_text('image_name,target\n001,1\nNA,0\n001,0\n')
  with pytest.raises(ValueError, match=r'has images twice: 001\.'):
    data.load('isic', folder)


def test_isic_refuses(tmp_path):
  with pytest.raises(FileNotFoundError, match='kaggle'):
    data.load('isic', str(tmp_path))
  folder = write_isic(tmp_path)
  (tmp_path / 'train.csv').write_text('image_name,target\nISIC_9,1\nISIC_0,0\n')
  with pytest.raises(FileNotFoundError, match='ISIC_9'):
    data.load('isic', folder)
  (tmp_path / 'train.csv').write_text('image,target\nISIC_0,1\n')
  with pytest.raises(ValueError, match='image_name'):
    data.load('isic', folder)


def test_wide_and_deep_is_a_sum_of_both():
  net = wide_and_deep(5, 4, 1, embedding=3, final='sigmoid')
  x = np.float32([[0, 4], [2, 1], [9, -3]])
  params = jax.tree.map(np.asarray, jax.jit(net.init)(jax.random.key(0), x))
  number = np.array([[0, 4], [2, 1], [4, 0]])  # Clipped to 0..4.
  wide = np.asarray(params['wide']).reshape(2, 5)
  table = np.asarray(params['embedding']).reshape(2, 5, 3)
  linear = sum(wide[j, number[:, j]] for j in range(2)) + params['bias'][0]
  embedded = np.hstack([table[j, number[:, j]] for j in range(2)])
  first, last = (params['deep'][f'Dense_{i}']['Dense_0'] for i in range(2))
  hidden = np.maximum(embedded @ first['kernel'] + first['bias'], 0)
  z = linear[:, None] + hidden @ last['kernel'] + last['bias']
  np.testing.assert_allclose(
      jax.jit(net.apply)(params, x), 1 / (1 + np.exp(-z)), rtol=1e-5
  )
  with pytest.raises(ValueError, match='wide_and_deep'):
    wide_and_deep(0, 1)


def test_convolutions_without_padding_as_in_the_paper():
  """64 x 64 becomes 32 x 6 x 6 (appendix E.2)."""
  net = convolutional((6, 16, 32), 120, 84, 40, pools=3, same=False)
  shapes = jax.eval_shape(
      net.init, jax.random.key(0), jnp.zeros((2, 64, 64, 1))
  )
  first = shapes['dense']['Dense_0']['Dense_0']['kernel']
  assert first.shape == (32 * 6 * 6, 120)
  x = np.random.default_rng(0).normal(size=(2, 7, 6, 3)).astype(np.float32)
  net = convolutional((4,), pools=0, same=False, activation='linear')
  params = net.init(jax.random.key(1), jnp.asarray(x))
  kernel = np.asarray(params['conv'][0]['kernel']).reshape(3, 3, 3, 4)
  want = sum(
      x[:, i : i + 5, j : j + 4] @ kernel[i, j]
      for i in range(3) for j in range(3)
  ) + params['conv'][0]['bias']
  got = net.apply(params, jnp.asarray(x)).reshape(2, 5, 4, 4)
  np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('name', ['criteo', 'isic'])
def test_configs_fit_the_raw_files(tmp_path, name):
  """The paper's federations for both data sets, built and checked."""
  config = dict(criteo=criteo_config, isic=isic_config)[name].get_config()
  write = dict(criteo=write_criteo, isic=write_isic)[name]
  config.data.path = write(tmp_path)
  config.data.test, config.train.batch_size = 0.5, 2
  config.first_seed, config.seeds = 1, 1  # It has both classes on both sides.
  setting = checks.make(config, load_data(config.data))
  x = setting.samples.features[1][:2].astype(jnp.float32)
  bottom = setting.vfl.bottom(1)
  shape = jax.eval_shape(
      lambda x: bottom.apply(bottom.init(jax.random.key(0), x), x), x
  )
  assert shape.shape == (2, dict(criteo=1, isic=40)[name])


@pytest.mark.parametrize('count', ['inf', '1e400', 'nan', '-inf', 'x' * 999])
def test_criteo_names_the_line_of_a_count_that_is_none(tmp_path, count):
  path = write_criteo(tmp_path)
  file = tmp_path / 'train.txt'
  file.write_text(file.read_text().replace('1\t7\t', f'1\t{count}\t'))
  with pytest.raises(ValueError, match=r'txt: column I1, line 8: .*no finite'):
    data.load('criteo', path)


def test_words_of_other_alphabets_are_cut_only_with_a_warning(tmp_path):
  file = tmp_path / 'movie_reviews.tsv'
  lines = '1\tsch\xf6n f\xfcr die Gr\xf6\xdfe\n0\to\u0308de f\xfcr uns\n'
  file.write_text(lines * 9, 'utf-8')
  with pytest.warns(data.Recognised, match="options=unicode=True"):
    assert 'sch' in data.load('reviews', str(file)).names
  table = data.load('reviews', str(file), unicode=True)
  assert set(table.names) == {
      'sch\xf6n', 'f\xfcr', 'die', 'gr\xf6\xdfe', '\xf6de', 'uns'
  }
  own = table.features[:, table.names.index('\xf6de')]
  np.testing.assert_array_equal(own, [0, 1] * 9)
  # Vowels are signs of their own there.
  file.write_text('1\t\u0939\u093f\u0902\u0926\u0940 x_y\n0\tz\n', 'utf-8')
  table = data.load('reviews', str(file), unicode=True)
  assert '\u0939\u093f\u0902\u0926\u0940' in table.names
  assert {'x', 'y', 'z'} < {*table.names}
