"""Which files are opened at all, and what is said of those that are not."""
import os
import socket
import tempfile

import numpy as np
import pytest

from vfljax import data
from vfljax.data import files, texts


def pipe(folder):
  os.mkfifo(folder / 'pipe')
  return folder / 'pipe'


def plug(folder):
  with socket.socket(socket.AF_UNIX) as made:
    made.bind(str(folder / 'plug'))
  return folder / 'plug'


@pytest.mark.parametrize('make', [
    lambda folder: '/dev/zero', pipe, plug, lambda folder: folder,
])
@pytest.mark.parametrize('name', ['csv', 'npz', 'mnist', 'texts', 'spambase'])
def test_what_has_no_end_is_refused_before_it_is_opened(name, make, tmp_path):
  with tempfile.TemporaryDirectory(dir='/tmp') as short:  # A socket's path is.
    place = make(type(tmp_path)(short))
    options = dict(label='y') if name == 'csv' else {}
    with pytest.raises(
        FileNotFoundError, match='a device, a pipe|is a folder|is not there'
    ) as error:
      data.load(name, str(place), **options)
  assert '\n' not in str(error.value)


def test_a_pipe_among_pictures_or_lists_is_refused(tmp_path):
  for part in ('train', 'test'):
    os.mkfifo(tmp_path / f'{part}_32x32.mat')
  with pytest.raises(FileNotFoundError, match='train_32x32.mat is a device'):
    data.load('svhn', str(tmp_path))
  for patient in 'ab':
    for i in range(2):
      (tmp_path / patient / '0').mkdir(parents=True, exist_ok=True)
      os.mkfifo(tmp_path / patient / '0' / f'{i}.png')
  with pytest.raises(FileNotFoundError, match='png is a device, a pipe'):
    data.load('bhi', str(tmp_path))


@pytest.mark.parametrize('path', ['~nobody-of-that-name/x', 'a\0b', 'x' * 5000])
@pytest.mark.parametrize('name', ['mnist', 'bhi', 'vehicle'])
def test_a_path_that_can_be_none_is_not_there(name, path):
  with pytest.raises(FileNotFoundError) as error:
    data.load(name, path)
  assert '\n' not in str(error.value) and len(str(error.value)) < 500


def test_other_readers_errors_become_a_line_that_names_the_file():
  class PanicException(BaseException):  # As a library in Rust has it.
    pass

  for error in (
      OverflowError('too\nlarge'), PanicException('too'), MemoryError(),
      RecursionError('too deep'), UnicodeDecodeError('utf-8', b'', 0, 1, 'too'),
  ):
    with pytest.raises(ValueError, match=r'^a\.csv is odd: ') as found:
      with files.reading('a.csv', 'is odd'):
        raise error
    assert '\n' not in str(found.value)
  with pytest.raises(KeyboardInterrupt):
    with files.reading('a.csv', 'is odd'):
      raise KeyboardInterrupt


def test_what_is_no_utf8_is_named_by_its_line(tmp_path):
  file = tmp_path / 'movie_reviews.tsv'
  file.write_bytes(b'1\tgood\n0\tbad caf\xe9\n')
  for name in ('reviews', 'texts'):
    with pytest.raises(ValueError, match=(
        'tsv, line 2: not UTF-8 from byte 10.*'
        '--config.data.options=encoding=latin-1'
    )) as error:
      data.load(name, str(file))
    assert '\n' not in str(error.value)
  # A byte order mark is no part of the first label.
  file.write_bytes(b'\xef\xbb\xbf1\tgood\n0\tbad\r\n')
  assert data.load('reviews', str(file)).labels.tolist() == [1, 0]


def test_utf16_is_told(tmp_path):
  file = tmp_path / 'movie_reviews.tsv'
  file.write_text('1\tgood\n0\tbad\n', 'utf-16')
  for options in ({}, dict(encoding='latin-1')):
    with pytest.raises(ValueError, match='tsv is UTF-16; save the file as'):
      data.load('reviews', str(file), **options)
  # Two letters of a Cyrillic encoding are the mark's bytes.
  file.write_bytes('\u044f\u044e\n'.encode('cp1251'))
  with pytest.raises(ValueError, match='line 1') as told:
    data.load('reviews', str(file), encoding='cp1251')
  assert 'UTF-16' not in str(told.value)


def test_a_file_may_be_in_another_encoding_that_is_named(tmp_path):
  file = tmp_path / 'movie_reviews.tsv'
  text = '1\tgood caf\xe9 it is\n0\tbad\r\n'
  file.write_text(text, 'utf-8', newline='')
  want = data.load('reviews', str(file))
  file.write_text(text, 'latin-1', newline='')
  found = data.load('reviews', str(file), encoding='latin-1')
  assert found.names == want.names and found.labels.tolist() == [1, 0]
  np.testing.assert_array_equal(found.features, want.features)
  assert list(files.lines(file, 'ISO-8859-1')) == [
      (1, '1\tgood caf\xe9 it is'), (2, '0\tbad')
  ]
  # Lines end elsewhere in UTF-16; the others encode no text, or are none.
  for odd in ('utf-16', 'base64', 'rot13', 'nope', '', 'a\0b', 'x' * 999):
    with pytest.raises(ValueError, match='encoding .* contains ASCII') as error:
      data.load('reviews', str(file), encoding=odd)
    assert '\n' not in str(error.value)
  with pytest.raises(ValueError, match='line 1: not ASCII from byte 11 on'):
    data.load('texts', str(file), encoding='ascii')


def test_texts_are_refused_by_the_bytes_of_their_numbers(
    tmp_path, monkeypatch
):
  """Four bytes each, before the tokenizer is read."""
  (tmp_path / 'tokenizer.json').write_text('{}')
  numbers = lambda: texts.tokens(['a', 'b', 'c'], str(tmp_path), 2, 500)
  monkeypatch.setattr(files, 'memory', lambda: 4 * 3 * 2 * 500 - 1)
  with pytest.raises(ValueError, match='2 times 500 tokens a text would'):
    numbers()
  monkeypatch.setattr(files, 'memory', lambda: 4 * 3 * 2 * 500)
  with pytest.raises(ValueError, match='is no tokenizer'):
    numbers()


def test_what_is_larger_than_memory_is_refused(monkeypatch, tmp_path):
  files.fits(files.memory(), 'all of it')
  with pytest.raises(ValueError, match='It would take .* GiB; this machine'):
    files.fits(10**18, 'It')
  np.savez(tmp_path / 'a.npz', x_train=np.eye(40), y_train=[0, 1] * 20)
  monkeypatch.setattr(files, 'memory', lambda: 10_000)
  with pytest.raises(ValueError, match=r'a\.npz holds would take'):
    data.load('npz', str(tmp_path / 'a.npz'))
  with pytest.raises(ValueError, match='samples, columns and classes would'):
    data.load('synthetic')


def test_a_container_may_have_less_memory_than_its_machine(
    monkeypatch, tmp_path
):
  (tmp_path / 'max').write_text('max\n')
  (tmp_path / 'some').write_text('1000000\n')
  places = [str(tmp_path / name) for name in ('not there', 'max', 'some')]
  monkeypatch.setattr(files, 'LIMITS', places[:2])
  assert files.memory() > 10**7
  monkeypatch.setattr(files, 'LIMITS', places)
  assert files.memory() == 10**6


def test_a_value_is_shown_in_few_letters():
  assert files.brief('abc') == "'abc'"
  assert len(files.brief('a' * 999)) < 70
  assert files.brief(10**6000) == 'a huge int'


def test_a_long_path_has_short_names_on_windows(monkeypatch):
  long = 'folder\\' * 40 + 'my.csv'
  with pytest.raises(FileNotFoundError, match='can have the name'):
    files.at(long)
  monkeypatch.setattr(os, 'sep', '\\')
  assert str(files.at(long)) == long
