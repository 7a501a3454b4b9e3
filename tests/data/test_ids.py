"""Ids of the parties' rows: which meet, and what is told of the others."""
import warnings

import numpy as np
import pandas as pd
import pytest

from tests.party_files import BANK, TELECOM, load
from vfljax import data


def test_ids_are_compared_as_they_are_written(tmp_path):
  bank = 'who,late,a\n007,0,1\n7,1,2\n08,1,3\n'
  found = load(tmp_path, bank, 'who,b\n7,5\n007,6\n8,7\n')
  np.testing.assert_array_equal(found.features, [[1, 6], [2, 5]])


@pytest.mark.parametrize('ids, said', [
    (['007', '8', '9'], "'7' and '007' different"),
    (['7.0', '8', '9'], "'7' and '7.0' different"),
    (['7', 'a 8', '9'], "'A-8' and 'a 8' different"),
])
def test_rows_that_are_lost_for_how_ids_are_written_are_told(ids, said):
  bank = pd.DataFrame(dict(id=['7', '8', '9', 'A-8'], y=[0, 1, 0, 1]))
  shop = pd.DataFrame(dict(id=[*ids, 'z'], f=[1.0, 2.0, 3.0, 4.0]))
  more = ' 1 more would be if ids were written alike: case, leading zeros'
  with pytest.warns(data.Recognised, match=f'used .*{more}.*{said}') as told:
    data.joined([bank, shop], 'y', 'id')
  assert len(told) == 1


def test_ids_are_alike_where_all_parties_write_them_so():
  frames = [
      pd.DataFrame(dict(id=['1', own], **more)) for own, more in (
          ('02', dict(y=[0, 1])), ('2', dict(f=[1.0, 2])), ('3', dict(g=[1, 2]))
      )
  ]
  with pytest.warns(data.Recognised, match=r'2 in the table of party 2\)\.$'):
    assert len(data.joined(frames, 'y', 'id').labels) == 1


@pytest.mark.parametrize('bank, shop', [
    (['39-23', '1'], ['3-923', '1']), (['-20', '1'], ['20', '1']),
    (['-', '1'], ['0', '1']), (['007', '7'], ['7', '07']),
])
def test_ids_that_differ_are_not_said_to_be_alike(bank, shop):
  frames = [pd.DataFrame(dict(id=bank, y=[0, 1])),
            pd.DataFrame(dict(id=shop, f=[1.0, 2.0]))]
  with pytest.warns(data.Recognised, match=r'2 in the table of party 1\)\.$'):
    assert len(data.joined(frames, 'y', 'id').labels) == 1


def test_nothing_is_told_where_no_row_is_lost():
  frames = [pd.DataFrame(dict(id=['7', '007'], y=[0, 1])),
            pd.DataFrame(dict(id=['007', '7'], f=[1.0, 2.5]))]
  with warnings.catch_warnings():
    warnings.simplefilter('error')
    assert len(data.joined(frames, 'y', 'id').labels) == 2


def test_tables_whose_ids_are_all_written_otherwise_are_told_so():
  bank = pd.DataFrame(dict(id=['A-1', 'A-2', 'B'], y=[0, 1, 0]))
  shop = pd.DataFrame(dict(id=['a1', 'a2', 'c'], f=[1.0, 2.0, 3.0]))
  with pytest.raises(ValueError, match="'A-1', 'a1'. 2 more .*'A-1' and 'a1'"):
    data.joined([bank, shop], 'y', 'id')
  shop = pd.DataFrame(dict(id=['d', 'e', 'c'], f=[1.0, 2.0, 3.0]))
  with pytest.raises(ValueError, match=r"The first ones are 'A-1', 'd'\.$"):
    data.joined([bank, shop], 'y', 'id')


def test_each_table_may_call_the_ids_otherwise(tmp_path):
  """A party's column of ids may be another's feature."""
  telecom = TELECOM.replace('who', 'client').replace('plan', 'who')
  found = load(tmp_path, BANK, telecom, ids='who, client')
  assert found.names == ('balance', 'calls', 'who=a', 'who=b')
  np.testing.assert_array_equal(found.features[:, :2], [[10, 3], [30, 2],
                                                        [40, 1]])
  with pytest.raises(ValueError, match='ids has 2 words for 3 tables'):
    load(tmp_path, BANK, telecom, 'who,c\n7,1\n', ids='who,client')
  with pytest.raises(ValueError, match='otherwise, give .* ids=<name>,<name>'):
    load(tmp_path, BANK, telecom, ids='client')
  with pytest.raises(ValueError, match="besides 'client'"):
    load(tmp_path, BANK, 'client\n7\n', ids=('who', 'client'))


def test_a_stray_cell_is_told_by_its_row_s_id(tmp_path):
  """The joined table's row 18 is another one in either file."""
  bank = 'who,late\n' + ''.join(f'{i},{i % 2}\n' for i in range(20))
  shop = 'who,paid\n' + ''.join(f'{i},{i}\n' for i in range(20)[::-1])
  with pytest.raises(ValueError, match="'x' in the row of id '17'. Correct"):
    load(tmp_path, bank, shop.replace('17,17', '17,x'))


@pytest.mark.parametrize('cell', ['see, row 99. x', 'in row 5. x'])
def test_what_a_cell_says_of_rows_is_left_as_it_is(cell, tmp_path):
  bank = 'who,late\n' + ''.join(f'{i},{i % 2}\n' for i in range(20))
  shop = 'who,paid\n' + ''.join(f'{i},{i}\n' for i in range(20))
  with pytest.raises(ValueError, match=f"'{cell}' in the row of id '17'. Corr"):
    load(tmp_path, bank, shop.replace('17,17', f'17,"{cell}"'))


def test_a_party_may_leave_out_what_another_one_s_ids_are_called(tmp_path):
  telecom = 'who,client,calls\nc1,7,1\nc2,8,2\nc3,9,3\n'
  found = load(tmp_path, BANK, telecom, ids='who,client', drop='who')
  assert found.names == ('balance', 'calls')
  np.testing.assert_array_equal(found.features, [[10, 1], [20, 2], [30, 3]])
  with pytest.raises(ValueError, match='must be different columns'):
    load(tmp_path, BANK, telecom, ids='who,client', drop='client')
  with pytest.raises(ValueError, match='bank.csv: row 1 has no id'):
    load(tmp_path, BANK.replace(' 7', '  '), telecom, ids='who,client',
         drop='who')


def test_ids_among_floats_are_whole_numbers_or_refused():
  bank = pd.DataFrame(dict(who=[1, 2], late=[0, 1], x=[1.0, 2.0]))
  other = pd.DataFrame(dict(who=pd.Series([2.0, 1], dtype=object), y=[3.0, 4]))
  found = data.joined([bank, other], 'late', 'who')
  np.testing.assert_array_equal(found.features, [[1, 4], [2, 3]])
  for odd in (np.array([2, 2.0**53]), np.array([2, 2**24], np.float32)):
    with pytest.raises(ValueError, match="1: 'who' has floats, like .*rounded"):
      data.joined([bank, other.assign(who=odd)], 'late', 'who')
  with pytest.raises(ValueError, match="party 1: 'who' has fractions"):
    data.joined([bank, other.assign(who=[1, np.inf])], 'late', 'who')


def test_ids_are_text_with_blanks_around_their_name_too(tmp_path):
  bank = ' who,late,a\n007,0,1\n7,1,2\n8,0,3\n'
  found = load(tmp_path, bank, ' who,b\n8,4\n7,5\n007,6\n', ids=' who')
  np.testing.assert_array_equal(found.features, [[1, 6], [2, 5], [3, 4]])
