"""A grid's points: which there are, and what their folders are called."""
from pathlib import Path
import shutil

import pytest

from vfljax.commands import axes
from vfljax.runner.errors import UserError

CONFIG = 'experiments/quickstart.py'
QUICKSTART = Path(__file__).parents[2] / CONFIG


def test_every_combination_in_a_folder_of_its_own():
  found = axes.points(
      [CONFIG, 'experiments/kang2022/table16.py:vhnn', CONFIG],
      ['data.name=wine,digits', '--config.model.bottom=(8,4),(16,)'],
      ['--config.seeds=3'], '/grid',
  )
  assert len(found) == len({p.name for p in found}) == 8
  one = found[1]
  assert one.name.startswith('quickstart,data.name=wine,model.bottom=(16,)')
  assert one.argv == (
      'vfljax', f'--config={CONFIG}', '--config.seeds=3',
      '--config.data.name=wine', '--config.model.bottom=(16,)',
      f'--workdir=/grid/{one.name}',
  )
  assert found[4].name.startswith('kang2022-table16-vhnn,data.name=wine')
  # What is added leaves the others where they are.
  more = axes.points([CONFIG], ['data.name=wine,iris,digits'], [], '/grid')
  few = axes.points([CONFIG], ['data.name=digits'], [], '/grid')
  assert few[0] in more


def test_tables_call_them_by_what_differs():
  label = lambda configs, over: axes.points(configs, over, [], '/g')[0].label
  wine, other = 'data.name=wine', 'experiments/kang2022/table16.py:vhnn'
  assert label([CONFIG], [wine, 'data.parties=2']) == 'name=wine, parties=2'
  assert label([CONFIG], [wine, 'model.name=mlp']) == (
      'data.name=wine, model.name=mlp'
  )
  assert label([CONFIG, other], [wine]) == 'quickstart, name=wine'
  assert label([CONFIG, other], []) == 'quickstart'


@pytest.mark.parametrize('text, values', [
    ('wine,digits', ['wine', 'digits']), ('', ['']), ('2, 3', ['2', '3']),
    ('(8,4),(16,)', ['(8,4)', '(16,)']),
    ('"none,iso",none', ['none,iso', 'none']),
    ("a='x,y';b=(1,2),c", ["a='x,y';b=(1,2)", 'c']),
    ("'a','b'", ['a', 'b']), ('[1,(2,3)],4', ['[1,(2,3)]', '4']),
    ('a),b', ['a)', 'b']), ('''"it's",x''', ["it's", 'x']),
])
def test_values_are_split_where_nothing_holds_them_together(text, values):
  assert axes.split(text) == values


@pytest.mark.parametrize('over, flags, said', [
    (['data.name'], [], 'has no values'), (['=wine'], [], 'has no values'),
    (['data.name=a,a'], [], 'a value twice'),
    (['train.learning_rate=0.001,1e-3'], [], '1e-3 are the same experiment'),
    (['data.parties=2,3', 'seeds=1,01'], [], 'seeds=01 are the same exp'),
    (['attack.completion.epochs=9,9.0'], [], 'epochs=9.0 are the same exp'),
    (['data.options=rows=9;a=1,a=1; rows=9'], [], 'are the same experiment'),
    (['data.name=a', 'config.data.name=b'], [], 'a field twice'),
    (['data.name=a'], ['--config.data.name=b'], 'leave one out'),
    (['model.bottom=(8,4'], [], 'a \\) is missing'),
    (['defenses="none'], [], 'a " is missing'),
])
def test_what_is_no_grid(over, flags, said):
  with pytest.raises(UserError, match=said) as error:
    axes.points([CONFIG], over, flags, '/grid')
  assert len(str(error.value).splitlines()) <= 2


def test_two_configs_of_one_name_are_no_grid(tmp_path, monkeypatch):
  """What a run would call them has no folders here."""
  monkeypatch.chdir(tmp_path)
  files = 'experiments/a/x.py', 'experiments/a-x.py'
  for file in files:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(QUICKSTART, file)
  with pytest.raises(UserError, match=(
      'Two experiments would be called a-x,seeds=2; rename one of the config'
  )):
    axes.points(files, ['seeds=2'], [], '/grid')


def test_values_that_no_config_takes_are_told_later():
  found = axes.points([CONFIG], ['seeds=x,2,02x'], [], '/grid')
  assert [one.label for one in found] == ['seeds=x', 'seeds=2', 'seeds=02x']


def test_names_are_ones_that_a_disk_takes():
  names = {
      axes._name(['a', f'data.path={path}'])
      for path in ('x/y', 'x-y', 'x y', 'z' * 400, 'z' * 401, 'ä:b', 'ä;b')
  }
  assert len(names) == 7 and max(map(len, names)) == 120
  assert axes._name(['z' * 120]) == 'z' * 120
  assert all(len(n) <= 120 and not set(n) & set('/ :;') for n in names)
