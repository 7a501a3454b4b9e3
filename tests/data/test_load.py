"""Data sets from their files: layouts, options, and every refusal's message."""
import gzip

import numpy as np
import pytest
from sklearn import datasets
from sklearn.impute import SimpleImputer

from vfljax import data
from vfljax.data import spambase, texts
from vfljax.data.table import (
    Table, bare, check, counted, few_classes, impute, listing,
)


def tabular(x, y=(0, 1, 0), classes=('a', 'b'), **other):
  x = np.asarray(x, np.float32)
  columns = tuple(range(x.shape[1]))
  names = tuple(f'x{i}' for i in columns)
  return Table(x, np.array(y, np.int32), names, classes, columns, **other)


def one_line(error):
  return '\n' not in str(error.value)


# Tables.


@pytest.mark.parametrize('change, message', [
    (dict(features=np.zeros((0, 2), 'f4'), labels=np.zeros(0, 'i4')),
     'no rows'),
    (dict(features=np.zeros((3, 0), 'f4')), 'no feature columns'),
    (dict(labels=np.array([0, 1], 'i4')), '3 rows of features, 2 labels'),
    (dict(labels=np.array([1, 1, 1], 'i4')), "All 3 labels are 'b'"),
    (dict(labels=np.array([0, 1, 2], 'i4')), 'run from 0 to 2; with 2 classes'),
    (dict(labels=np.array([0, 1, -1], 'i4')), 'run from -1 to 1'),
    (dict(labels=np.array([0, 1, 0])), 'float32 and int64'),
    (dict(features=np.zeros((3, 2))), 'float64 and int32'),
    (dict(names=('x',)), '2 columns, 1 column names and 2 groups'),
    (dict(test=np.zeros(2, bool)), r'test mask has shape \(2,\)'),
    (dict(test=np.array([0, 1, 0], 'i4')), 'must be bool, .* got int32: type'),
    (dict(test=[True, False, False]), 'must be bool, .* got list'),
    (dict(test=np.zeros(3, bool)), 'mask has 0 of 3 rows, .*test=None'),
    (dict(test=np.ones(3, bool)), 'mask has 3 of 3 rows, .*test=None'),
    (dict(groups=(0, 'x')), "groups must be whole numbers, .* got 'x'"),
    (dict(features=np.zeros((3, 2, 2), 'f4')), 'got shapes'),
])
def test_check_refuses(change, message):
  table = tabular(np.zeros((3, 2)))
  assert check(table) is table
  with pytest.raises(ValueError, match=message) as error:
    check(table._replace(**change))
  assert one_line(error)


def test_check_names_the_columns_with_nan_or_infinity():
  x = [[0, 1, np.nan], [np.inf, 1, np.nan], [0, 1, 2]]
  with pytest.raises(ValueError, match="'x0' in 1, 'x2' in 2 of 3 rows"):
    check(tabular(x))
  pixels = np.zeros((3, 2, 2, 1), 'f4')
  pixels[1, 0] = np.nan
  table = Table(pixels, np.array([0, 1, 1], 'i4'), (), ('a', 'b'), ())
  with pytest.raises(ValueError, match='1 of 3 images'):
    check(table)


@pytest.mark.parametrize('far', [5e22, 1e-24, 3e37])
def test_columns_of_which_float32_has_no_variance_are_refused(far):
  # Scaled, they would be zeros, and nobody would hear of it.
  x = np.arange(9.0).reshape(3, 3) / 9
  check(tabular(x * 1e14))
  check(tabular(x * 1e-14))
  x[:, 1] *= far
  with pytest.raises(ValueError, match="too little, for float32: 'x1' over"):
    check(tabular(x))
  check(tabular(np.full((3, 2), far)))  # A constant is zeros anyway.


def test_impute_takes_the_median_of_the_training_rows():
  rng = np.random.default_rng(0)
  x = rng.normal(size=(40, 3)).astype('f4')
  x[rng.random(x.shape) < 0.3] = np.nan
  test = np.arange(40) >= 30
  got = impute(tabular(x, np.arange(40) % 2, test=test)).features
  want = SimpleImputer(strategy='median').fit(x[:30]).transform(x)
  np.testing.assert_allclose(got, want, rtol=1e-6)
  assert got.dtype == np.float32
  x[:30, 1] = np.nan
  with pytest.raises(ValueError, match="'x1' has no values to impute"):
    impute(tabular(x, np.arange(40) % 2, test=test))


def test_messages_count_and_list_in_few_words():
  assert [counted(n, 'seed') for n in (0, 1, 2)] == [
      '0 seeds', '1 seed', '2 seeds'
  ]
  assert listing('abcde') == 'a, b, c, d, e'
  assert listing('abcdef') == 'a, b, c, d, e and 1 more'
  assert listing('abcd', 2) == 'a, b and 2 more'
  assert listing(['two\nlines', 3, 201 * 'x']) == f'two lines, 3, {200 * "x"}'
  assert bare('\ufeff age\t\r\n') == 'age'


@pytest.mark.parametrize('most_allowed, rows, most', [
    (20, 10, 0), (20, 41, 0), (21, 42, 0), (50, 100, 0), (30, 10, 30),
])
def test_half_as_many_classes_as_rows_or_twenty_are_classes(
    most_allowed, rows, most
):
  """Or as many as were declared."""
  few_classes(most_allowed, rows, 'a', most)
  with pytest.raises(ValueError, match=rf'^a has {most_allowed + 1} different'):
    few_classes(most_allowed + 1, rows, 'a', most, 'say so')


# The registry.


def test_registry_is_described_and_its_options_are_known():
  for name, source in data.REGISTRY.items():
    said = (
        source.task, source.size, source.how, source.licence, source.parties
    )
    assert all(isinstance(text, str) and text for text in said), name
    assert '\n' not in source.how
  assert data.options_of('digits') == {}
  assert data.options_of('csv')['sep'] == ''  # Recognised.


@pytest.mark.parametrize('name, options, message', [
    (
        'breast', {}, 'known: breast_cancer, digits, wine, spambase, reviews, '
        'imdb, criteo, isic, mnist, fashion_mnist, cifar10'
    ),
    ('digits', dict(label='y'), "'digits' has no option 'label'; it has none"),
    ('digits', dict(path='x'), 'reads no file'),
    ('csv', dict(serp=1), 'sep, drop, positive, categories'),
    ('wine', dict(missing='maybe'), "'refuse' or 'impute'"),
])
def test_load_refuses_what_it_does_not_know(name, options, message):
  with pytest.raises(ValueError, match=message) as error:
    data.load(name, **options)
  assert one_line(error)


@pytest.mark.parametrize('name, hint', [
    ('spambase', 'archive.ics.uci.edu'), ('mnist', r'datasets.mnist.load_data'),
    ('fashion_mnist', 'fashion_mnist.npz'), ('cifar10', 'cifar10.npz'),
    ('npz', 'numpy.savez'), ('csv', 'label column'),
    ('parquet', 'label column'),
])
def test_a_file_that_is_not_there_says_how_to_get_it(name, hint, tmp_path):
  label = dict(label='y') if name in ('csv', 'parquet') else {}
  for path in ('', str(tmp_path / 'none'), str(tmp_path)):
    with pytest.raises(FileNotFoundError, match=hint) as error:
      data.load(name, path, **label)
    assert one_line(error)


# scikit-learn's.


def test_breast_cancer_counts_malignant_as_positive():
  table = data.load('breast_cancer')
  raw = dict(datasets.load_breast_cancer())
  malignant = list(raw['target_names']).index('malignant')
  assert table.classes == ('benign', 'malignant')
  np.testing.assert_array_equal(table.labels, raw['target'] == malignant)
  np.testing.assert_array_equal(table.features, raw['data'].astype('f4'))
  assert table.labels.sum() == 212 and table.names[0] == 'mean radius'
  assert table.groups == tuple(range(30)) and table.test is None


def test_digits_and_wine():
  digits = data.load('digits')
  raw = dict(datasets.load_digits())
  assert digits.features.shape == (1797, 8, 8, 1)
  assert digits.features.dtype == np.float32 and digits.features.max() == 1
  np.testing.assert_array_equal(digits.features[..., 0] * 16, raw['images'])
  np.testing.assert_array_equal(digits.labels, raw['target'])
  wine = data.load('wine')
  assert wine.features.shape == (178, 13)
  assert np.bincount(wine.labels).tolist() == [59, 71, 48]


# Spambase.


def spam_lines(rows=6, columns=57):
  rng = np.random.default_rng(0)
  x = rng.integers(0, 100, (rows, columns)) / 100
  return x, [
      ','.join(map(str, row)) + f',{i % 2}' for i, row in enumerate(x)
  ]


def test_spambase_reads_the_uci_format(tmp_path):
  x, lines = spam_lines()
  text = '\n'.join(lines) + '\n'
  (tmp_path / 'spambase.data').write_text(text)
  zipped = tmp_path / 'zipped.data.gz'
  zipped.write_bytes(gzip.compress(text.encode()))
  for path in (tmp_path, tmp_path / 'spambase.data', zipped):
    table = data.load('spambase', str(path))
    np.testing.assert_array_equal(table.features, x.astype('f4'))
    assert table.labels.tolist() == [0, 1, 0, 1, 0, 1]
    assert table.classes == ('ham', 'spam')
  assert len(set(spambase.NAMES)) == 57
  assert spambase.NAMES[47] == 'word_freq_conference'


@pytest.mark.parametrize('bad, message', [
    (lambda x: x.split(',', 1)[1], '57 columns; spambase.data has 57 feat'),
    (lambda x: 'many' + x, 'is not in the format'),
    (lambda x: x[:-1] + '7', '1 of 6 labels'),
    (lambda x: x[:-1], '1 of 6 labels'),
    (lambda x: 'nan,' + x.split(',', 1)[1], "'word_freq_make' in 1 of 6 rows"),
    (lambda x: 'inf,' + x.split(',', 1)[1], "'word_freq_make' in 1 of 6 rows"),
    (lambda x: ',' + x.split(',', 1)[1], "'word_freq_make' in 1 of 6 rows"),
])
def test_spambase_refuses_what_is_not_spambase(bad, message, tmp_path):
  _, lines = spam_lines()
  # One column too few must be so in every row: pandas pads single short rows.
  every = message.startswith('57 columns')
  lines = [bad(line) if every or i == 3 else line
           for i, line in enumerate(lines)]
  file = tmp_path / 'spambase.data'
  file.write_text('\n'.join(lines))
  with pytest.raises(ValueError, match=message) as error:
    data.load('spambase', str(file))
  assert one_line(error)


def test_spambase_imputes_and_refuses_an_empty_file(tmp_path):
  x, lines = spam_lines(7)
  lines[3] = ',' + lines[3].split(',', 1)[1]
  file = tmp_path / 'spambase.data'
  file.write_text('\n'.join(lines))
  table = data.load('spambase', str(file), missing='impute')
  median = np.median(np.delete(x[:, 0], 3)).astype('f4')
  assert table.features[3, 0] == median
  file.write_text('')
  with pytest.raises(ValueError, match='is not in the format'):
    data.load('spambase', str(file))


def test_the_last_rows_of_prepared_texts_are_the_official_test_set(monkeypatch):
  """Each part is drawn from alone, and where it is small, all of it is kept."""
  sets = {
      'train': [dict(text=f'a{i}', label=9 + i % 2) for i in range(8)],
      'test': [dict(text=f'b{i}', label=9) for i in range(3)],
  }
  monkeypatch.setattr(texts.tfds, 'rows', lambda path, part: sets[part])
  monkeypatch.setattr(texts, 'tokens', lambda said, *_: np.array([
      [ord(word[0]), int(word[1:])] for word in said
  ], np.float32))
  table = texts.prepared('imdb_reviews')('there', parts=1, length=2, rows=4)
  assert table.test is not None
  np.testing.assert_array_equal(table.test, [False] * 4 + [True] * 3)
  np.testing.assert_array_equal(table.features[:, 0] == ord('b'), table.test)
  assert table.classes == ('9', '10')  # By their numbers.
  np.testing.assert_array_equal(
      table.labels[:4], table.features[:4, 1] % 2
  )


def test_prepared_texts_need_a_folder_of_texts(monkeypatch):
  others = [dict(title='a', kind=1), dict(title='b', kind=0)]
  monkeypatch.setattr(texts.tfds, 'rows', lambda path, part: others)
  for name, message in (
      ('ag_news', "no 'description' and 'label'; it has title, kind"),
      ('imdb', 'The data set at there has no text and label'),
  ):
    with pytest.raises(ValueError, match=message):
      data.load(name, 'there')
    with pytest.raises(FileNotFoundError, match='No path to .*Prepare it once'):
      data.load(name)


def test_too_little_memory_is_told_in_a_line(monkeypatch):
  def load(path=''):
    raise MemoryError

  own = data.REGISTRY['wine']._replace(load=load)
  monkeypatch.setitem(data.REGISTRY, 'wine', own)
  with pytest.raises(ValueError, match='^wine needs more memory than there is'):
    data.load('wine')
  with pytest.raises(ValueError, match='^there needs more memory than there'):
    data.load('wine', 'there')
