"""Data sets kept as arrays: read once, then mapped, mended when damaged."""
import importlib
import os
import pathlib
import sys
import time

import numpy as np
import pytest

from vfljax import data, importing
from vfljax.data import cache


@pytest.fixture
def archive(tmp_path):
  draw = np.random.default_rng(0)
  images = lambda n: draw.integers(0, 256, (n, 28, 28), np.uint8)
  file = tmp_path / 'mnist.npz'
  np.savez(
      file, x_train=images(20), y_train=np.arange(20) % 10, x_test=images(5),
      y_test=np.arange(5),
  )
  return file


def load(archive, tmp_path):
  return data.load('mnist', str(archive), cache=str(tmp_path / 'kept'))


def same(a, b):
  for x, y in zip(a, b):
    if isinstance(x, np.ndarray):
      assert x.dtype == y.dtype
      np.testing.assert_array_equal(x, y)
    else:
      assert x == y


def test_the_second_read_is_a_map_of_the_first(archive, tmp_path, monkeypatch):
  plain = data.load('mnist', str(archive))
  first = load(archive, tmp_path)
  monkeypatch.setattr(np, 'concatenate', None)  # The loader needs it.
  again = load(archive, tmp_path)
  same(plain, first)
  same(plain, again)
  assert isinstance(again.features, np.memmap)
  with pytest.raises(ValueError, match='read-only'):
    again.features[0] = 0


@pytest.mark.parametrize('damage', [
    lambda folder: (folder / 'features.npy').write_bytes(b'short'),
    lambda folder: (folder / 'labels.npy').unlink(),
    lambda folder: (folder / 'table.json').write_text('{"version": 1'),
    lambda folder: (folder / 'table.json').write_text('[]'),
])
def test_a_damaged_cache_is_written_anew(archive, tmp_path, damage):
  plain = load(archive, tmp_path)
  folder, = (tmp_path / 'kept').iterdir()
  damage(folder)
  assert cache.read(folder) is None
  same(plain, load(archive, tmp_path))
  assert cache.read(folder) is not None
  assert [*(tmp_path / 'kept').iterdir()] == [folder]  # Nothing is left over.


def test_a_single_flipped_bit_is_noticed(archive, tmp_path):
  load(archive, tmp_path)
  folder, = (tmp_path / 'kept').iterdir()
  raw = bytearray((folder / 'features.npy').read_bytes())
  raw[-7] ^= 1
  (folder / 'features.npy').write_bytes(raw)
  assert cache.read(folder) is None


@pytest.mark.parametrize('old, new', [
    ('"classes": ["0"', '"classes": ["9"'), ('"names": []', '"names": ["x"]'),
    ('"groups": []', '"groups": [7]'), ('"version": 2', '"version": 3'),
])
def test_a_changed_name_in_the_cache_is_noticed(archive, tmp_path, old, new):
  plain = load(archive, tmp_path)
  folder, = (tmp_path / 'kept').iterdir()
  text = (folder / 'table.json').read_text()
  assert old in text
  (folder / 'table.json').write_text(text.replace(old, new))
  assert cache.read(folder) is None
  same(plain, load(archive, tmp_path))
  assert cache.read(folder) is not None


def test_a_file_with_size_and_time_of_another_is_another(archive, tmp_path):
  first = load(archive, tmp_path)
  before = archive.stat()
  np.savez(
      archive, x_train=255 - first.features[:20, ..., 0],
      y_train=np.arange(20) % 10, x_test=first.features[20:, ..., 0],
      y_test=np.arange(5),
  )
  os.utime(archive, ns=(before.st_atime_ns, before.st_mtime_ns))
  after = archive.stat()
  assert after.st_size == before.st_size
  assert after.st_mtime_ns == before.st_mtime_ns
  again = load(archive, tmp_path)
  np.testing.assert_array_equal(again.features[:20], 255 - first.features[:20])


def test_of_a_small_file_the_content_counts(archive, monkeypatch):
  # As where a file system has no times, or a change is too soon after another.
  monkeypatch.setattr(cache, '_stamp', lambda file: (file, 9, 0, 0, 0))
  key = lambda: cache.key('mnist', str(archive), {})
  before = key()
  assert key() == before
  raw = bytearray(archive.read_bytes())
  raw[-1] ^= 1
  archive.write_bytes(raw)
  assert key() != before


def test_of_a_large_file_inode_and_times_count(archive, monkeypatch):
  monkeypatch.setattr(cache, 'SMALL', 0)
  key = lambda: cache.key('mnist', str(archive), {})
  before, was = key(), archive.stat()
  other = archive.with_name('other')
  other.write_bytes(bytes(was.st_size))
  other.replace(archive)
  os.utime(archive, ns=(was.st_atime_ns, was.st_mtime_ns))
  assert key() != before


def test_what_changes_while_it_is_read_is_not_kept(archive, tmp_path):
  def read(path=''):
    table = data.REGISTRY['mnist'].load(path)
    archive.write_bytes(archive.read_bytes() + b' ')
    return table

  folder = tmp_path / 'kept'
  assert cache.code_of(read) is not None
  cache.cached(read, str(folder), 'mnist', str(archive), {})
  assert not folder.exists()


LOADER = """
import functools
from vfljax import data
import prep

theirs = data.REGISTRY['wine'].load

@functools.wraps(theirs)
def wrapped(path='', **options):
  return prep.cut(theirs('', **options))

def plain(path=''):
  return prep.cut(theirs(''))
"""


def test_a_loader_may_begin_with_a_byte_order_mark(tmp_path):
  """As some editors write it, and Python reads it."""
  file, found = tmp_path / 'mine.py', set()
  file.write_text('import os', 'utf-8-sig')
  importing.collect(file, found)
  assert found == {file}


def test_what_a_function_will_import_belongs_to_its_file(tmp_path, monkeypatch):
  """Also before it is called, and nothing is imported to find it."""
  (tmp_path / 'own_late/deep').mkdir(parents=True)
  texts = {
      'mine.py': 'def f():\n  import own_late.deep.two, xml.no_such\n',
      'own_late/__init__.py': '1 / 0',
      'own_late/deep/two.py': 'from own_late.deep import nobody, old\n',
      'own_late/deep/old.py': 'print "not imported"',
  }
  files = {tmp_path / name for name in texts}
  for name, text in texts.items():
    (tmp_path / name).write_text(text, 'utf-8-sig')  # With a byte order mark.
  monkeypatch.syspath_prepend(tmp_path)
  found = set()
  importing.collect(tmp_path / 'mine.py', found)
  assert found == files and 'own_late' not in sys.modules


def test_what_is_installed_elsewhere_is_nobodys_own(tmp_path, monkeypatch):
  """As by pip --target, in a folder of PYTHONPATH."""
  file = tmp_path / 'there/kit.py'
  file.parent.mkdir()
  file.write_text('')
  monkeypatch.syspath_prepend(tmp_path / 'there')
  importing._has_installed.cache_clear()
  assert importing.is_own(str(file))
  (tmp_path / 'there/kit-1.dist-info').mkdir()
  importing._has_installed.cache_clear()
  assert not importing.is_own(str(file))


@pytest.mark.parametrize('shipped', [False, True])
@pytest.mark.parametrize('which', ['plain', 'wrapped'])
@pytest.mark.parametrize('edited', ['mine.py', 'prep.py'])
def test_an_edited_loader_of_ones_own_reads_again(
    tmp_path, monkeypatch, edited, which, shipped
):
  """So it does if a file that it imports was edited, or if it wraps ours."""
  cut = 'def cut(table):\n  rows = slice(None, None, 1)\n  return ' \
      'table._replace(features=table.features[rows], labels=table.labels[rows])'
  (tmp_path / 'prep.py').write_text(cut)
  (tmp_path / 'mine.py').write_text(LOADER)
  (tmp_path / 'file').touch()
  monkeypatch.syspath_prepend(tmp_path)
  source = data.REGISTRY['wine']._replace(facts=None)

  def rows():
    for name in 'mine', 'prep':
      monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, 'dont_write_bytecode', True)
    importlib.invalidate_caches()
    cache._checksum_of_code.cache_clear()
    load = getattr(importlib.import_module('mine'), which)
    monkeypatch.setitem(data.REGISTRY, 'mine', source._replace(load=load))
    path = '' if shipped else str(tmp_path / 'file')
    table = data.load('mine', path, cache=str(tmp_path / 'kept'))
    return len(table.labels)

  assert rows() == rows() == 178 and (tmp_path / 'kept').exists()
  text = (tmp_path / edited).read_text()
  (tmp_path / edited).write_text(
      text.replace('None, 1', 'None, 2') if edited == 'prep.py'
      else text + '\nprep.cut = lambda table: table._replace('
      'features=table.features[::2], labels=table.labels[::2])'
  )
  assert rows() == 89


def test_a_folder_of_very_many_files_is_not_looked_through(
    archive, tmp_path, monkeypatch
):
  monkeypatch.setattr(cache, 'MOST', 1)
  (tmp_path / 'more').touch()
  (tmp_path / 'gone').symlink_to(tmp_path / 'nowhere')
  assert cache.key('mnist', str(tmp_path), {}) is None
  data.load('mnist', str(tmp_path), cache=str(tmp_path / 'kept'))
  assert not (tmp_path / 'kept').exists()


def test_another_file_or_option_is_another_data_set(archive, tmp_path):
  key = lambda **options: cache.key('mnist', str(archive), options)
  before = key()
  assert key(size=3) != before
  os.utime(archive, ns=(1, 1))
  assert key() != before
  folder = tmp_path / 'photos'
  (folder / 'a').mkdir(parents=True)
  (folder / 'a' / 'x.png').write_bytes(b'1')
  one = cache.key('bhi', str(folder), {})
  (folder / 'a' / 'y.png').write_bytes(b'2')
  assert cache.key('bhi', str(folder), {}) != one


def test_what_cannot_be_read_counts_by_its_name(tmp_path, monkeypatch):
  """A pipe is not opened; what a link leads to counts once it is there."""
  folder = tmp_path / 'photos'
  folder.mkdir()
  key = lambda **options: cache.key('bhi', str(folder), options)
  empty = key()
  os.mkfifo(folder / 'pipe')
  piped = key()
  (folder / 'gone').symlink_to(tmp_path / 'nowhere')
  linked = key()
  (folder / 'gone').rename(folder / 'away')
  renamed = key()
  (tmp_path / 'nowhere').write_bytes(b'1')
  there = key()
  assert len({empty, piped, linked, renamed, there}) == 5 and key() == there
  assert key(encoder='~nobody-of-that-name/x') not in (None, there)

  def refused(place):
    raise PermissionError(13, 'no', str(place))

  monkeypatch.setattr(pathlib.Path, 'read_bytes', refused)
  assert key() not in (None, there) and key() == key()


def test_a_cache_that_cannot_be_written_is_not_kept(archive, tmp_path):
  (tmp_path / 'kept').write_text('a file, no folder')
  same(data.load('mnist', str(archive)), load(archive, tmp_path))
  assert (tmp_path / 'kept').read_text() == 'a file, no folder'


def test_tables_keep_their_names_and_groups(tmp_path):
  file = tmp_path / 'people.csv'
  file.write_text('age,city,sick\n' + '40,Oslo,1\n50,Rome,0\n' * 5)
  plain = data.load('csv', str(file), 'sick', cache=str(tmp_path / 'kept'))
  assert not (tmp_path / 'kept').exists()  # One's own files are not copied.
  cache.write(tmp_path / 'table', plain)
  found = cache.read(tmp_path / 'table')
  assert found is not None
  assert found.groups == (0, 1, 1) and found.holders is None
  same(plain, found)
  cache.write(tmp_path / 'held', plain._replace(holders=(0, 1, 1)))
  found = cache.read(tmp_path / 'held')
  assert found is not None and found.holders == (0, 1, 1)


def test_what_a_stopped_write_left_is_removed_after_a_day(
    archive, tmp_path, monkeypatch
):
  """And nothing that somebody else may have put there."""
  kept = tmp_path / 'kept'

  class Stopped(BaseException):
    """As the end of the process, which removes nothing."""

  def stop(*_):
    raise Stopped

  with monkeypatch.context() as here:
    here.setattr(np, 'save', stop)
    here.setattr('tempfile.TemporaryDirectory.__exit__', lambda *_: None)
    here.setattr('tempfile.TemporaryDirectory._cleanup', lambda *_, **__: None)
    with pytest.raises(Stopped):
      load(archive, tmp_path)
  left, = kept.iterdir()
  others = [kept / 'tmpabc', kept / '.vfljax-cache', kept / 'mine.tmp']
  for other in others:
    other.mkdir()
  file, link = kept / '.vfljax-cache-a.tmp', kept / '.vfljax-cache-b.tmp'
  file.touch()
  link.symlink_to(tmp_path)
  age = time.time() - 2 * cache.OLD
  for path in left, *others, file:
    os.utime(path, (age, age))
  young = kept / '.vfljax-cache-c.tmp'
  young.mkdir()
  load(archive, tmp_path)
  assert not left.exists()
  for path in *others, file, link, young, archive:
    assert path.exists()
  assert len([*kept.iterdir()]) == 7  # The data set, too.
