"""Each party's file may be written in its own way, and is advised on alone."""
import concurrent.futures
import warnings

import numpy as np
import pandas as pd
import pytest

from tests.party_files import BANK, TELECOM, load, written
from vfljax import data
from vfljax.data import options
from vfljax.runner.cli.arguments import load_data
from vfljax.runner.config import DataConfig
from vfljax.runner.errors import UserError


def test_each_file_may_be_written_in_its_own_way(tmp_path):
  bank = 'who;late;balance\n7;yes;1.250\n8;no;2.500\n9;no;3.125\n'
  shop = 'who,paid\n9,"3,5"\n8,"2,25"\n7,"1,5"\n'
  found = load(tmp_path, bank, shop, decimal='point,comma', sep=';,comma')
  points = [[1.25, 1.5], [2.5, 2.25], [3.125, 3.5]]
  np.testing.assert_array_equal(found.features, points)
  recognised = load(tmp_path, bank, shop, decimal=['', 'comma'])
  np.testing.assert_array_equal(recognised.features, points)
  # Said of all files, a comma would make thousands of the first one's.
  assert load(tmp_path, bank, shop, decimal='comma').features[0, 0] == 1250


@pytest.mark.parametrize('typed, said', [
    ({}, 'telecom.csv.*options=decimal=,comma'),
    (dict(decimal='point'), 'telecom.csv.*options=decimal=point,comma'),
    (dict(sep=','), 'bank.csv.*options=sep=semicolon,comma'),
    (dict(encoding=',nope'), "telecom.csv.* got 'nope'"),
])
def test_what_is_advised_for_a_file_leaves_others_alone(typed, said, tmp_path):
  with pytest.raises(ValueError, match=said):
    load(tmp_path, BANK, 'who,paid\n9,"3,5"\n8,"2,2"\n7,"1,5"\n', **typed)


def test_what_a_warning_advises_for_a_file_leaves_others_alone(tmp_path):
  path = written(tmp_path, BANK, '')
  latin = 'who,Straße\n9,3\n8,2\n7,1\n'.encode('latin-1')
  (tmp_path / 'telecom.csv').write_bytes(latin)
  with pytest.warns(data.Recognised) as told:
    found = data.load('parties', path, label='late', ids='who')
  assert found.names == ('balance', 'Straße')
  said = [str(one.message) for one in told if 'latin-1' in str(one.message)]
  assert len(said) == 1 and 'options=encoding=,cp1250' in said[0]


def test_advice_after_a_file_is_for_all(tmp_path):
  with pytest.raises(ValueError, match='decimal=,comma'):
    load(tmp_path, BANK, 'who,paid\n9,"3,5"\n8,"2,2"\n7,"1,5"\n')
  assert options.flag(decimal='comma').endswith('options=decimal=comma')


def test_files_that_threads_read_leave_warnings_alone(tmp_path):
  path, before = written(tmp_path, BANK, TELECOM), [*warnings.filters]

  def read():
    for _ in range(20):
      data.load('parties', path, label='late', ids='who')

  with pytest.warns(data.Recognised) as told:
    inside = [*warnings.filters]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
      for one in [pool.submit(read) for _ in range(4)]:
        one.result()
    assert warnings.filters == inside
    warnings.warn('Told afterwards', data.Recognised, stacklevel=1)
  assert 'Told afterwards' in str(told[-1].message)
  assert warnings.filters == before


def test_advice_with_a_comma_at_its_end_keeps_it_when_retyped(tmp_path):
  """It was lost, and the comma became that of all files."""
  bank = 'who,late,paid\n7,0,"3,5"\n8,1,"2,2"\n9,1,"1,5"\n'
  path = written(tmp_path, bank, TELECOM)
  own = dict(name='parties', path=path, label='late', split='held')
  with pytest.raises(UserError, match="'ids=who;decimal=comma,', or keep"):
    load_data(DataConfig(options='ids=who', **own))
  typed = DataConfig(options='ids=who;decimal=comma,', **own)
  assert load_data(typed).features[0, 0] == 3.5


def test_what_a_warning_advises_leaves_other_files_alone(tmp_path):
  path = written(tmp_path, BANK, TELECOM)
  latin = TELECOM.replace('plan', 'pl\xe4n').encode('latin-1')
  (tmp_path / 'telecom.csv').write_bytes(latin)
  told = []
  load_data(DataConfig(
      name='parties', path=path, label='late', options='ids=who', split='held',
  ), tell=told.append)
  assert "telecom.csv is not UTF-8" in told[0]
  assert "options='ids=who;encoding=,cp1250'" in told[0]


def test_gaps_are_those_of_a_parquet_file_too(tmp_path):
  """They were measured: -999 stayed a number."""
  telecom = pd.DataFrame(dict(
      who=[11, 9, 7], calls=[-999, 2, 4], paid=[1.5, 3.0, -999],
      plan=['a', ' ?', 'a'], kind=pd.Categorical(['?', 'b', 'b']),
      new=[True, False, True],
  ))
  telecom.to_parquet(tmp_path / 'telecom.parquet')
  path = f'{written(tmp_path, BANK)};{tmp_path / "telecom.parquet"}'
  own = dict(label='late', ids='who', gaps='?,-999')
  with pytest.raises(ValueError, match="'calls' in 1, 'paid' in 1, 'plan' in "
                                       "1, 'kind' in 1 of 3 rows"):
    with pytest.warns(data.Recognised):
      data.load('parties', path, **own)
  with pytest.warns(data.Recognised):
    found = data.load('parties', path, missing='impute', **own)
  np.testing.assert_array_equal(found.features[:, 1:3], [
      [4, 2.25], [2, 3], [3, 1.5]
  ])


@pytest.mark.parametrize('typed, said', [
    (dict(decimal=['', 'comma']), 'decimal=comma is .*empty: .*=decimal=$'),
    (dict(encoding='cp1250,utf-8'),
     "encoding=utf-8 is .*empty: .*options='encoding=cp1250,'$"),
])
def test_a_word_of_a_parquet_file_s_own_is_refused(typed, said, tmp_path):
  """It did nothing."""
  telecom = pd.DataFrame(dict(who=[11, 9], calls=[1.0, 2.0]))
  telecom.to_parquet(tmp_path / 'telecom.pq')
  path = f'{written(tmp_path, BANK)};{tmp_path / "telecom.pq"}'
  with pytest.raises(ValueError, match=f'telecom.pq: {said}'):
    data.load('parties', path, label='late', ids='who', **typed)
  with pytest.warns(data.Recognised, match='2 rows'):  # Said of all files.
    data.load('parties', path, label='late', ids='who', decimal='point')


def test_whole_numbers_beside_gaps_of_parquet_are_exact(tmp_path):
  """They became floats, in which two large ones are the same."""
  large = 2**60
  shop = pd.DataFrame(dict(who=[7, 8, 9, 11], code=[1, 2, -9, 1],
                           big=[large + 1, large + 3, -9, large + 3]))
  bank, names = written(tmp_path, BANK), []
  for end in ('parquet', 'csv'):
    file = tmp_path / f'shop.{end}'
    shop.to_csv(file, index=False) if end == 'csv' else shop.to_parquet(file)
    with warnings.catch_warnings():
      warnings.simplefilter('ignore')
      names.append(data.load(
          'parties', f'{bank};{file}', label='late', ids='who', gaps='-9',
          text='code,big', missing='impute',
      ).names)
  assert names[0] == names[1] and f'big={large + 1}' in names[0]


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path):
  for folder, text in (('bank', BANK), ('shop', TELECOM.replace('who', 'no'))):
    (tmp_path / folder).mkdir()
    (tmp_path / folder / 'own.csv').write_text(text)
  path = f'{tmp_path}/bank/own.csv;{tmp_path}/shop/own.csv'
  with pytest.raises(ValueError, match='/shop/own.csv lacks the ids'):
    data.load('parties', path, label='late', ids='who')


def test_a_passive_party_s_separator_is_that_which_finds_the_ids(tmp_path):
  found = load(tmp_path, BANK, 'who;used,in,all\n9;1\n7;2\n11;3\n')
  assert found.names == ('balance', 'used,in,all')
