"""Options of loaders as text and as what they are, and their ranges."""
from collections.abc import Sequence
import functools
import shlex

import numpy as np
import pytest

from tests.raw_layouts import write_nuswide, write_vehicle
from vfljax import data
from vfljax.data import options
from vfljax.runner.cli.arguments import load_data
from vfljax.runner.config import DataConfig
from vfljax.runner.config.options import parse
from vfljax.runner.errors import UserError

PEOPLE = 'id,since,x,y\n' + ''.join(
    f'{i},{i},{i / 2},{i % 2}\n' for i in range(9)
)


@pytest.fixture
def people(tmp_path):
  file = tmp_path / 'people.csv'
  file.write_text(PEOPLE)
  return lambda **given: data.load('csv', str(file), 'y', **given)


@pytest.mark.parametrize('drop', [
    'id,since', 'id, since,', ('id', 'since'), ['since', 'id'],
])
def test_names_are_words_or_a_tuple(drop, people):
  assert people(drop=drop).names == ('x',)


@pytest.mark.parametrize('positive', [0, 0.0, '0', '0.0'])
def test_a_class_that_is_a_number_can_be_given_as_one(positive, people):
  plain = people()
  table = people(positive=positive)
  assert table.classes == ('1', '0') and plain.classes == ('0', '1')
  np.testing.assert_array_equal(table.labels, 1 - plain.labels)
  assert people(positive=1).classes == ('0', '1')
  with pytest.raises(ValueError, match="positive='2'.*0, 1"):
    people(positive=2)


def test_a_command_lines_words_are_taken(people, tmp_path):
  people()
  read = lambda given: load_data(DataConfig(
      'csv', str(tmp_path / 'people.csv'), 'y', options=given
  ))
  for given in ('drop=id,since', "drop=('id', 'since')", 'drop=id, since'):
    assert read(f'{given};positive=0').names == ('x',)
  assert read('positive=0;sep=,').classes == ('1', '0')
  with pytest.raises(UserError, match="no column '5'"):
    read('drop=5')
  with pytest.raises(UserError, match='categories must be 1 to 100000; got -1'):
    read('categories=-1')


def test_a_truth_can_be_the_positive_class(tmp_path):
  (tmp_path / 'a.csv').write_text('x,y\n1,True\n2,False\n')
  table = data.load('csv', str(tmp_path / 'a.csv'), 'y', positive=False)
  assert table.classes == ('True', 'False')


@pytest.mark.parametrize('given, message', [
    (dict(drop=5), "no column '5'"),
    (dict(drop=('y', 'x')), 'drop names the label'),
    (dict(drop='x', text='x'), 'a column that text or rounded names'),
    (dict(text='nil'), "no column 'nil'"),
    (dict(drop={}), 'csv: drop must be a word; got'),
    (dict(categories='many'), "categories must be a whole number; got 'many'"),
    (dict(categories=1.5), 'categories must be a whole number'),
    (dict(categories=True), 'categories must be a whole number'),
    (dict(categories=-1), 'categories must be 1 to 100000; got -1'),
    (dict(categories=0), 'categories must be 1 to 100000'),
    (dict(categories=10**400), 'categories must be a whole number; got 1000'),
    (dict(categories=10**6000), 'categories must be a whole number; got a h'),
    (dict(sep='ab'), 'sep must be one character'),
    (dict(sep=1), 'sep must be one character'),
    (dict(sep='"'), 'sep must be one character'),
    (dict(missing='maybe'), "'refuse' or 'impute'"),
    (dict(decimal=';'), 'decimal must be point or comma.*decimal=comma'),
    (dict(encoding='utf-9'), "such as utf-8, latin-1 or cp1252; got 'utf-9'"),
    (dict(encoding='rot13'), 'encoding must be one'),
    (dict(encoding='base64'), 'encoding must be one'),
    (dict(encoding='undefined'), 'encoding must be one'),
])
def test_csv_refuses_options_in_one_line(given, message, people):
  with pytest.raises(ValueError, match=message) as error:
    people(**given)
  assert '\n' not in str(error.value) and len(str(error.value)) < 400


@pytest.mark.parametrize('sep, word', [
    (';', 'semicolon'), ('\t', 'tab'), ('\t', r'\t'), (' ', 'blanks'),
    ('  ', 'blanks'), ('|', '|'),
])
def test_separators_have_names(sep, word, tmp_path):
  (tmp_path / 'a.csv').write_text(PEOPLE.replace(',', sep))
  table = data.load('csv', str(tmp_path / 'a.csv'), 'y', sep=word)
  assert table.names == ('id', 'since', 'x')


@pytest.mark.parametrize('name, given, message', [
    ('synthetic', dict(samples='abc'), 'samples must be a whole number'),
    ('synthetic', dict(seed=-1), 'seed must be 0 or more'),
    ('synthetic', dict(signal='a'), 'signal must be a finite number'),
    ('synthetic', dict(imbalance=1e-320), 'imbalance above 0'),
    ('synthetic', dict(samples=10**12), 'GiB'),
    ('synthetic', dict(classes=10**6, columns=10**6), 'GiB'),
    ('vehicle', dict(samples=-5), 'samples must be 0 or more; got -5'),
    ('bhi', dict(pairs=-1), 'pairs must be 0 or more; got -1'),
    ('bhi', dict(train=float('nan')), 'train must be a finite number'),
    ('cinic10', dict(rows=-1), 'rows must be 0 or more'),
    ('isic', dict(size=10**6), 'size must be 1 to 4096'),
    ('isic', dict(rows=10**30), 'rows must be a whole number'),
    ('criteo', dict(buckets=2**25), 'buckets must be 3 to 16777216'),
    ('reviews', dict(words=0), 'words must be 1 or more'),
    ('texts', dict(rows=-2), 'rows must be 0 or more'),
    ('ag_news', dict(test_rows=-2), 'test_rows must be 0 or more'),
    ('nuswide', dict(ratio=-1, concepts='sky,lake'), 'ratio must be 0 or more'),
    ('nuswide', dict(ratio='x'), 'ratio must be a finite number'),
    ('tfds', dict(data_dir='x'), 'data_dir needs the name of the data'),
])
def test_every_loader_has_ranges(name, given, message, tmp_path):
  path = '' if name == 'synthetic' else str(tmp_path)
  with pytest.raises(ValueError, match=message) as error:
    data.load(name, path, **given)
  assert '\n' not in str(error.value)


def test_whole_fractions_and_tuples_are_what_is_meant(tmp_path):
  write_vehicle(tmp_path)
  few = data.load('vehicle', str(tmp_path), samples=5.0)
  assert len(few.labels) == 5
  assert len(data.load('synthetic', signal=1, samples=20).names) == 5
  wide = tmp_path / 'wide'
  wide.mkdir()
  write_nuswide(wide)
  pair = data.load('nuswide', str(wide), concepts=('sky', 'lake'))
  assert pair.classes == ('sky', 'lake')


def test_types_of_somebody_elses_loader():
  def load(path: str = '', rows: int = 0, how=None, names: Sequence[str] = ()):
    del path, rows, how, names

  convert = lambda **given: options.converted(load, given, 'toy')
  assert convert(rows=2.0, how='x', names='a') == dict(
      rows=2, how='x', names=('a',)
  )
  assert convert(rows=np.int64(3)) == dict(rows=3)
  few = functools.partial(load, rows=1)
  with pytest.raises(ValueError, match='toy: rows must be a whole number'):
    options.converted(few, dict(rows='x'), 'toy')

  def typed(path: 'NoTypeHere', rows: int = 0):  # noqa: F821
    del path, rows

  # Types of which one cannot be found: what is given is left to the loader.
  assert options.converted(typed, dict(rows='x'), 'toy') == dict(rows='x')


@pytest.mark.parametrize('typed, said, now', [
    ('', 'Drop it, --config.data.options=drop=id, or ...',
     'Drop it, --config.data.options=drop=id, or ...'),
    ('decimal=comma', 'Drop it, --config.data.options=drop=id, or ...',
     "Drop it, --config.data.options='decimal=comma;drop=id', or ..."),
    ('drop=since;sep=tab', 'Type --config.data.options=drop=id.',
     "Type --config.data.options='drop=since,id;sep=tab'."),
    ('sep=tab', "--config.data.options='sep=semicolon;decimal=comma'",
     "--config.data.options='sep=semicolon;decimal=comma'"),
    ('rounded=a', 'Or --config.data.options=rounded=b.',
     'Or --config.data.options=rounded=a,b.'),
    ('gaps=?', "Say --config.data.options=gaps=-.",
     "Say --config.data.options='gaps=?,-'."),
    ('sep=tab', 'There is no file.', 'There is no file.'),
    ('drop=id', "Or --config.data.options='drop=(\"a, b\",)'.",
     "Or --config.data.options='drop=(\"id\",\"a, b\")'."),
    ('drop=("a, b","c")', 'Or --config.data.options=drop=id.',
     "Or --config.data.options='drop=(\"a, b\",\"c\",\"id\")'."),
    ('drop=b;sep=tab', 'Or ' + options.flag(drop="a's"),
     "Or --config.data.options='drop=b,a'\"'\"'s;sep=tab'"),
    ('sep=tab', options.flag(drop='Nr.') + '.',
     "--config.data.options='sep=tab;drop=Nr.'."),
])
def test_advice_keeps_what_was_typed(typed, said, now):
  assert options.retyped(said, typed) == now


@pytest.mark.parametrize('names, said', [
    ('id', 'drop=id'), (['id', 'since'], 'drop=id,since'),
    ('a, b', '\'drop=("a, b",)\''), (['a, b', 'c'], '\'drop=("a, b","c")\''),
])
def test_a_flag_names_columns_whose_names_have_commas(names, said):
  """And what it says is understood."""
  flag = options.flag(drop=names)
  assert flag == f'--config.data.options={said}'
  typed = shlex.split(flag)[0].partition('options=')[2]
  read = parse(typed, 'data.options', '')['drop']
  wanted = (names,) if isinstance(names, str) else tuple(names)
  assert options.several(read) == wanted
