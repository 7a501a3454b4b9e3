"""A table of each party, joined by ids: which rows, and who has what."""
import concurrent.futures
import warnings

import numpy as np
import pandas as pd
import pytest

from vfljax import data
from vfljax.data import files, options, split
from vfljax.runner.cli.arguments import load_data
from vfljax.runner.cli import asking
from vfljax.runner.config import Config, DataConfig
from vfljax.runner.errors import UserError
from vfljax.runner.workdir import recording

BANK = 'who;late;balance\n 7;yes;10\n8;no;20\n9;no;30\n11;yes;40\n'
TELECOM = 'calls,who,plan\n1,11,a\n2,9,b\n3,7,a\n4,12,b\n'


def written(folder, *texts):
  files = [folder / f'{name}.csv' for name in ('bank', 'telecom', 'third')]
  for file, text in zip(files, texts):
    file.write_text(text)
  return ';'.join(map(str, files[: len(texts)]))


def load(folder, *texts, label='late', **options):
  with warnings.catch_warnings():
    warnings.simplefilter('ignore', data.Recognised)
    return data.load(
        'parties', written(folder, *texts), label=label,
        **dict(ids='who') | options,
    )


def test_rows_are_those_of_all_parties_in_the_active_ones_order(tmp_path):
  found = load(tmp_path, BANK, TELECOM)
  assert found.names == ('balance', 'calls', 'plan=a', 'plan=b')
  np.testing.assert_array_equal(
      found.features, [[10, 3, 1, 0], [30, 2, 0, 1], [40, 1, 1, 0]]
  )
  np.testing.assert_array_equal(found.labels, [1, 0, 1])
  assert found.holders == (0, 1, 1, 1) and found.groups == (0, 1, 2, 2)


def test_each_party_has_the_columns_of_its_file(tmp_path):
  # Each file lacks another of the ids.
  third = 'who,age\n7,50\n9,60\n8,70\n'
  found = load(tmp_path, BANK, TELECOM, third)
  owned = split.columns(found, 3, 'held')
  assert [[*map(int, own)] for own in owned] == [[0], [1, 2, 3], [4]]
  parts = split.apply(found, split.Spec(3, 'held'))
  np.testing.assert_array_equal(parts[2], [[50], [60]])


def test_a_column_out_of_the_label_s_order_keeps_its_party(tmp_path):
  """Groups count the features, the label's column left out."""
  bank = 'a,who,late,b\n1,7,x,2\n3,8,y,4\n'
  found = load(tmp_path, bank, 'who,c,d\n8,5,6\n7,7,8\n', drop='c')
  assert found.names == ('a', 'b', 'd') and found.holders == (0, 0, 1)
  np.testing.assert_array_equal(found.features, [[1, 2, 8], [3, 4, 6]])


def test_an_active_party_may_have_the_label_alone(tmp_path):
  found = load(tmp_path, 'who,late\n7,0\n9,1\n', TELECOM)
  with pytest.raises(ValueError, match='label alone: .*algorithm=vsnn'):
    split.columns(found, 2, 'held')
  own = split.columns(found, 2, 'held', label_only=True)
  assert own[0] is None and [*own[1]] == [0, 1, 2]
  found = load(tmp_path, BANK, TELECOM)
  with pytest.raises(ValueError, match='has 1 columns: .*unheld=True'):
    split.columns(found, 2, 'held', label_only=True)
  spec = split.Spec(2, 'held', label_only=True, unheld=True)
  assert [x if x is None else x.shape for x in split.apply(found, spec)] == [
      None, (3, 3)
  ]


def test_rows_of_some_parties_alone_are_told(tmp_path):
  told = []
  own = DataConfig(
      name='parties', path=written(tmp_path, BANK, TELECOM), label='late',
      options='ids=who', split='held',
  )
  load_data(own, tell=told.append)
  assert any('3 rows are in all tables, and used (4 in bank.csv, 4 in telecom'
             in one for one in told)


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
    data.joined(frames, 'y', 'id')


@pytest.mark.parametrize('bank, shop', [
    (['39-23', '1'], ['3-923', '1']), (['-20', '1'], ['20', '1']),
    (['-', '1'], ['0', '1']), (['007', '7'], ['7', '07']),
])
def test_ids_that_differ_are_not_said_to_be_alike(bank, shop):
  frames = [pd.DataFrame(dict(id=bank, y=[0, 1])),
            pd.DataFrame(dict(id=shop, f=[1.0, 2.0]))]
  with pytest.warns(data.Recognised, match=r'2 in the table of party 1\)\.$'):
    data.joined(frames, 'y', 'id')


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


@pytest.mark.parametrize('bank, telecom, options, said', [
    (BANK, TELECOM.replace('who', 'whom'), {}, 'telecom.csv lacks the ids'),
    (BANK, TELECOM.replace('11', '9'), {}, '1 of 4 rows have the id of'),
    (BANK, TELECOM.replace('11', ''), {}, 'telecom.csv: row 1 has no id'),
    (BANK, 'who,calls\n1,2\n', {}, 'No id is in all tables .4 in bank'),
    (BANK, TELECOM.replace('calls', 'balance'), {}, "Several tables have 'bal"),
    (TELECOM, BANK, {}, "'late' must be in bank.csv, the first table"),
    (BANK, TELECOM, dict(drop='calls,plan'), 'no column besides .who'),
    (BANK, TELECOM, dict(drop='call'), "no column 'call'; did you mean 'calls"),
    (BANK, TELECOM, dict(drop='who'), 'must be different columns'),
    (BANK, TELECOM.replace('calls', 'late'), dict(ids='late'),
     'must be different'),
    (BANK, TELECOM.replace('calls', 'late'), {}, "have the label, 'late'. It"),
    (BANK.replace('balance', 'who'), TELECOM, {}, 'bank.csv: Two columns'),
    (BANK, 'who\n7\n', {}, "telecom.csv has no column besides 'who'"),
    (BANK, TELECOM, dict(ids=''), 'Which column has the ids of rows.*ids=cust'),
    (BANK, TELECOM, dict(label=''), 'Which column is the label'),
])
def test_what_cannot_be_joined_is_refused(
    bank, telecom, options, said, tmp_path
):
  with pytest.raises(ValueError, match=said):
    load(tmp_path, bank, telecom, **options)


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


def test_one_file_alone_and_a_missing_one_are_refused(tmp_path):
  with pytest.raises(ValueError, match='two files or more.*bank.csv;telecom'):
    load(tmp_path, BANK)
  path = f'{written(tmp_path, BANK)};{tmp_path}/no.csv'
  with pytest.raises(FileNotFoundError, match='no.csv is not there.*telecom'):
    data.load('parties', path, label='late', ids='who')


def test_a_column_of_two_tables_may_be_left_out_of_both(tmp_path):
  found = load(
      tmp_path, BANK, TELECOM.replace('calls', 'balance'), drop='balance',
  )
  assert found.names == ('plan=a', 'plan=b') and found.holders == (1, 1)


def test_other_splits_than_the_files_are_refused(tmp_path):
  found = load(tmp_path, BANK, TELECOM)
  with pytest.raises(ValueError, match='of 2 parties has .*split=held'):
    split.columns(found, 2)
  with pytest.raises(ValueError, match='split=held --config.data.parties=2'):
    split.columns(found, 3, 'held')
  with pytest.raises(ValueError, match='does not say which party'):
    split.columns(found._replace(holders=None), 2, 'held')


def test_parquet_and_gaps_are_read_as_alone(tmp_path):
  """An integer column with a gap has ids such as 7.0."""
  telecom = pd.DataFrame(dict(who=[11, 9, 7], calls=[1.0, None, 3.0]))
  telecom.to_parquet(tmp_path / 'telecom.parquet')
  path = f'{written(tmp_path, BANK)};{tmp_path / "telecom.parquet"}'
  own = dict(label='late', ids='who', text='late')
  with pytest.warns(data.Recognised, match='3 rows'):
    found = data.load('parties', path, missing='impute', **own)
  np.testing.assert_array_equal(found.features, [[10, 3], [30, 2], [40, 1]])
  with pytest.raises(ValueError, match="Missing values: 'calls' in 1 of 3"):
    with pytest.warns(data.Recognised):
      data.load('parties', path, **own)


def test_frames_of_a_program_are_joined():
  bank = pd.DataFrame(dict(who=['a', 'b'], late=[0, 1], x=[1.0, 2.0]))
  other = pd.DataFrame(dict(who=['b', 'a'], y=[3.0, None]))
  found = data.joined([bank, other], 'late', 'who', 'impute')
  np.testing.assert_array_equal(found.features, [[1, 3], [2, 3]])
  assert found.holders == (0, 1) and 'who' in bank
  for odd, said in (
      ([bank], 'two or more parties'),
      ([bank, other.assign(who=[1.0, 2.5])], 'has fractions'),
  ):
    with pytest.raises(ValueError, match=said):
      data.joined(odd, 'late', 'who')
  numbers = bank.assign(who=[1.0, 2.0]), other.assign(who=[2, 1])
  found = data.joined(numbers, 'late', 'who', 'impute')
  np.testing.assert_array_equal(found.features, [[1, 3], [2, 3]])


def test_columns_of_frames_may_have_numbers_for_names():
  """Dropped by its text, such a column once stayed."""
  bank = pd.DataFrame({'who': [1, 2], 0: [0, 1], 5: [7.0, 8.0], 6: [3.0, 4.0]})
  other = pd.DataFrame({'who': [2, 1], 7: [1.5, 2.5]})
  found = data.joined([bank, other], '0', 'who', drop='5')
  assert found.names == ('6', '7') and found.holders == (0, 1)
  np.testing.assert_array_equal(found.features, [[3, 2.5], [4, 1.5]])
  assert [*bank] == ['who', 0, 5, 6]


@pytest.mark.parametrize('frames, label, said', [
    (lambda a, b: a, 'late', 'one of each party; got a DataFrame'),
    (lambda a, b: None, 'late', 'got None'),
    (lambda a, b: [a, b.y], 'late', 'got a Series'),
    (lambda a, b: ['a.csv', 'b.csv'], 'late', 'got a list'),
    (lambda a, b: [a, b], 1, "a column as text, such as '5'; got 1"),
    # The rows would have gone with the ids of the first of two columns.
    (lambda a, b: [a, pd.concat([b, 3 - b[['who']]], axis=1)], 'late',
     "table of party 1: Two columns have the same name: 'who'"),
])
def test_what_is_no_list_of_frames_is_refused(frames, label, said):
  bank = pd.DataFrame(dict(who=[1, 2], late=[0, 1], x=[1.0, 2.0]))
  other = pd.DataFrame(dict(who=[2, 1], y=[3.0, 4.0]))
  with pytest.raises(ValueError, match=said):
    data.joined(frames(bank, other), label, 'who')


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


def test_a_passive_party_s_separator_is_that_which_finds_the_ids(tmp_path):
  found = load(tmp_path, BANK, 'who;used,in,all\n9;1\n7;2\n11;3\n')
  assert found.names == ('balance', 'used,in,all')


@pytest.mark.parametrize('holders', [(0, 2, 2, 2), (0, 1), (0, 1, 0, 1), 'abcd',
                                     (0.0, 1.5, 1.5, 1.5), (-1, 0, 1, 1)])
def test_holders_are_parties_of_whole_columns(holders, tmp_path):
  found = load(tmp_path, BANK, TELECOM)
  with pytest.raises(ValueError, match='holders must'):
    data.check(found._replace(holders=holders))


def test_a_record_has_the_names_of_all_files():
  said = recording.command(['x', '--config.data.path=/my/bank.csv;~/t.csv'])
  assert "'--config.data.path=bank.csv;t.csv'" in said
  assert files.bare('/my/bank.csv; ~/t.csv') == 'bank.csv;t.csv'
  assert asking.same_path('/data/nus/.', 'nus/') and files.bare('') == ''


def test_another_split_is_another_experiment(tmp_path):
  found, config = load(tmp_path, BANK, TELECOM), Config()
  other = found._replace(holders=(0, 0, 1, 1))
  assert asking.whose(config, found) != asking.whose(config, other)
