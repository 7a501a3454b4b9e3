"""What data sets say of themselves, and what deviates from it."""
import warnings

import numpy as np
import pytest

from vfljax import data
from vfljax.data import nuswide, source
from vfljax.data.source import Facts, Mismatch, Source, check_facts
from vfljax.data.table import Table
from vfljax.runner.cli import listing
from vfljax.runner.cli.arguments import load_data
from vfljax.runner.config import DataConfig


OFFICIAL = {
    name: source.facts for name, source in data.REGISTRY.items() if source.facts
}


def write(folder, name, x, y, test=0):
  """An .npz file in Keras's layout; the last `test` rows are the test set."""
  cut = len(y) - test
  np.savez(
      folder / f'{name}.npz', x_train=x[:cut], y_train=y[:cut], x_test=x[cut:],
      y_test=y[cut:],
  )
  return str(folder)


def labels(name):
  """The official labels: as many of each class as there are."""
  counts = [int(c) for c in OFFICIAL[name].counts]
  return np.repeat(np.arange(len(counts)), counts)


def test_the_numbers_add_up():
  for name, known in OFFICIAL.items():
    total = sum(known.counts)
    assert total == known.train + known.test or known.about or total == 1, name
    assert known.source
    options = data.options_of(name)
    assert all(key in options for key, _ in known.whole), name
    assert data.REGISTRY[name].size == known.size
  # Positives' shares, as the papers give them.
  share = lambda name: OFFICIAL[name].counts[1] / sum(OFFICIAL[name].counts)
  assert share('spambase') == pytest.approx(0.394, abs=1e-3)
  assert share('credit') == pytest.approx(0.2212, abs=1e-4)
  assert share('bhi') == pytest.approx(1 / 3.5, abs=0.01)  # Kang et al.: 1:2.5.
  assert share('isic') < 0.02  # GAFM, appendix E.1.


def test_the_table_says_what_is_to_be_had():
  line = next(
      line for line in listing.text('data').splitlines()
      if line.startswith('  cifar10 ')
  )
  assert '50000 + 10000 x 32x32x3' in line and 'none stated' in line


@pytest.mark.parametrize('name', ['breast_cancer', 'digits', 'wine'])
def test_what_is_official_is_not_spoken_of(name):
  with warnings.catch_warnings():
    warnings.simplefilter('error')
    data.load(name)


def test_a_whole_data_set_passes_and_a_half_is_warned_of(tmp_path):
  # MNIST's pixels have a mean of 33.3, as every tutorial's 0.1307 * 255.
  y, x = labels('mnist'), np.full((70000, 28, 28), 33, np.uint8)
  order = np.random.default_rng(0).permutation(70000)
  with warnings.catch_warnings():
    warnings.simplefilter('error')
    data.load('mnist', write(tmp_path, 'mnist', x, y[order], 10000))
  half = write(tmp_path, 'mnist', x[:40000], y[order][:40000], 10000)
  with pytest.warns(Mismatch, match='30000 training rows instead of 60000 '):
    data.load('mnist', half)
  with pytest.warns(Mismatch, match='shares of classes are'):
    data.load('mnist', write(tmp_path, 'mnist', x, y * (y != 7), 10000))
  with pytest.warns(Mismatch, match='one: the mean of channel 0 is 72 instead'):
    data.load('mnist', write(tmp_path, 'mnist', x + 39, y[order], 10000))


def spam(folder, rows=4601, spams=1813, columns=57):
  # The means that UCI's documentation gives of the first and the last three.
  cells = ['0.10455', *['0.5'] * (columns - 4), '5.1915', '52.173', '283.29']
  lines = [f'{",".join(cells)},{int(i < spams)}' for i in range(rows)]
  (folder / 'spambase.data').write_text('\n'.join(lines))
  return str(folder)


def test_shares_far_off_are_warned_of(tmp_path):
  with warnings.catch_warnings():
    warnings.simplefilter('error')
    data.load('spambase', spam(tmp_path))
    data.load('spambase', spam(tmp_path, spams=1800))  # Not far off.
  with pytest.warns(Mismatch, match="'spam' 65.2% instead of 39.4%") as seen:
    data.load('spambase', spam(tmp_path, spams=3000))
  assert 'archive.ics.uci.edu' in str(seen[0].message)
  assert '\n' not in str(seen[0].message)


def test_another_file_of_the_same_shape_is_warned_of(tmp_path):
  place = tmp_path / 'spambase.data'
  spam(tmp_path)
  place.write_text(place.read_text().replace('283.29', '28.329'))
  with pytest.warns(Mismatch, match=(
      'is not the whole official one: the mean of capital_run_length_total is '
      '28.33 instead of 283.3'
  )):
    data.load('spambase', str(tmp_path))


def check(name, table, options):
  return check_facts(name, OFFICIAL.get(name), table, options)


def test_other_features_or_classes_are_another_data_set():
  table = data.load('wine')
  assert check('wine', table, {}) is table
  with pytest.raises(ValueError, match=r'cifar10 .* \(32, 32, 3\).* \(13,\)'):
    check('cifar10', table, {})
  wider = table._replace(classes=(*table.classes, 'more'))
  with pytest.raises(ValueError, match='wine has 3 classes; here are 4: class'):
    check('wine', wider, {})
  assert check('csv', wider, {}) is wider


def test_of_many_odd_means_three_are_named():
  means = tuple((i, 2.0 + i) for i in range(5))
  facts = Facts(1, (1,), 'here', (5,), means=means)
  found, = source._means(facts, Table(
      np.array([[0, 3, 5, 7, 9]], np.float32), np.zeros(1, np.int32),
      tuple('abcde'), ('no', 'yes'), tuple(range(5)),
  ))
  assert found == (
      'the mean of a is 0 instead of 2, the mean of c is 5 instead of 4, the '
      'mean of d is 7 instead of 5 and 1 more'
  )


def test_who_asks_for_a_part_is_not_told_that_it_is_one():
  table = data.load('wine')._replace(
      features=np.zeros((178, 39), np.float32), classes=('no click', 'click'),
      labels=np.arange(178, dtype=np.int32) % 2,
  )
  options = data.options_of('criteo')
  with warnings.catch_warnings():
    warnings.simplefilter('error')
    check('criteo', table, options)  # 100000 rows by default.
  with pytest.warns(Mismatch, match='178 rows instead of 45840617'):
    check('criteo', table, options | dict(rows=0))


def test_nuswide_counts_the_rows_of_its_files(tmp_path, monkeypatch):
  files = lambda file, columns=0: np.ones((3, columns or 634), np.float32)
  monkeypatch.setattr(nuswide, '_matrix', files)
  monkeypatch.setattr(nuswide, 'FEATURES', ('CH',))
  with pytest.warns(Mismatch, match='Train has 3 rows instead of 161789'):
    nuswide.load(str(tmp_path))


def test_a_data_set_is_looked_for_by_its_customary_names(tmp_path):
  (tmp_path / 'tiny-imagenet-200').mkdir()
  (tmp_path / 'mnist.npz').touch()
  found = {
      name: source.present([str(tmp_path / 'none'), str(tmp_path)])
      for name, source in data.REGISTRY.items()
  }
  assert found['tiny_imagenet'] == str(tmp_path / 'tiny-imagenet-200')
  assert found['mnist'] == str(tmp_path / 'mnist.npz')
  assert found['wine'] == found['synthetic'] == 'with us'
  assert found['cifar10'] == found['csv'] == ''


def test_the_size_is_that_of_the_facts_or_said_in_words():
  known = Facts(6, (4, 4), 'us', (2, 3), test=2)
  source = Source(data.load, 'any', 'draw it', 'none', extent='(lines) x 3')
  assert source.size == '(lines) x 3'
  assert source._replace(facts=known).size == '6 + 2 x 2x3'
  assert known._replace(shape=(), test=0).size == '6 x (by option)'


def test_a_persons_own_files_are_marked():
  own = {name for name, source in data.REGISTRY.items() if source.own}
  assert own == {'reviews', 'texts', 'npz', 'csv', 'parquet', 'parties'}


def test_every_data_set_is_listed():
  text = listing.text('data')
  for name in data.REGISTRY:
    assert f'  {name} ' in text
  assert 'how to get it' in text


def test_the_command_line_says_it_in_one_line(tmp_path, capsys):
  load_data(DataConfig('spambase', spam(tmp_path, 20, 8)))
  said = capsys.readouterr().err
  assert said.startswith('warning: This spambase is not the whole official')
  assert said.count('\n') == 1
