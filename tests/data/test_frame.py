"""CSV and Parquet files: columns of every kind, labels, and every refusal."""
from typing import Any

import numpy as np
import pandas as pd
import pytest

from vfljax import data
from vfljax.data import files, frame, split


def write_csv(folder, text):
  file = folder / 'mine.csv'
  file.write_text(text)
  return str(file)


def one_line(error):
  return '\n' not in str(error.value)


MIXED = """age,city,member,pay,y
30,Rome,True,1.5,yes
40,Oslo,False,2.5,no
50,Rome,True,-1e3,no
60,Bern,False,0,yes
"""


def test_csv_one_hot_booleans_and_numbers(tmp_path):
  table = data.load('csv', write_csv(tmp_path, MIXED), 'y')
  assert table.names == (
      'age', 'city=Bern', 'city=Oslo', 'city=Rome', 'member', 'pay'
  )
  assert table.groups == (0, 1, 1, 1, 2, 3)
  np.testing.assert_array_equal(table.features, np.array([
      [30, 0, 0, 1, 1, 1.5], [40, 0, 1, 0, 0, 2.5],
      [50, 0, 0, 1, 1, -1000], [60, 1, 0, 0, 0, 0],
  ], 'f4'))
  assert table.classes == ('no', 'yes')
  assert table.labels.tolist() == [1, 0, 0, 1]
  assert table.features.flags.c_contiguous


def test_csv_options(tmp_path):
  path = write_csv(tmp_path, MIXED)
  table = data.load('csv', path, 'y', positive='no', drop='city, member')
  assert table.classes == ('yes', 'no')
  assert table.labels.tolist() == [0, 1, 1, 0]
  assert table.names == ('age', 'pay')
  path = write_csv(tmp_path, MIXED.replace(',', ';'))
  assert data.load('csv', path, 'y', sep=';').features.shape == (4, 6)
  with pytest.raises(ValueError, match='single column when split at .,...*sep'):
    data.load('csv', path, 'y', sep=',')
  path = write_csv(tmp_path, MIXED)
  with pytest.raises(ValueError, match='split at .;...*sep=comma'):
    data.load('csv', path, 'y', sep=';')
  with pytest.raises(ValueError, match='drop names the label:'):
    data.load('csv', path, 'y', drop='y')


def test_one_hot_order_does_not_depend_on_the_rows(tmp_path):
  head, *rows = MIXED.strip().splitlines()
  back = '\n'.join([head, *rows[::-1]])
  a = data.load('csv', write_csv(tmp_path, MIXED), 'y')
  b = data.load('csv', write_csv(tmp_path, back), 'y')
  assert a.names == b.names and a.classes == b.classes
  np.testing.assert_array_equal(a.features, b.features[::-1])


@pytest.mark.parametrize('column, classes, labels', [
    ([10, 2, 10], ('2', '10'), [1, 0, 1]),  # Numeric, not alphabetical, order.
    ([1.0, 0.0, 1.0], ('0', '1'), [1, 0, 1]),
    ([True, False, True], ('False', 'True'), [1, 0, 1]),
    (['b', 'a', 'c'], ('a', 'b', 'c'), [1, 0, 2]),
    ([0.5, 0.25, 0.5], ('0.25', '0.5'), [1, 0, 1]),
    # Not 0.10000000149011612, which stands there.
    (np.float32([0.1, 0.7, 0.1]), ('0.1', '0.7'), [0, 1, 0]),
    (['1', 'x', '1'], ('1', 'x'), [0, 1, 0]),
])
def test_labels_of_every_kind(column, classes, labels, tmp_path):
  file = tmp_path / 'mine.parquet'
  pd.DataFrame(dict(x=[1, 2, 3], y=column)).to_parquet(file)
  table = data.load('parquet', str(file), 'y')
  assert table.classes == classes and table.labels.tolist() == labels


GAPS = """age,city,member,y
30,Rome,True,1
,,False,0
50,Rome,,0
90,Bern,False,1
"""


def test_missing_values_are_refused_by_name_and_number(tmp_path):
  path = write_csv(tmp_path, GAPS)
  with pytest.raises(ValueError, match=(
      "'age' in 1, 'city' in 1, 'member' in 1 of 4 rows.*data.missing=impute"
  )) as error:
    data.load('csv', path, 'y')
  assert one_line(error)


def test_missing_values_are_imputed_by_choice(tmp_path):
  table = data.load('csv', write_csv(tmp_path, GAPS), 'y', missing='impute')
  assert table.names == (
      'age', 'city=(missing)', 'city=Bern', 'city=Rome',
      'member=(missing)', 'member=False', 'member=True',
  )
  assert table.groups == (0, 1, 1, 1, 2, 2, 2)
  np.testing.assert_array_equal(table.features, np.array([
      [30, 0, 0, 1, 0, 0, 1], [50, 1, 0, 0, 0, 1, 0],
      [50, 0, 0, 1, 1, 0, 0], [90, 0, 1, 0, 0, 1, 0],
  ], 'f4'))


def test_parquet_nullable_and_categorical_columns(tmp_path):
  frame = pd.DataFrame(dict(
      n=pd.array([1, None, 5], 'Int64'),
      size=pd.Categorical(
          ['small', 'large', 'small'], ['small', 'large', 'none']
      ),
      y=[0, 1, 1],
  ))
  file = tmp_path / 'mine.parquet'
  frame.to_parquet(file)
  with pytest.raises(ValueError, match="'n' in 1 of 3 rows"):
    data.load('parquet', str(file), 'y')
  table = data.load('parquet', str(file), 'y', missing='impute')
  assert table.names == ('n', 'size=large', 'size=small')
  np.testing.assert_array_equal(
      table.features, [[1, 0, 1], [3, 1, 0], [5, 0, 1]]
  )


@pytest.mark.parametrize('text, label, message', [
    (MIXED, '', 'Which column is the label. .* columns are age, city, member'),
    (MIXED, 'Age2', "no column 'Age2'; did you mean 'age'"),
    (MIXED, 'target', "no column 'target'; the columns are age, city, member"),
    ('x,y\n' + '1,1\n2,0\n3,1\n' * 2 + '1,\n' * 4, 'y',
     r"'y': 40.0% of its values are missing \(4 of 10 rows\)"),
    ('x,y\n' + '1,a\n2,b\n3,a\n' * 2 + '1,\n' * 4, 'y', r'40.0%.*4 of 10 rows'),
    ('x,y\n1,0\n2,inf\n', 'y', '50.0% of its values are missing'),
    ('x,y\n1,5\n2,5\n', 'y', "All 2 labels are '5'"),
    ('x,y\n' + ''.join(f'1,{i / 7}\n' for i in range(1, 40)), 'y',
     '39 different fractional.*--config.data.label=<name> .*options=drop=y'),
    ('x,y\n1,0\ninf,1\n', 'y', "'x' in 1 of 2 rows"),
    ('x,y\n1,0\n-1e60,1\n', 'y', "'x' in 1 of 2 rows"),
    ('x,y\n1,0\nnan,1\n', 'y', "Missing values: 'x' in 1 of 2 rows"),
    ('y\n1\n0\n', 'y', 'no feature columns'),
    ('x,y\n', 'y', 'no rows'),
    ('', 'y', 'cannot be read as CSV'),
    ('x,y\n1,2\n3,4,5,6\n', 'y', "split at ',', line 3 has 4 fields and .* 2. "
     'If the separator .*=semicolon; .* header; a file of texts.*=reviews'),
    ('x,y\n0,1,2\n1,3,4\n', 'y', 'more fields than the header'),
    ('x,y\n' + ''.join(f'id{i},{i % 2}\n' for i in range(101)) * 2, 'y',
     "'x' has 101 different values, more than 100: drop it"),
])
def test_csv_refuses(text, label, message, tmp_path):
  with pytest.raises(ValueError, match=message) as error:
    data.load('csv', write_csv(tmp_path, text), label)
  assert one_line(error)


def test_csv_refuses_bytes_and_bad_options(tmp_path):
  file = tmp_path / 'mine.csv'
  file.write_bytes('é,y\n'.encode() + b'\xff\xfe,1\n')
  with pytest.raises(ValueError, match='cannot be read as CSV: 2 characters'):
    data.load('csv', str(file), 'y')
  path = write_csv(tmp_path, MIXED)
  with pytest.raises(ValueError, match="positive='maybe'.*no, yes"):
    data.load('csv', path, 'y', positive='maybe')
  with pytest.raises(ValueError, match="did you mean 'city'"):
    data.load('csv', path, 'y', drop='citty')
  with pytest.raises(ValueError, match="'empty' has no value at all"):
    text = 'empty,x,y\n,1,0\n,2,1\n'
    data.load('csv', write_csv(tmp_path, text), 'y', missing='impute')


def test_parquet_refuses(tmp_path):
  file = tmp_path / 'mine.parquet'
  file.write_text(MIXED)
  with pytest.raises(ValueError, match='cannot be read as Parquet') as error:
    data.load('parquet', str(file), 'y')
  assert one_line(error)
  when = pd.to_datetime(['2020-01-01', '2021-01-01'])
  pd.DataFrame(dict(when=when, y=[0, 1])).to_parquet(file)
  with pytest.raises(ValueError, match="'when' has values of kind datetime"):
    data.load('parquet', str(file), 'y')
  whole = file.read_bytes()
  file.write_bytes(whole[:-20])
  with pytest.raises(ValueError, match='cannot be read as Parquet'):
    data.load('parquet', str(file), 'y')


@pytest.mark.parametrize('header, names', [
    ('y,x,y', "'y', 'y'"), ('y,x,x', "'x', 'x'"), ('y,x, y', "'y', ' y'"),
    ('y,x,y\t', "'y'"), ('y,x,\ufeffy', "'y', '.*y'"), ('\ufeffy,x,y', "'y'"),
    ('"y","x","y"', "'y', 'y'"),
])
@pytest.mark.parametrize('rows', ['0,1,0\n1,2,1\n', ''])
def test_columns_of_one_name_are_refused(header, names, rows, tmp_path):
  # Pandas would call the second label y.1 and have it among the features.
  path = write_csv(tmp_path, f'{header}\n{rows}')
  with pytest.raises(ValueError, match=f'have the same name: {names}') as error:
    data.load('csv', path, 'y')
  assert one_line(error)


def test_a_second_label_in_capitals_is_refused(tmp_path):
  path = write_csv(tmp_path, 'y,x,a,A,Y\n0,1,2,3,0\n1,2,3,4,1\n')
  with pytest.raises(ValueError, match="'Y' has the same name as the label"):
    data.load('csv', path, 'y')
  assert data.load('csv', path, 'y', drop='Y').names == ('x', 'a', 'A')


@pytest.mark.parametrize('again, told', [
    (lambda y, rng: y, True),
    (lambda y, rng: np.where(y == 1, 'spam', 'ham'), True),
    (lambda y, rng: np.where(rng.random(90) < 0.1, np.nan, y), True),
    (lambda y, rng: y * 5 + rng.integers(5, size=90), True),  # Finer classes.
    (lambda y, rng: y + rng.random(90) / 2, True),  # A score that it cuts.
    (lambda y, rng: np.where(np.arange(90) == 7, 1 - y, y), False),
    (lambda y, rng: rng.random(90), False),  # Every value has one label.
    (lambda y, rng: rng.integers(5, size=90), False),
])
def test_a_second_label_in_capitals_is_one_if_it_tells_it(
    again, told, tmp_path
):
  rng = np.random.default_rng(0)
  y = rng.integers(2, size=90)
  frame = pd.DataFrame({'Y': again(y, rng), 'x': rng.random(90), 'y': y})
  frame.to_parquet(tmp_path / 'a')
  load = lambda **more: data.load('parquet', str(tmp_path / 'a'), 'y', **more)
  if told:
    with pytest.raises(ValueError, match='except for capitals.* Leave it out'):
      load(missing='impute')
  else:
    assert load().names == ('Y', 'x')
  assert load(drop='Y').names == ('x',)


def test_names_that_differ_in_blanks_are_two_where_nobody_asks(tmp_path):
  path = write_csv(tmp_path, 'a,a ,b,y\n0,1,2,0\n1,2,3,1\n')
  table = data.load('csv', path, 'y', drop='b')
  assert table.names == ('a', 'a ')
  for option in ('drop', 'text'):
    with pytest.raises(ValueError, match="same name: 'a', 'a '"):
      data.load('csv', path, 'y', **{option: 'a'})
  frame = pd.read_csv(path)
  frame.to_parquet(tmp_path / 'a.parquet')
  path = str(tmp_path / 'a.parquet')
  assert data.load('parquet', path, 'y').names == ('a', 'a ', 'b')
  with pytest.raises(ValueError, match="same name: 'a', 'a '"):
    data.load('parquet', path, 'a')
  # A party is given columns by names without blanks.
  table = data.load('parquet', path, 'y')
  with pytest.raises(ValueError, match="'a' may be any of 'a', 'a '"):
    split.columns(table, 2, 'named', named='a;*')
  assert split.columns(table, 2, 'named', named='b;*')[1].tolist() == [0, 1]


def test_a_header_may_have_line_breaks_and_no_names(tmp_path):
  path = write_csv(tmp_path, ',"a\nb",y\n1,2,0\n7,3,1\n')
  table = data.load('csv', path, 'y')
  assert table.names == ('Unnamed: 0', 'a\nb')
  with pytest.raises(ValueError, match='are Unnamed: 0, a b, y') as error:
    data.load('csv', path, 'target')
  assert one_line(error)


@pytest.mark.parametrize('head, first', [('', 0), ('', 1), ('Unnamed: 0', 0)])
def test_row_numbers_without_a_name_are_no_feature(head, first, tmp_path):
  lines = [f'{first + i},{i % 3},{int(i > 4)}' for i in range(9)]
  path = write_csv(tmp_path, '\n'.join([f'{head},x,y', *lines]))
  with pytest.raises(ValueError, match=(
      "'Unnamed: 0', numbers the rows.*options='drop=Unnamed: 0'"
  )):
    data.load('csv', path, 'y')
  assert data.load('csv', path, 'y', drop='Unnamed: 0').names == ('x',)


def test_shuffled_row_numbers_without_a_name_are_no_feature(tmp_path):
  """Of a part of a table, so that numbers are missing."""
  numbers = np.random.default_rng(0).permutation(150)[:100]
  frame = pd.DataFrame(dict(x=numbers % 7, y=numbers % 2), index=numbers)
  for rows, message in [(100, 'in each row'), (99, '')]:
    frame[:rows].to_csv(tmp_path / 'a')
    if message:
      with pytest.raises(ValueError, match=message):
        data.load('csv', str(tmp_path / 'a'), 'y')
    few = data.load('csv', str(tmp_path / 'a'), 'y', drop='Unnamed: 0')
    assert few.names == ('x',)
  assert data.load('csv', str(tmp_path / 'a'), 'y').names[1] == 'x'


def test_whole_numbers_without_a_name_may_be_measured(tmp_path):
  """Some of them come twice. Another such column is looked at all the same."""
  numbers = np.arange(120)
  frame = pd.DataFrame({
      'Unnamed: 0': numbers % 50, 'Unnamed: 1': numbers / 2, 'x': numbers % 7,
      'y': numbers % 2,
  })
  frame.to_csv(tmp_path / 'a', index=False)
  assert len(data.load('csv', str(tmp_path / 'a'), 'y').names) == 3
  frame.insert(2, 'Unnamed: 2', numbers[::-1])
  frame.to_csv(tmp_path / 'a', index=False)
  with pytest.raises(ValueError, match="'Unnamed: 2', has another whole"):
    data.load('csv', str(tmp_path / 'a'), 'y')


def test_a_named_index_of_a_parquet_file_is_a_column(tmp_path):
  frame = pd.DataFrame(dict(age=[3, 5, 9], x=[1, 2, 4], y=[0, 1, 1]))
  frame.set_index('age').to_parquet(tmp_path / 'a')
  assert data.load('parquet', str(tmp_path / 'a'), 'y').names == ('age', 'x')
  frame[frame.age > 4].to_parquet(tmp_path / 'a')  # Row numbers, of no name.
  assert data.load('parquet', str(tmp_path / 'a'), 'age').names == ('x', 'y')
  frame.set_index('y', drop=False).to_parquet(tmp_path / 'a')
  with pytest.raises(ValueError, match="have the same name: 'y', 'y'"):
    data.load('parquet', str(tmp_path / 'a'), 'age')


def test_words_are_words_in_every_part_of_a_large_file(tmp_path):
  # In pieces, here of 2048 rows, pandas would read 1.50 as 1.5 where it stands
  # among numbers only.
  more = [f'c{i}' for i in range(510)]
  ones = ',1' * len(more)
  rows = [f'1.50,0{ones}\n1.50,1{ones}\n'] * 1500
  rows += [f'a,0{ones}\nb,1{ones}\n'] * 400
  path = write_csv(tmp_path, '\n'.join([','.join(['x,y', *more]), *rows]))
  table = data.load('csv', path, 'y', drop=more)
  assert table.names == ('x=1.50', 'x=a', 'x=b')


def test_a_parquet_file_of_more_than_memory_is_refused(tmp_path, monkeypatch):
  pd.DataFrame(dict(x=[1] * 900, y=[0, 1] * 450)).to_parquet(tmp_path / 'a')
  monkeypatch.setattr(files, 'memory', lambda: 10_000)
  with pytest.raises(ValueError, match='declares would take'):
    data.load('parquet', str(tmp_path / 'a'), 'y')


def test_all_refused_columns_are_named_at_once():
  rows = 60
  found = pd.DataFrame(dict(
      name=[f'n{k}' for k in range(rows)], x=np.arange(rows) % 7,
      day=[f'2024-{1 + k // 28:02}-{1 + k % 28:02}' for k in range(rows)],
      y=np.arange(rows) % 2,
  ))
  with pytest.raises(ValueError, match="'name' has 60") as error:
    frame.table(found, 'y')
  assert str(error.value).endswith(
      "Refused, too: 'day'; to leave out all of them:"
      ' --config.data.options=drop=name,day'
  )


@pytest.mark.parametrize('written', [
    '{y}-{m:02}-{d:02}', '{d}.{m}.{y}', '{m}/{d}/{y}', '{y}-{m}-{d} 10:30:00',
    '{y}{m:02}{d:02}T1030',
])
def test_dates_are_called_dates(written):
  days = [(2001, 1 + k // 28, 1 + k % 28) for k in range(200)]
  found = pd.DataFrame(dict(
      day=[written.format(y=y, m=m, d=d) for y, m, d in days],
      y=np.arange(200) % 2,
  ))
  with pytest.raises(ValueError, match="'day' has dates, like '.*days since"):
    frame.table(found, 'y')
  frame.table(found, 'y', text='day', categories=300)
  found['day'] = [*found.day[:-1], 'never']
  with pytest.raises(ValueError, match="'day' has 200 different values"):
    frame.table(found, 'y')


@pytest.mark.parametrize('written', [
    '{:.1f}%', '$1,20{:.0f}', '{:.2f} \N{EURO SIGN}', '-$ {:.0f}',
])
def test_numbers_with_a_sign_are_no_categories(written):
  """As such, 2 % would be no nearer to 3 % than to 90 %."""
  found = pd.DataFrame(dict(
      rate=[written.format(k % 7) for k in range(60)], y=np.arange(60) % 2
  ))
  found.loc[3, 'rate'] = None
  how: dict[str, Any] = dict(missing='impute')
  with pytest.raises(ValueError, match="'rate' has numbers with a sign"):
    frame.table(found, 'y', **how)
  assert len(frame.table(found, 'y', text='rate', **how).names) == 8
  found['rate'] = [*found.rate[:-1], '90% or more']
  frame.table(found, 'y', **how)


def test_a_column_of_gaps_has_no_sign():
  """As one whose gaps were filled by the word for them."""
  found = pd.DataFrame(dict(w=['(missing)'] * 6, x=range(6), y=[0, 1] * 3))
  assert 'w=(missing)' in frame.table(found, 'y').names


@pytest.mark.parametrize('dtype', ['str', object, 'category'])
def test_categories_are_the_same_in_any_kind_of_column(dtype):
  words = pd.Series(['b', None, 'a', '(missing)', 'b'], dtype=dtype, name='w')
  found = pd.DataFrame(dict(w=words, y=[0, 1, 0, 1, 1]))
  table = frame.table(found, 'y', missing='impute')
  assert table.names == ('w=(missing)', 'w=a', 'w=b')
  np.testing.assert_array_equal(
      table.features,
      [[0, 0, 1], [1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]],
  )
