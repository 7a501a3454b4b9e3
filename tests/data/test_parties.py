"""A table of each party, joined by ids: which rows, and who has what."""

import numpy as np
import pandas as pd
import pytest

from tests.party_files import BANK, TELECOM, load, written
from vfljax import data
from vfljax.data import files, split
from vfljax.runner.cli.arguments import load_data
from vfljax.runner.cli import asking
from vfljax.runner.config import Config, DataConfig
from vfljax.runner.workdir import recording


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
