"""A data set that is registered from outside of the package is like ours."""
import functools

import numpy as np
import pandas as pd
import pytest

from tests import toy_data
from vfljax import data
from vfljax.data import cache
from vfljax.runner.cli import listing
from vfljax.runner.cli.arguments import load_data
from vfljax.runner.config import DataConfig
from vfljax.runner.errors import UserError


@pytest.fixture(autouse=True)
def registered(monkeypatch):
  monkeypatch.setitem(data.REGISTRY, 'toy', toy_data.SOURCE)


def write(folder, rows=6, columns=2, label=lambda i: i % 2):
  lines = [
      ' '.join(map(str, [*range(i, i + columns), label(i)]))
      for i in range(rows)
  ]
  (folder / 'toy.txt').write_text('\n'.join(lines))
  return str(folder)


def test_it_loads(tmp_path):
  table = data.load('toy', write(tmp_path))
  np.testing.assert_array_equal(table.features[5], [5, 6])
  np.testing.assert_array_equal(table.labels, [0, 1] * 3)
  assert data.options_of('toy') == dict(rows=0)
  assert len(data.load('toy', str(tmp_path), rows=2).labels) == 2
  found = load_data(DataConfig('toy', str(tmp_path), options='rows=4'))
  assert len(found.labels) == 4


def test_it_is_listed(tmp_path, monkeypatch):
  line = lambda: next(
      line.split('  ') for line in listing.text('data').splitlines()
      if line.startswith('  toy ')
  )
  said = {'toy', 'binary', '2: a number each', '6 x 2', 'CC0'}
  assert {'-', *said} <= {cell.strip() for cell in line()}
  write(tmp_path)
  monkeypatch.chdir(tmp_path)
  assert {'toy.txt', *said} <= {cell.strip() for cell in line()}


@pytest.mark.parametrize('file, options, message', [
    (dict(columns=3), {}, r'shape \(2,\) a row; these are of shape \(3,\)'),
    (dict(label=lambda i: 1), {}, "All 6 labels are 'yes'"),
    (dict(label=lambda i: i), {}, 'with 2 classes they must lie in 0..1'),
    ({}, dict(row=3), "'toy' has no option 'row'; it has rows"),
    ({}, dict(label='y'), "no option 'label'"),
])
def test_it_is_refused(tmp_path, file, options, message):
  with pytest.raises(ValueError, match=message):
    data.load('toy', write(tmp_path, **file), **options)


def test_it_says_how_to_get_it(tmp_path):
  with pytest.raises(FileNotFoundError, match='Write toy.txt yourself'):
    data.load('toy', str(tmp_path))
  with pytest.raises(UserError, match='Write toy.txt yourself'):
    load_data(DataConfig('toy'))


def test_a_part_of_it_is_warned_of(tmp_path):
  with pytest.warns(data.Mismatch, match='4 rows instead of 6 .toys.example'):
    data.load('toy', write(tmp_path, rows=4))


def kept(folder, path):
  data.load('toy', path, cache=str(folder))
  return sorted(folder.iterdir()) if folder.exists() else []


def test_it_is_kept_until_its_code_changes(tmp_path, monkeypatch):
  path, folder = f'{write(tmp_path)}/toy.txt', tmp_path / 'kept'
  assert len(kept(folder, path)) == 1
  assert len(kept(folder, path)) == 1
  other = tmp_path / 'toy_data.py'
  other.write_text('# Another version of the loader.')
  monkeypatch.setattr(toy_data, '__file__', str(other))
  assert len(kept(folder, path)) == 2


def test_it_is_not_kept_if_it_is_ones_own_or_typed_in(tmp_path, monkeypatch):
  path, folder = f'{write(tmp_path)}/toy.txt', tmp_path / 'kept'
  own = toy_data.SOURCE._replace(own=True)
  monkeypatch.setitem(data.REGISTRY, 'toy', own)
  assert not kept(folder, path)
  monkeypatch.setitem(data.REGISTRY, 'toy', toy_data.SOURCE)
  monkeypatch.delattr(toy_data, '__file__')  # As in a notebook.
  assert not kept(folder, path)


def test_a_partial_loaders_code_is_its_functions():
  few = functools.partial(toy_data.load, rows=2)
  assert cache.code_of(few) == cache.code_of(toy_data.load) is not None
  assert cache.code_of(few) != cache.code_of(data.load)


LOADER = '''
import numpy as np
from vfljax.data import Table

def load(path):
  x, y = np.zeros((4, 2), np.float32), np.int32([0, 1, 0, 1])
  table = Table(x, y, ('a', 'b'), ('0', '1'), (0, 1))
  {line}
  return table
'''


@pytest.mark.parametrize('line, said', [
    ('x = npp.abs(x)', "NameError: name 'npp' is not defined"),
    ('x = x.aabs()', 'AttributeError: '), ('x[:, 9]', 'IndexError: '),
    ('{}["features"]', "KeyError: 'features'"), ('len(3)', 'TypeError: '),
    ('np.random.default_rng(0).normal(size="a")', 'TypeError: '),  # Compiled.
    ('x.reshape(7, 3)', 'cannot reshape array of size 8'),
    ('open("nowhere.txt")', 'FileNotFoundError: '),
    ('assert len(x) == 3', 'AssertionError: assert len(x) == 3'),
    ('raise SystemExit(3)', 'SystemExit: 3'),
])
@pytest.mark.parametrize('path', ['', 'some/file'])
def test_errors_of_its_loader_name_its_line(
    tmp_path, monkeypatch, line, said, path
):
  """And what a loader has to be."""
  file = tmp_path / 'mine.py'
  file.write_text(LOADER.format(line=line))
  own = {}
  exec(compile(file.read_text(), str(file), 'exec'), own)
  source = toy_data.SOURCE._replace(load=own['load'])
  monkeypatch.setitem(data.REGISTRY, 'toy', source)
  with pytest.raises(UserError) as error:
    load_data(DataConfig('toy', path))
  first, second = str(error.value).splitlines()
  assert first.startswith(f'toy: {file}, line 8: ') and said in first
  assert second == (
      f'Its loader in {file}, line 5 is called with the path and its options, '
      'and must return a vfljax.data.Table.'
  )


@pytest.mark.parametrize('change, message', [
    (lambda t: dict(features=t.features.tolist()),
     'toy.txt: features must be a NumPy array; got a list: type features=np.'),
    (lambda t: dict(labels=t.labels.tolist()), 'np.asarray.labels, np.int32'),
    (lambda t: dict(classes=2), 'classes must be a tuple.*; got an int.$'),
    (lambda t: dict(features=t.features.astype(float)), 'type features.astype'),
    # Its index may be the rows' old order, by which labels would be taken.
    (lambda t: dict(labels=pd.Series(t.labels, range(1, 1 + len(t.labels)))),
     'labels must be a NumPy array; got a Series: type labels=np.asarray'),
    (lambda t: dict(labels=np.ma.masked_less(t.labels, 1)),
     'labels must have no mask'),
    (lambda t: dict(test=pd.Series(t.labels > 0)), 'must be bool.*got Series'),
    (lambda t: dict(groups=np.array(t.groups)),
     r'groups must be .*: type groups=tuple\(groups\).$'),
    (lambda t: dict(classes=tuple(np.unique(t.labels))),
     r'classes must be texts.*classes=tuple\(map\(str, classes\)\)'),
    (lambda t: dict(names=tuple(range(len(t.names)))), 'names must be texts'),
])
def test_a_table_of_other_kinds_is_told_what_to_type(
    tmp_path, monkeypatch, change, message
):
  changed = lambda path: (t := toy_data.load(path))._replace(**change(t))
  source = toy_data.SOURCE._replace(load=changed)
  monkeypatch.setitem(data.REGISTRY, 'toy', source)
  write(tmp_path)
  for missing in ('refuse', 'impute'):
    with pytest.raises(ValueError, match=message):
      data.load('toy', f'{tmp_path}/toy.txt', missing=missing)


def test_without_a_path_errors_name_the_data_set(monkeypatch):
  load = lambda path: data.load('wine')._replace(names=('a',))
  source = toy_data.SOURCE._replace(load=load)
  monkeypatch.setitem(data.REGISTRY, 'toy', source)
  with pytest.raises(ValueError, match='^toy: There are 13 columns, 1 colu'):
    data.load('toy')


def test_its_loader_must_return_a_table(tmp_path, monkeypatch):
  """Also where it would be kept; and its test mask must be one."""
  load = lambda change: lambda path='': change(toy_data.SOURCE.load(path))
  place = write(tmp_path)
  for change, message in (
      (tuple, 'loader of toy must return a data.table.Table; it returned a t'),
      (lambda t: t._replace(test=t.labels), 'mask must be bool.* got int32'),
  ):
    source = toy_data.SOURCE._replace(load=load(change))
    monkeypatch.setitem(data.REGISTRY, 'toy', source)
    for cached in ('', str(tmp_path / 'cache')):
      for missing in ('refuse', 'impute'):
        with pytest.raises(ValueError, match=message):
          data.load('toy', place, cache=cached, missing=missing)
