"""CSV files as spreadsheets write them: recognised, or asked about by name."""
import bz2
import codecs
import gzip

import numpy as np
import pytest

from vfljax import data
from vfljax.data import dialect
from vfljax.runner.cli.arguments import load_data
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


def test_an_encoding_is_recognised_at_the_end_of_a_long_file(
    tmp_path, monkeypatch
):
  monkeypatch.setattr(dialect, '_BLOCK', 16)  # Bytes that are read at a time.
  plain = b'place,y\n' + b'Bern,0\nBern,1\n' * 9
  with pytest.warns(data.Recognised, match='latin-1'):
    table = load(tmp_path, plain + 'Köln,1\n'.encode('latin-1'))
  assert table.names == ('place=Bern', 'place=Köln')


def test_the_label_decides_which_separator_it_is(tmp_path):
  # More semicolons than commas, but the label stands between commas.
  table = load(tmp_path, b'a;b;c;d,e,y\n1;2;3;4,5,0\n1;2;3;5,6,1\n')
  assert [*dict.fromkeys(n.split('=')[0] for n in table.names)] == [
      'a;b;c;d', 'e'
  ]


@pytest.mark.parametrize('encode', [
    lambda s: s.encode(), lambda s: codecs.BOM_UTF8 + s.encode(),
    lambda s: s.encode('utf-16'),
])
@pytest.mark.parametrize('first', ['sep=;\n', '"sep=;"\r\n', 'SEP=;\n'])
def test_excels_first_line_says_the_separator_and_is_no_row(
    first, encode, tmp_path
):
  # More commas than semicolons: by the header alone it would be a comma.
  text = 'a,b,c;d,e,f;y\n1;2;0\n3;4;1\n'
  table = load(tmp_path, encode(first + text))
  assert table.names == ('a,b,c', 'd,e,f')
  np.testing.assert_array_equal(table.features, [[1, 2], [3, 4]])
  with pytest.raises(ValueError, match="same name: 'a', 'a'"):
    load(tmp_path, encode(first + 'a;a;y\n1;2;0\n3;4;1\n'))
  with pytest.raises(ValueError, match="no column 'y'"):
    load(tmp_path, encode(first + text), sep='comma')


def test_blank_lines_above_excels_are_left_out_with_it(tmp_path):
  table = load(tmp_path, b'\r\n\r\nsep=;\r\na,b;c;y\r\n1;2;0\r\n3;4;1\r\n')
  assert table.names == ('a,b', 'c')


def test_what_is_no_separator_is_no_first_line_of_excel(tmp_path):
  """It would be refused as an option that nobody typed."""
  with pytest.raises(ValueError, match='the first line must be the header'):
    load(tmp_path, b'sep=.\na;b;y\n1;2;0\n3;4;1\n')


def test_advice_of_separators_is_not_the_one_that_was_tried(tmp_path):
  export = b'# export\na;b;y\n1;2;0\n3;4;1\n'
  with pytest.raises(ValueError, match='=semicolon; the first line must be'):
    load(tmp_path, export)
  with pytest.raises(ValueError, match='=comma; the first line must be'):
    load(tmp_path, export, sep='semicolon')


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
      '1 characters are not UTF-8, but 5 beyond ASCII are.*encoding=latin-1'
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


def test_decimal_commas_stand_between_commas_if_quoted(tmp_path):
  text = b'x,y\n"1,5",0\n"-0,25",1\n'
  table = load(tmp_path, text, decimal='comma')
  np.testing.assert_array_equal(table.features, [[1.5], [-0.25]])
  with pytest.raises(ValueError, match='more fields than the header'):
    load(tmp_path, text.replace(b'"', b''), decimal='comma')


@pytest.mark.parametrize('cells, said', [
    (['1,234.5', '-2', '12,345,678', '0.25'], ''),
    (['1,234,567', '20'], ''), (['1,234', '2.5'], ''),
    (['1,234', '20'], 'point'), (['1.234', '20'], 'comma'),
    (['1.234,5', '20', '-0,25'], 'comma'), (['1 234', '20.5'], ''),
    (["1'234'567", '20.5', '1e3'], ''), (['1\u00a0234,5', '20'], 'comma'),
    (['1,234', ' ', '+20.5', 'NULL '], ''),
])
def test_thousands_are_parted_in_many_ways(cells, said, tmp_path):
  rows = ''.join(f'{c}\t{i % 2}\n' for i, c in enumerate(cells))
  table = load(
      tmp_path, f'x\ty\n{rows}'.encode(), decimal=said, missing='impute'
  )
  mark = {'': '.', 'point': '.', 'comma': ','}[said]
  numbers = [
      float(''.join(s for s in c if s in f'+-e0123456789{mark}')
            .replace(mark, '.')) for c in cells if c.strip()[-1:].isdigit()
  ]
  numbers += [np.median(numbers)] * (len(cells) - len(numbers))
  found = table.features[:, 0]
  np.testing.assert_allclose(np.sort(found), np.sort(np.float32(numbers)))


@pytest.mark.parametrize('cells, message', [
    (['1,234', '20'], "'1,234'. If it separates thousands.*=decimal=point; if"),
    (['1,234', '?', '1,235', '-'], "has numbers, and '.?', '-' in 2 of 4 cel"),
    (['1.234,5', '20'], "'1.234,5': read them with .*options=decimal=comma"),
    (['1.234.567', '2.000'], "'1.234.567', that may separate thousands"),
])
def test_numbers_of_two_readings_are_asked_about(cells, message, tmp_path):
  rows = ''.join(f'{c}\t{i % 2}\n' for i, c in enumerate(cells))
  with pytest.raises(ValueError, match=message):
    load(tmp_path, f'x\ty\n{rows}'.encode())


@pytest.mark.parametrize('cells, said, expected', [
    (['1.100', '950'], '', None), (['-1.100', ' ', '7'], '', None),
    (['1.100', '950'], 'point', [1.1, 950]),
    (['1.100', '950'], 'comma', [1100, 950]),
    # No thousands: another number of digits, a leading zero, points throughout.
    (['1.10', '950'], '', [1.1, 950]), (['0.100', '950'], '', [0.1, 950]),
    (['1.100', '2.500'], '', [1.1, 2.5]), (['1.100', '1950'], '', [1.1, 1950]),
])
def test_points_between_semicolons_may_separate_thousands(
    cells, said, expected, tmp_path
):
  rows = ''.join(f'{c};{i};{i % 2}\n' for i, c in enumerate(cells))
  text = f'x;z;y\n{rows}'.encode()
  if expected is None:
    with pytest.raises(ValueError, match='1.100., that may .*=decimal=comma'):
      load(tmp_path, text, decimal=said, missing='impute')
  else:
    found = load(tmp_path, text, decimal=said).features[:, 0]
    np.testing.assert_allclose(found, np.float32(expected))


@pytest.mark.parametrize('cells', [
    ['1.100', '950', '?'], ['1.100', '950', ' NA '],
    ['1.100', '950', '\u22127'], ['950'] * 10_000 + ['1.100'],
])
def test_gaps_signs_and_sorted_rows_hide_no_such_points(cells, tmp_path):
  rows = ''.join(f'{c};{i % 3};{i % 2}\n' for i, c in enumerate(cells))
  with pytest.raises(ValueError, match='1.100., that may .*=decimal=comma'):
    load(tmp_path, f'x;z;y\n{rows}'.encode(), gaps='?', missing='impute')


def test_decimals_anywhere_say_what_a_point_is(tmp_path):
  text = b'x;z;y\n1.125;2.5;0\n2;3.5;1\n3;4.5;1\n'
  found = load(tmp_path, text).features
  np.testing.assert_array_equal(found, [[1.125, 2.5], [2, 3.5], [3, 4.5]])


def test_points_may_be_decimal_marks_between_tabs(tmp_path):
  text = b'x\tz\ty\n1.100\t1\t0\n950\t2\t1\n'
  found = load(tmp_path, text).features[:, 0]
  np.testing.assert_allclose(found, np.float32([1.1, 950]))


def test_a_column_of_words_may_have_points_between_semicolons(tmp_path):
  text = b'x;z;y\n1.100;1;0\n950;2;1\n'
  assert load(tmp_path, text, text='x').features.shape[1] == 3


@pytest.mark.parametrize('cells', [
    ['12.5.2020', '1.6.2021'], ['01 234', '20 345'], ['A1,234', 'B2'],
    ['1,23,456', '7'], ['192.168.100', 'x'],
])
def test_what_is_no_number_stays_a_word(cells, tmp_path):
  rows = ''.join(f'{c}\t{i % 2}\n' for i, c in enumerate(cells))
  found = load(tmp_path, f'x\ty\n{rows}'.encode()).names
  assert found == tuple(sorted(f'x={c}' for c in cells))


def test_words_stand_for_gaps_if_somebody_says_so(tmp_path):
  # Of three cells one: as often as a category might be.
  text = 'x,z,y\n' + '1,a,0\n?,?,1\n3, ? ,0\n-999,b,1\n' * 9
  with pytest.raises(ValueError, match=(
      "'x' has numbers, and '.' in 9 of 36 cells. .*options='gaps=.'; if eve"
  )):
    load(tmp_path, text.encode())
  table = load(
      tmp_path, text.encode(), gaps='?,-999', missing='impute'
  )
  assert table.names == ('x', 'z=(missing)', 'z=a', 'z=b')
  assert table.features[:4].tolist() == [
      [1, 0, 1, 0], [2, 1, 0, 0], [3, 1, 0, 0], [2, 0, 0, 1]
  ]
  table = load(tmp_path, text.encode(), text='x', drop='z')
  assert table.names == ('x=-999', 'x=1', 'x=3', 'x=?')


def test_a_label_that_is_a_gap_in_words_is_no_class(tmp_path):
  text = b'x,y\n' + b'1,0\n2,?\n3,1\n' * 9
  with pytest.raises(ValueError, match="'y' has numbers, and '.' in 9 of 27"):
    load(tmp_path, text)
  with pytest.raises(ValueError, match="'y': 33.3% of its values are missing"):
    load(tmp_path, text, gaps='?')
  assert load(tmp_path, text, text='y').classes == ('0', '1', '?')


@pytest.mark.parametrize('text, ends', [
    ('x;y\n1;0\n;1\n', '--config.data.options=drop=x leaves a column out.'),
    ('x;Target\n1;0\n2;1\n', 'the columns are x, Target.'),
    ('empty,x,y\n,1,0\n,2,1\n', '--config.data.options=drop=empty'),
    ('x y,z,y\n' + ''.join(f'a{i},1,{i % 2}\n' for i in range(200)) * 2,
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
