"""Samples that a program has."""
import threading
import time
import types
import warnings

import numpy as np
import pandas as pd
import pytest

from vfljax import data
from vfljax.runner.cli import loading
from vfljax.runner.config import DataConfig
from vfljax.runner.errors import UserError

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(dict(
    a=RNG.normal(size=40), city=['x', 'y', 'x', 'z'] * 10,
    late=[True, False] * 20, y=['no', 'yes', 'yes', 'no'] * 10,
))


def test_a_data_frame_is_read_like_its_file(tmp_path):
  file = tmp_path / 'mine.csv'
  FRAME.to_csv(file, index=False)
  before = FRAME.copy()
  how = dict(label='y', options='drop=a;positive=no')
  found = loading.taken(DataConfig(**how), FRAME)
  read = loading.load_data(DataConfig('csv', str(file), **how))
  for one, other in zip(found, read, strict=True):
    np.testing.assert_array_equal(one, other)
  assert FRAME.equals(before)


def test_gaps_are_filled_and_rows_limited():
  frame = FRAME.assign(b=[np.nan, 1.0, 2.0, 9.0] * 10)
  config = DataConfig(label='y', missing='impute', limit=12)
  found = loading.taken(config, frame)
  assert found.features.shape == (12, 6)
  column = found.features[:, found.names.index('b')]
  np.testing.assert_array_equal(column[:4], [2, 1, 2, 9])


def test_first_rows_of_a_sorted_file_are_told():
  told = []
  config = DataConfig(label='y', limit=22)
  loading.taken(config, FRAME, told.append)
  loading.taken(DataConfig(label='y'), FRAME.sort_values('y'), told.append)
  assert not told
  loading.taken(config, FRAME.sort_values('y'), told.append)
  assert told == [
      "warning: the first 22 rows, which data.limit takes, are 90.9% of class "
      "'no', all 40 rows 50.0%. If they are sorted by the label, type a larger "
      '--config.data.limit, or shuffle the rows.'
  ]
  with pytest.raises(UserError, match="first 12 rows.*all of class 'no'"):
    loading.taken(
        DataConfig(label='y', limit=12), FRAME.sort_values('y'), told.append
    )


def test_first_rows_are_those_for_training():
  """Not those of a test set, which may lie before them; and 21 of 41 is chance.
  """
  told, own = [], data.load('wine')
  test = np.arange(len(own.labels)) < 59  # All of the first class.
  y = np.where(test, 0, 1 + np.arange(len(test)) % 2).astype(np.int32)
  table = own._replace(labels=y, test=test)
  loading.taken(DataConfig(limit=41), table, told.append)
  assert not [one for one in told if 'data.limit' in one]


@pytest.mark.parametrize('limits', [
    dict(test_limit=3), dict(test_limit=3, limit=30),
])
def test_all_rows_are_never_a_part_of_another_order(limits):
  """Sorted by their labels, too; of the test set there may be fewer."""
  told = []
  table = data.Table(
      np.arange(40, dtype=np.float32)[:, None],
      np.int32([0] * 15 + [1] * 15 + [0, 1] * 5), ('x',), ('a', 'b'), (0,),
      np.arange(40) >= 30,
  )
  found = loading.taken(DataConfig(**limits), table, told.append)
  assert not told
  np.testing.assert_array_equal(found.features[:, 0], np.arange(33))


def test_too_little_memory_is_told_in_a_line(monkeypatch):
  def load(*_, **__):
    raise MemoryError

  monkeypatch.setattr(data, 'load', load)
  with pytest.raises(UserError, match='too little memory for the samples of w'):
    loading.load_data(DataConfig('wine'))


def test_where_all_have_one_class_no_larger_limit_is_asked_for():
  """Other checks refuse that; the test set has the other classes here."""
  told, own = [], data.load('wine')
  table = own._replace(test=own.labels > 0)
  assert len(loading.taken(DataConfig(limit=5), table, told.append).labels) > 5
  assert not [one for one in told if 'data.limit' in one]


def test_the_class_that_is_alone_is_named_by_its_name():
  with pytest.raises(UserError, match="first 12 rows.*all of class 'yes'"):
    loading.taken(
        DataConfig(label='y', limit=12),
        FRAME.sort_values('y', ascending=False), lambda text: None,
    )


def test_a_table_is_taken_as_it_is():
  table = data.load('wine')
  assert loading.taken(DataConfig(), table) is table


def test_what_is_odd_is_told(capsys):
  config = DataConfig(label='y', options='drop=a')
  frame = pd.concat([FRAME] * 10).assign(id=range(400))
  loading.taken(config, frame)
  said = capsys.readouterr().err
  assert said.startswith("warning: Column 'id' has every whole number")
  assert '--config.data.options=drop=a,id' in said
  told = []
  loading.taken(config, frame, told.append)
  assert [said] == [f'{one}\n' for one in told]


@pytest.mark.parametrize('config, samples, message', [
    (dict(path='my.csv'), FRAME, "data.path is 'my.csv', and the samples are"),
    ({}, FRAME, 'Which column is the label'),
    (dict(label='z'), FRAME, "no column 'z'"),
    (dict(label='y', options='sep=tab'), FRAME, "no option 'sep'; it has dr"),
    (dict(label='y', options='categories=x'), FRAME, 'categories must be a wh'),
    (dict(label='y', options='path=x'), FRAME, 'has a flag'),
    (dict(label='y'), FRAME.to_numpy(), r'DataFrame or .*; got a NumPy array'),
    (dict(label='y'), 'my.csv', 'got a str'),
    (dict(label='y'), types.SimpleNamespace(columns=['y']), 'got a Simple'),
    (dict(label='y'), types.SimpleNamespace(set_axis=1), 'got a SimpleName'),
    (dict(label='y'), data.load('wine'), 'data.label does nothing'),
    (dict(missing='impute'), data.load('wine'), 'data.missing does nothing'),
    ({}, data.load('wine')._replace(classes=('a',)), 'must lie in 0..0'),
    (dict(label='y', limit=1), FRAME, 'between 2 and the 40 rows; got 1'),
    (dict(label='y', limit=41), FRAME, 'between 2 and the 40 rows; got 41'),
    (dict(test_limit=9), data.load('wine'), 'between 0 and the 0 rows of the'),
    (dict(label='y'), FRAME.assign(a=np.nan), "Missing values: 'a' in 40 of"),
])
def test_what_is_refused(config, samples, message):
  with pytest.raises(UserError, match=message) as error:
    loading.taken(DataConfig(**config), samples)
  assert len(str(error.value).splitlines()) <= 2


def test_classes_without_training_rows_are_told():
  told = []
  table = data.Table(
      np.zeros((6, 1), np.float32), np.int32([0, 1, 0, 1, 2, 2]), ('x',),
      ('a', 'b', 'c', 'of nobody'), (0,), np.arange(6) > 2,
  )
  loading.taken(DataConfig(), table, told.append)
  assert told == [
      "warning: no training row is of class 'c', which the official test set "
      'has.'
  ]
  loading.taken(DataConfig(), table._replace(test=None), told.append)
  loading.taken(DataConfig(), table._replace(
      test=np.arange(6) < 2  # All classes are in the rest.
  ), told.append)
  assert len(told) == 1


def test_samples_of_two_threads_are_each_told_of_their_own(monkeypatch):
  """Filters are of the process: one thread's would end with the other's."""
  begun = threading.Event()

  def table(frame, *rest, **options):
    begun.set()
    time.sleep(0.2)
    warnings.warn(data.Mismatch(frame.columns[0]), stacklevel=2)
    return read(frame, *rest, **options)

  read = loading.frame.table
  monkeypatch.setattr(loading.frame, 'table', table)
  said, before = {'a': [], 'b': []}, [*warnings.filters]
  config = DataConfig(label='y')

  def take(name):
    frame = FRAME[['a', 'y']].rename(columns=dict(a=name))
    loading.taken(config, frame, said[name].append)

  threads = [threading.Thread(target=take, args=(name,)) for name in said]
  threads[0].start()
  begun.wait()
  threads[1].start()
  for one in threads:
    one.join()
  assert said == {'a': ['warning: a'], 'b': ['warning: b']}
  assert warnings.filters == before
