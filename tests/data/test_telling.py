"""Columns that tell the label, or nothing, are named; others are not."""
import warnings

import numpy as np
import pandas as pd
import pytest

from vfljax.data import frame, telling

ROWS = 2000


def columns(classes=2, share=0.05):
  """A table whose label depends on a column `x`, by far not alone."""
  rng = np.random.default_rng(0)
  x = rng.normal(size=ROWS)
  if classes == 2:
    noisy = x + rng.normal(size=ROWS)
    y = (noisy > np.quantile(noisy, 1 - share)).astype(int)
  else:
    y = rng.integers(0, classes, ROWS)
  return rng, pd.DataFrame(dict(x=x, n=rng.integers(0, 9, ROWS), y=y))


def said(found, missing='refuse'):
  with warnings.catch_warnings(record=True) as odd:
    warnings.simplefilter('always')
    frame.table(found, 'y', missing=missing)
  return [str(one.message) for one in odd]


def test_ordinary_columns_are_not_named():
  rng, found = columns()
  found['w'] = rng.choice(['a', 'b', 'c'], ROWS)
  assert said(found) == []
  # Few rows for each word: their order by label would be chance.
  found['w'] = [f'w{k}' for k in rng.integers(0, 95, ROWS)]
  assert said(found) == []


@pytest.mark.parametrize('words, told', [
    (['12', '9', '30'], True), (['1.5', '-2', '0'], True),
    (['12', 'x', '3'], False), (['012', '900', '10'], False),  # Codes.
    (['0', '1'], False), (['1', '2', 'inf'], False),
    # As Europe and spreadsheets write them; an address is no number.
    (['1,5', '-2', '0,25'], True), (['1.234,5', '9', '1.000.000'], True),
    (['1 234', '5', "7'000"], True), (['10.0.0.1', '10.0.0.2', '1'], False),
    ([',5', '\u22121,25', '2,5e-3'], True), (['0,5', '00,5', '1'], False),
    (['1,2,3', '4', '5'], False),
])
def test_numbers_as_text_are_told(words, told):
  """In a frame nobody converts them, and each became a category silently."""
  rng, found = columns()
  found['k'] = rng.choice(words, ROWS)
  said_of = [one for one in said(found) if 'numbers as text' in one]
  assert len(said_of) == told
  for one in said_of:
    assert "Column 'k' has numbers as text" in one
    assert one.endswith('--config.data.options=text=k')
    other = any(set(word) & set(", '") for word in words)
    assert ('marks of thousands' in one) == other
  found['k'] = found['k'].astype('category')  # Declared to be categories.
  assert said(found) == []


def test_numbers_as_text_that_are_declared_are_not_told():
  rng, found = columns()
  found['k'] = rng.choice(['12', '9', '30'], ROWS)
  with warnings.catch_warnings():
    warnings.simplefilter('error')
    names = frame.table(found, 'y', text='k').names
  assert names[-3:] == ('k=12', 'k=30', 'k=9')


@pytest.mark.parametrize('classes', [2, 5])
def test_columns_that_tell_the_label_are_named(classes):
  rng, found = columns(classes)
  y = found.y.to_numpy()
  found['near'] = y + rng.normal(0, 0.05, ROWS)
  found['state'] = np.array(['zulu', 'kilo', 'papa', 'alfa', 'mike'])[y]
  message, = said(found)
  assert "'y' is told in nearly every row by each of these" in message
  assert "alone: 'near', 'state'." in message
  assert message.endswith('--config.data.options=drop=near,state')


def test_a_gap_may_tell_the_label():
  rng, found = columns()
  found['closed'] = np.where(found.y == 1, rng.normal(size=ROWS), np.nan)
  message, = said(found, 'impute')
  assert "told in nearly every row by this column alone: 'closed'" in message


def test_constant_columns_are_named():
  _, found = columns()
  found['one'], found['word'] = 7.0, 'same'
  message, = said(found)
  assert message.startswith('2 columns with the same value in every row:')
  assert message.endswith('drop=one,word')
  found.loc[1999, ['one']] = 8.0  # A row that is not among those looked at.
  assert "1 column with the same value in every row: 'word'" in said(found)[0]


@pytest.mark.parametrize('count', [30, 31])
def test_many_constant_columns_are_not_all_spelled_out(count):
  _, found = columns()
  for i in range(count):
    found[f'same{i}'] = 7.0
  message, = said(found)
  assert ('drop=same0,' in message) == (count == 30)
  assert len(message) < 600


@pytest.mark.parametrize('share, told', [(0.05, False), (0.2, True), (1, True)])
def test_rows_that_are_there_twice_are_counted(share, told):
  """Also with gaps and words; the copies are not neighbours."""
  rng, found = columns()
  found['w'] = rng.choice(['a', 'b', 'c'], ROWS)
  found.loc[:9, 'w'] = None
  again = found.iloc[: int(share * ROWS / 2)]
  both = pd.concat([found[: ROWS - len(again)], again]).reset_index(drop=True)
  heard = said(both, 'impute')
  assert len(heard) == told
  if told:
    many = f'{2 * len(again)} of {ROWS} rows'
    assert f"{many} repeat another row, 'y' included" in heard[0]


def test_who_answers_alike_is_no_copy():
  rng, found = columns()
  # A few categories, which both together say the label.
  few = pd.DataFrame(dict(n=found.n, m=rng.integers(0, 3, ROWS)))
  few['y'] = (few.n + few.m) % 2
  assert few.drop_duplicates().shape[0] < 30 and said(few) == []
  # Copies have the label of the first; these were drawn anew.
  found['w'] = rng.choice(['a', 'b', 'c'], ROWS)
  both = pd.concat([found, found]).assign(y=rng.integers(0, 2, 2 * ROWS))
  assert said(both) == []


def test_few_rows_tell_nothing():
  tiny = pd.DataFrame(dict(x=np.arange(60.0), y=[0] * 30 + [1] * 30))
  assert said(tiny) == []


@pytest.mark.parametrize('positive', [4, 5])
def test_few_rows_of_a_class_tell_nothing(positive):
  y = np.arange(200) < positive
  found = said(pd.DataFrame(dict(x=y + 0.0, y=y.astype(int))))
  assert any('told in nearly every row' in one for one in found) == (
      positive == 5
  )


def test_a_class_that_is_not_among_the_rows_looked_at_tells_nothing():
  y = np.zeros(50_000, int)
  y[[1, 2, 3, 4, 6, 7]] = 1  # Every fifth row is looked at.
  x = np.random.default_rng(0).normal(size=len(y))
  assert said(pd.DataFrame(dict(x=x, y=y))) == []


def test_many_words_are_in_the_order_of_their_labels():
  """Of twenty in turn, each has one label."""
  word = np.arange(400) % 20
  found = pd.DataFrame(dict(w=[f'w{k:02}' for k in word], y=word % 2))
  message, = said(found)
  assert "'y' is told in nearly every row by this column alone: 'w'" in message


def test_disorder_written_out():
  y = np.array([0, 0, 0, 1, 1, 1, 0, 1])
  # Sorted by place: 0 0 0 1 1 1 0 1 has 3 changes, 2 more than sorted labels;
  # 8 (1 - 1/4 - 1/4) = 4 are to be expected.
  assert telling.disorder(np.arange(8), y) == pytest.approx(2 / 4)
  assert telling.disorder(y, y) == 0.0
  assert telling.disorder(-y, y) == 0.0


def test_values_of_one_column_are_taken_by_lot():
  y = np.repeat([0, 1], 5000)  # In the file, rows are sorted by label.
  assert telling.disorder(np.zeros(10_000), y) == pytest.approx(1, abs=0.05)
