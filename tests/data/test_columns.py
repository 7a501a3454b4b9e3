"""Columns that would be read as something else than they are."""
import numpy as np
import pandas as pd
import pytest

from vfljax import data
from vfljax.data import columns, labels


def load(folder, content, **given):
  file = folder / 'mine.csv'
  file.write_text(content)
  return data.load('csv', str(file), 'y', **given)


def rows(values, head='x,y'):
  return f'{head}\n' + ''.join(f'{v},{i % 2}\n' for i, v in enumerate(values))


def test_a_stray_word_among_numbers_is_named(tmp_path):
  numbers = [str(i) for i in range(40)]
  numbers[17] = '0x1F'
  with pytest.raises(ValueError, match=(
      r"mine\.csv: Column 'x' has numbers, except in 1 of 40 cells; the first"
      " is '0x1F' in row 18.*options=text=x"
  )):
    load(tmp_path, rows(numbers))
  meant = load(tmp_path, rows(numbers), text='x')
  assert meant.features.shape == (40, 40) and meant.groups == (0,) * 40
  # Where one cell in ten or more is a word, the words are meant.
  few = ['1', '2', '3', '3+'] * 5
  assert load(tmp_path, rows(few)).names == ('x=1', 'x=2', 'x=3', 'x=3+')


def test_a_minus_sign_of_its_own_is_a_minus(tmp_path):
  """Each of these numbers would be a category, as many are no numbers."""
  found = load(tmp_path, rows(['\u22121.5', '2', '\u22123', '4'] * 5))
  assert found.names == ('x',)
  assert found.features[:4, 0].tolist() == [-1.5, 2, -3, 4]


def test_a_stray_word_among_labels_is_named(tmp_path):
  text = 'x,y\n' + ''.join(f'{i},{i % 2}\n' for i in range(20)) + '7,O\n'
  with pytest.raises(ValueError, match="'y' has numbers, except in 1 .*'O' in"):
    load(tmp_path, text)
  assert load(tmp_path, text, text='y').classes == ('0', '1', 'O')


@pytest.mark.parametrize('word', ['?', '', ' N/A', 'NaN'])
@pytest.mark.parametrize('kind', [list, pd.Categorical])
def test_a_word_for_no_label_is_no_class(word, kind):
  """One '?' made three classes of 'yes' and 'no', without a word."""
  column = pd.Series(kind(['yes', 'no'] * 9 + [word]), name='x')
  with pytest.raises(ValueError, match="'x' has '.*' in 1 of 19 rows. If that"):
    labels.labels(column)
  assert labels.labels(column, text=True)[1] == (*sorted([word, 'no', 'yes']),)
  assert labels.labels(pd.Series(['+', '-', 'none']))[1] == ('+', '-', 'none')


@pytest.mark.parametrize('kind', [str, pd.Categorical])
def test_one_word_in_two_spellings_is_asked_about(kind):
  words = ['yes', 'no', 'Yes', ' no', 'maybe'] * 9
  column = pd.Series(words if kind is str else kind(words), name='x')
  with pytest.raises(ValueError, match=(
      "Column 'x' has values that differ only in capitals or blanks: ' no',"
      " 'no', 'Yes', 'yes'.*options=text=x"
  )):
    columns.features(column.to_frame())
  with pytest.raises(ValueError, match="Label column 'x' has values that dif"):
    labels.labels(column)
  assert len(labels.labels(column, text=True)[1]) == 5
  assert columns.features(column.to_frame(), text=('x',))[0].shape == (45, 5)


def test_a_name_of_each_row_is_no_category(tmp_path):
  names = [f'P{i}' for i in range(60)]
  with pytest.raises(ValueError, match=(
      "Text column 'x' has 60 different values in 60 rows: it seems to name"
      " each row.*options=drop=x; or, .*'text=x;categories=100'"
  )):
    load(tmp_path, rows(names))
  assert load(tmp_path, rows(names), text='x').features.shape == (60, 60)
  assert load(tmp_path, rows(names[:20])).features.shape == (20, 20)


@pytest.mark.parametrize('values', [
    range(18, 60), [1e9 * i for i in range(30)],
])
def test_whole_numbers_of_many_values_are_no_classes(values, tmp_path):
  text = 'x,y\n' + ''.join(f'{i}.5,{v}\n' for i, v in enumerate([*values] * 9))
  with pytest.raises(ValueError, match=(
      "'y' has .. different whole numbers. If they are measure.*options=text=y"
  )):
    load(tmp_path, text)
  assert len(load(tmp_path, text, text='y').classes) == len(values)


def test_what_is_too_large_for_float32_is_not_said_to_be_whole(tmp_path):
  text = rows([f'{1.5 + i}e40' for i in range(9)])
  with pytest.raises(ValueError, match="no finite float32: 'x' in 9 of 9"):
    load(tmp_path, text)


def test_numbers_can_be_words(tmp_path):
  table = load(tmp_path, rows(['01', '2', '01', '2']), text=('x',))
  assert table.names == ('x=01', 'x=2')


def test_a_declared_category_may_mix_words_and_numbers():
  words = ['1', '2'] * 10 + ['none']
  x, names, _ = columns.features(pd.DataFrame(dict(x=pd.Categorical(words))))
  assert names == ('x=1', 'x=2', 'x=none') and x.sum() == 21


def test_whole_numbers_that_float32_makes_one_are_refused(tmp_path):
  times = [1_600_000_000 + i for i in range(40)]
  with pytest.raises(ValueError, match=(
      "Column 'x' has numbers so far from 0.*Subtract its smallest value"
  )):
    load(tmp_path, rows(times))
  load(tmp_path, rows([t - times[0] for t in times]))
  with pytest.raises(ValueError, match='--config.data.options=rounded=x'):
    load(tmp_path, rows(times))
  found = load(tmp_path, rows(times), rounded='x').features[:, 0]
  np.testing.assert_array_equal(found, np.float32(times))
  with pytest.raises(ValueError, match="no column 'z'"):
    load(tmp_path, rows(times), rounded='z')
  with pytest.raises(ValueError, match='drop names a column that text'):
    load(tmp_path, rows(times), rounded='x', drop='x')
  # Numbers that large stay apart if they are far from each other.
  far = load(tmp_path, rows([1000 * t for t in range(2**20, 2**20 + 40)]))
  assert len(np.unique(far.features)) == 40
  huge = [2**62 + i for i in range(8)]  # One number even in 64 bits.
  with pytest.raises(ValueError, match="'x' has numbers so far from 0"):
    load(tmp_path, rows(huge))
  assert load(tmp_path, rows(huge), rounded='x').features.shape == (8, 1)


def test_labels_that_become_one_in_64_bits_are_refused(tmp_path):
  text = 'x,y\n' + ''.join(f'{i},{2**62 + i % 2}\n' for i in range(20))
  with pytest.raises(ValueError, match="'y' has whole numbers beyond 2.53"):
    load(tmp_path, text)


def test_a_label_of_its_own_for_most_rows_is_no_class(tmp_path):
  text = 'x,y\n' + ''.join(f'{i},n{i}\n' for i in range(50))
  with pytest.raises(ValueError, match=(
      "'y' has 50 different values in 50.*If it is a class: "
      "--config.data.options='text=y;categories=50'"
  )):
    load(tmp_path, text)
  assert len(load(tmp_path, text, text='y', categories=50).classes) == 50
  for more in (dict(text='y', categories=49), dict(categories=50)):
    with pytest.raises(ValueError, match='different values'):
      load(tmp_path, text, **more)


@pytest.mark.parametrize('digits', [15, 25, 400, 5000])
def test_numbers_of_many_digits_are_refused_or_read(digits, tmp_path):
  text = rows(['1' * digits, *range(30)])
  if digits == 15:
    assert load(tmp_path, text).features.max() == np.float32('1' * 15)
    return
  with pytest.raises(ValueError, match=r'mine\.csv') as error:
    load(tmp_path, text)
  assert len(str(error.value)) < 700 and '\n' not in str(error.value)


EVERY = 'every whole number from {} to {} once'
ANOTHER = 'another whole number in each row'


@pytest.mark.parametrize('values, warned', [
    (range(7, 207), EVERY.format(7, 206)),
    ([*range(100, 200), *range(100)], EVERY.format(0, 199)),
    # Of a join, which has not all customers; 1990 is less than 200^2 / 20.
    ([*range(199), 200], ANOTHER), (range(0, 2000, 10), ANOTHER),
    # So few out of so many numbers may be measurements.
    ([*range(199), 2000], ''), ([0, 0, *range(2, 200)], ''), (range(50), ''),
    (np.arange(200) + 0.5, ''),
])
def test_columns_that_number_the_rows_are_warned_of(values, warned, tmp_path):
  """As customers' numbers do; all warnings but the awaited one are errors."""
  text = rows(values)
  if not warned:
    assert load(tmp_path, text).names == ('x',)
    return
  with pytest.warns(data.Recognised, match=(
      f"'x' has {warned}, like numbers.*--config.data.options=drop=x$"
  )):
    table = load(tmp_path, text)
  assert table.names == ('x',)  # It stays: it may be meant.


@pytest.mark.parametrize('name', ['csv', 'parquet'])
def test_a_folder_of_images_is_led_to_npz(name, tmp_path):
  with pytest.raises(FileNotFoundError, match=(
      'is a folder, not a file.*images is not read.*data.name=npz$'
  )):
    data.load(name, str(tmp_path), label='y')
  with pytest.raises(FileNotFoundError, match='label=target$'):
    data.load(name, str(tmp_path / 'no'), label='y')


@pytest.mark.parametrize('start, step, fits', [
    (1.6e9, 0.37, False), (1.6e9, 1e4 / 3, True), (5.4e6, 0.003, False),
    (1.25, 1e-9, False), (1e9 / 3, 0, True), (0.1, 0.01, True),
    (0.3, 2e-16, True),
])
def test_fractions_that_float32_makes_one_are_refused(start, step, fits):
  frame = pd.DataFrame(dict(x=start + step * np.arange(200), y=[0.5] * 200))
  if fits:
    columns.features(frame)
    return
  assert len(np.unique(frame.x)) == 200
  with pytest.raises(ValueError, match="'x' has numbers so far from 0"):
    columns.features(frame, rounded=())
  columns.features(frame, rounded='x')


@pytest.mark.parametrize('x', [
    np.where(np.arange(200) % 2, np.nextafter(np.float32(100), 200), 100),
    np.where(np.arange(200) == 7, 37.001, 37.0),
], ids=['a step apart', 'one is another'])
def test_what_float32_holds_is_not_refused(x):
  frame = pd.DataFrame(dict(x=np.asarray(x, np.float64)))
  assert len(np.unique(columns.features(frame, rounded=())[0])) == 2


@pytest.mark.parametrize('values, classes', [
    ([9, 10], ('9', '10')), ([2.5, 10.5], ('2.5', '10.5')),
    ([True, False], ('False', 'True')), (['b', 'a'], ('a', 'b')),
])
def test_numbers_that_are_declared_categories_stay_in_order(values, classes):
  """The last class is the positive one; as words, 9 would come after 10."""
  column = pd.Series(pd.Categorical(values * 20), name='y')
  found, names = labels.labels(column)
  assert names == classes
  np.testing.assert_array_equal(
      found, [classes.index(str(v)) for v in values * 20]
  )


def test_categories_of_many_numbers_are_classes():
  column = pd.Series(pd.Categorical([*range(30)] * 20), name='y')
  assert len(labels.labels(column)[1]) == 30


def test_a_number_that_is_too_large_is_named_with_its_row():
  """The first that is: those before it are numbers of 64 bits."""
  column = pd.Series([1, 2.5, 10**400, 3], name='x', dtype=object)
  with pytest.raises(ValueError, match=r"'x', row 3: 1000.*no number of 64 b"):
    columns.numbers(column)


@pytest.mark.parametrize('names', ['xxy', 'xyx'])
def test_of_equal_names_the_first_column_is_meant(names):
  frame = pd.DataFrame([range(3)], columns=list(names))
  assert columns.column_of(frame, 'x').tolist() == [0]
  assert columns.column_of(frame, 'y').tolist() == [names.index('y')]
