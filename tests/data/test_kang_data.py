"""The raw files of Kang et al.'s data sets, in small."""
import numpy as np
import pytest

from tests.raw_layouts import (
    write_bhi, write_credit, write_nuswide, write_vehicle,
)
from vfljax import data
from vfljax.data import credit, nuswide


@pytest.mark.parametrize('numbered', [False, True])
def test_credit_drops_the_id_and_both_headers(tmp_path, numbered):
  write_credit(tmp_path, numbered)
  table = data.load('credit', str(tmp_path))
  np.testing.assert_array_equal(table.features[1], np.arange(2, 25))
  np.testing.assert_array_equal(table.labels, [1, 0, 1])
  assert len(credit.PARTY_A) == 10
  assert table.names[12] == 'BILL_AMT2' and credit.PARTY_A[0] == 'BILL_AMT3'


def test_credit_refuses_other_columns(tmp_path):
  (tmp_path / 'credit.csv').write_text('ID,a,b\n1,2,0\n')
  with pytest.raises(ValueError, match='3 columns'):
    data.load('credit', str(tmp_path))


@pytest.mark.parametrize('packed', [False, True])
def test_vehicle_keeps_two_types_of_both_files(tmp_path, packed):
  write_vehicle(tmp_path, packed)
  table = data.load('vehicle', str(tmp_path))
  assert table.features.shape == (12, 100)
  first = [0, 1, 3, 4, 6, 7, 10, 11, 13, 14, 16, 17]
  np.testing.assert_array_equal(table.features[:, 0], first)
  np.testing.assert_array_equal(table.features[:, 99], np.negative(first))
  np.testing.assert_array_equal(table.labels, [0, 1] * 6)
  assert table.names[49] == 'acoustic_50' and table.names[50] == 'seismic_1'
  assert len(data.load('vehicle', str(tmp_path), samples=5).labels) == 5


def test_vehicle_names_the_file_that_is_missing(tmp_path):
  write_vehicle(tmp_path)
  (tmp_path / 'combined.t').unlink()
  with pytest.raises(FileNotFoundError, match=r'combined\.t is not there'):
    data.load('vehicle', str(tmp_path))


@pytest.mark.parametrize('pair', [
    '101:1', '0:1', '-3:1', f'1{"0" * 30}:1', '3:x', '3', '3:', 'x:1',
    '9' * 5000 + ':1', '3:1e400',
])
def test_vehicle_names_the_line_that_is_odd(tmp_path, pair):
  write_vehicle(tmp_path)
  lines = (tmp_path / 'combined').read_text().splitlines()
  lines[4] = f'2 2:0.5 {pair}'
  (tmp_path / 'combined').write_text('\n'.join(lines))
  with pytest.raises(ValueError, match='combined|acoustic_3') as error:
    data.load('vehicle', str(tmp_path))
  said = str(error.value)
  assert '\n' not in said and len(said) < 400
  assert 'line 5' in said or pair == '3:1e400'  # That is refused as infinite.


def test_nuswide_takes_samples_of_exactly_one_concept(tmp_path):
  write_nuswide(tmp_path)
  table = data.load('nuswide', str(tmp_path), concepts='sky,lake')
  assert table.features.shape == (14, 1634)
  numbers = [*range(6), 7]
  np.testing.assert_array_equal(
      table.features[:, 0], [*numbers, *(n + 100 for n in numbers)]
  )
  np.testing.assert_array_equal(
      table.features[:, 634], [n % 2 for n in numbers] * 2
  )
  np.testing.assert_array_equal(table.labels, ([0] * 6 + [1]) * 2)
  np.testing.assert_array_equal(table.test, [False] * 7 + [True] * 7)
  tags = data.load('nuswide', str(tmp_path), concepts='sky,lake', only='tag')
  np.testing.assert_array_equal(tags.features, table.features[:, 634:])
  two = data.load('nuswide', str(tmp_path), concepts='sky,lake', ratio=2)
  np.testing.assert_array_equal(np.sort(two.labels), [0, 0, 0, 0, 1, 1])


@pytest.mark.parametrize(
    'ratio, counts', [(9, (9, 1)), (2, (10, 5)), (0.5, (5, 10))]
)
def test_balance_keeps_as_many_as_the_ratio_lets(ratio, counts):
  labels = np.array([0] * 10 + [1] * (10 if ratio < 1 else 5))
  kept = labels[nuswide.balance(labels, ratio)]
  assert ((kept == 0).sum(), (kept == 1).sum()) == counts


@pytest.mark.parametrize('file', [
    'Low_Level_Features/Test_Normalized_WT.dat',
    'NUS_WID_Tags/Train_Tags1k.dat',
    'Groundtruth/TrainTestLabels/Labels_lake_Test.txt',
])
def test_nuswide_names_the_file_that_is_missing(tmp_path, file):
  write_nuswide(tmp_path)
  (tmp_path / file).unlink()
  with pytest.raises(FileNotFoundError, match=file.split('/')[-1]):
    data.load('nuswide', str(tmp_path), concepts='sky,lake')


def test_nuswide_refuses_files_that_do_not_belong_together(tmp_path):
  write_nuswide(tmp_path)
  (tmp_path / 'NUS_WID_Tags/Test_Tags1k.dat').write_text('0 ' * 1000 + '\n')
  with pytest.raises(ValueError, match='Tags1k.dat has 1 rows, the other '):
    data.load('nuswide', str(tmp_path), concepts='sky,lake')


def test_bhi_pairs_patches_of_one_patient_and_label(tmp_path):
  write_bhi(tmp_path)
  table = data.load('bhi', str(tmp_path))
  assert table.features.shape == (15, 50, 100, 3)
  assert table.labels.sum() == 5
  left, right = table.features[:, 0, 0], table.features[:, 0, 99]
  np.testing.assert_array_equal(left[:, :2], right[:, :2])
  assert (left[:, 2] != right[:, 2]).all()
  np.testing.assert_array_equal(left[:, 1], table.labels * 100)
  assert table.test is not None
  held = set(left[table.test][:, 0].tolist())
  assert len(held) == 1
  assert not held & set(left[~table.test][:, 0].tolist())
  assert len(data.load('bhi', str(tmp_path), pairs=1).labels) == 10


def test_bhi_names_what_is_missing(tmp_path):
  write_bhi(tmp_path, 2)
  (tmp_path / 'empty').mkdir()
  with pytest.raises(FileNotFoundError, match='empty has no folder 0 or 1'):
    data.load('bhi', str(tmp_path))
  with pytest.raises(FileNotFoundError, match='is not a folder'):
    data.load('bhi', str(tmp_path / 'nowhere'))


def test_one_class_against_the_rest(tmp_path):
  x = np.zeros((20, 28, 28), np.uint8)
  y = np.arange(20) % 10
  np.savez(
      tmp_path / 'fashion_mnist.npz', x_train=x, y_train=y, x_test=x, y_test=y
  )
  table = data.load('fashion_mnist_binary', str(tmp_path))
  np.testing.assert_array_equal(table.labels, np.tile(y == 6, 2))
  assert table.classes == ('other', 'Shirt')
  with pytest.raises(ValueError, match='positive'):
    data.load('fashion_mnist_binary', str(tmp_path), positive=10)
