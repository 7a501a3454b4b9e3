"""CSV files as spreadsheets write them: recognised, or asked about by name."""
import bz2
import codecs
import gzip

import numpy as np
import pytest

from vfljax import data
from vfljax.runner.arguments import load_data
from vfljax.runner.config import DataConfig

TEXT = 'Größe,Ort,y\n1.5,Zürich,0\n2.5,Köln,1\n3.5,Köln,1\n'
NAMES = ('Größe', 'Ort=Köln', 'Ort=Zürich')


def load(folder, content, **options):
  (folder / 'a.csv').write_bytes(content)
  return data.load('csv', str(folder / 'a.csv'), 'y', **options)


@pytest.mark.parametrize('sep', [',', ';', '\t', '|', ' ', '   '])
def test_separators_are_recognised(sep, tmp_path):
  table = load(tmp_path, TEXT.replace(',', sep).encode())
  assert table.names == NAMES
  np.testing.assert_array_equal(table.features[:, 0], [1.5, 2.5, 3.5])


def test_the_label_decides_which_separator_it_is(tmp_path):
  # More semicolons than commas, but the label stands between commas.
  table = load(tmp_path, b'a;b;c;d,e,y\n1;2;3;4,5,0\n1;2;3;5,6,1\n')
  assert [*dict.fromkeys(n.split('=')[0] for n in table.names)] == [
      'a;b;c;d', 'e'
  ]


def test_quoted_separators_in_a_header_are_none(tmp_path):
  table = load(tmp_path, b'"a;b;c",d,y\n1,2,0\n3,4,1\n')
  assert table.names == ('a;b;c', 'd')


@pytest.mark.parametrize('encode', [
    lambda s: s.encode(), lambda s: codecs.BOM_UTF8 + s.encode(),
    lambda s: s.encode('utf-16'),
    lambda s: codecs.BOM_UTF16_BE + s.encode('utf-16-be'),
])
def test_encodings_with_and_without_a_mark_are_recognised(encode, tmp_path):
  table = load(tmp_path, encode(TEXT.replace(',', ';')))
  assert table.names == NAMES and table.classes == ('0', '1')


@pytest.mark.parametrize('suffix, pack', [
    ('.gz', gzip.compress), ('.bz2', bz2.compress),
])
def test_compressed_files_are_recognised_too(suffix, pack, tmp_path):
  file = tmp_path / f'a.csv{suffix}'
  file.write_bytes(pack(TEXT.replace(',', ';').encode('latin-1')))
  with pytest.warns(data.Recognised, match='latin-1'):
    assert data.load('csv', str(file), 'y').names == NAMES


def test_latin_1_is_recognised_and_told(tmp_path, capsys):
  file = tmp_path / 'a.csv'
  file.write_bytes(TEXT.encode('latin-1'))
  table = load_data(DataConfig('csv', str(file), 'y'))
  assert table.names == NAMES
  said = capsys.readouterr().err
  assert said.startswith('warning: ') and 'is read as latin-1' in said
  assert said.strip().endswith('--config.data.options=encoding=cp1250')
  # Said by whom it is, it is read in silence.
  assert load(tmp_path, TEXT.encode('cp1252'), encoding='cp1252').names == NAMES


def test_damaged_utf_8_is_not_taken_for_latin_1(tmp_path):
  with pytest.raises(ValueError, match=(
      '1 characters are not UTF-8, and 5 beyond ASCII are.*encoding=latin-1'
  )):
    load(tmp_path, TEXT.encode() + b'4.5,\xff,1\n')


def test_a_character_on_the_edge_of_a_block_is_whole(tmp_path, monkeypatch):
  from vfljax.data import dialect
  for size in range(1, 9):
    monkeypatch.setattr(dialect, '_BLOCK', size)
    assert load(tmp_path, TEXT.encode()).names == NAMES


COMMAS = 'x;z;y\n1,5;2;0\n-0,25;3;1\n'


def test_decimal_commas_are_asked_about_and_read(tmp_path):
  with pytest.raises(ValueError, match=(
      "'x' has numbers with a decimal comma, like '1,5'.*options=decimal=comma"
  )):
    load(tmp_path, COMMAS.encode())
  table = load(tmp_path, COMMAS.encode(), decimal='comma')
  np.testing.assert_array_equal(table.features, [[1.5, 2], [-0.25, 3]])
  assert load(tmp_path, COMMAS.encode(), text='x').names == (
      'x=-0,25', 'x=1,5', 'z'
  )


@pytest.mark.parametrize('text, ends', [
    ('x;y\n1;0\n;1\n', '--config.data.options=drop=x leaves a column out.'),
    ('x;Target\n1;0\n2;1\n', 'the columns are x, Target.'),
    ('empty,x,y\n,1,0\n,2,1\n', '--config.data.options=drop=empty'),
    ('x y,z,y\n' + ''.join(f'a{i},1,{i % 2}\n' for i in range(200)),
     "or raise the limit, --config.data.options=categories=200"),
    ('x,y\n' + ''.join(f'{i or "a"},{i % 2}\n' for i in range(40)),
     'make every value a category, --config.data.options=text=x'),
])
def test_messages_end_in_what_to_type(text, ends, tmp_path):
  missing = 'impute' if text.startswith('empty') else 'refuse'
  with pytest.raises(ValueError) as error:
    load(tmp_path, text.encode(), missing=missing)
  assert str(error.value).endswith(ends) and '\n' not in str(error.value)


def test_names_with_blanks_are_quoted_as_a_shell_takes_them(tmp_path):
  text = 'my x,y\n' + ''.join(f'a{i},{i % 2}\n' for i in range(200))
  with pytest.raises(ValueError, match="--config.data.options='drop=my x'"):
    load(tmp_path, text.encode())


def test_a_label_written_otherwise_is_named_with_its_flag(tmp_path):
  (tmp_path / 'a.csv').write_text('x,Target\n1,0\n2,1\n')
  with pytest.raises(ValueError, match="'Target'. --config.data.label=Target"):
    data.load('csv', str(tmp_path / 'a.csv'), 'target')
