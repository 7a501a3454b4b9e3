"""A grid's experiments run their own code, as if each had its own process."""
import importlib
import sys
from types import ModuleType

import pytest

from vfljax import attacks, data, defenses, nets
from vfljax.commands import apart, axes, point
from vfljax.runner.errors import UserError

CONFIG = '''
from vfljax import defenses
from vfljax.defense import Defense, Method
from vfljax.runner.config import *
{code}
def get_config():
  return Config(
      defenses='none,iso', attacks='norm_scoring', alone=False,
      data=DataConfig(name='breast_cancer'),
      model=ModelConfig(algorithm='vlr'),
  )
'''
OWN = '''
import own_apart.methods
from own_apart import methods
defenses.REGISTRY['iso'] = Method(methods.made, (methods.BEST,))
'''


@pytest.fixture
def strengths(monkeypatch):
  """Strengths of iso in each experiment that is looked at, and its code."""
  seen = []
  monkeypatch.setattr(sys, 'dont_write_bytecode', True)
  monkeypatch.setattr(point.checks, 'make', lambda *a: None)

  def is_done(asked):
    code = asked.recorded.get('sources', {}).get('methods.py')
    seen.append((defenses.REGISTRY['iso'].strengths[0], code))
    return False

  monkeypatch.setattr(point.asking, 'is_done', is_done)
  return seen


def written(folder, best):
  """A config file, and beside it a folder with the module that it imports."""
  code = f'def made(s):\n  return s\nBEST = {best}\n'
  (folder / 'own_apart').mkdir(parents=True, exist_ok=True)
  (folder / 'own_apart/methods.py').write_text(code)
  (folder / 'exp.py').write_text(CONFIG.format(code=OWN))
  importlib.invalidate_caches()
  return ['vfljax', f'--config={folder}/exp.py', f'--workdir={folder}/out',
          '--cache=']


def test_each_has_the_modules_of_its_folder(strengths, tmp_path):
  one, two = written(tmp_path / 'a', 2), written(tmp_path / 'b', 7)
  for argv in (one, two, one):
    point.is_done(argv)
  assert [best for best, _ in strengths] == [2, 7, 2]
  first, second, again = (code for _, code in strengths)
  assert first == again != second


def test_what_was_edited_in_between_is_read_anew(strengths, tmp_path):
  for best in (2, 123):
    point.is_done(written(tmp_path, best))
  (old, before), (new, after) = strengths
  assert (old, new) == (2, 123) and before != after


def test_a_method_that_one_file_replaces_is_ours_in_the_next(
    strengths, tmp_path
):
  ours = defenses.REGISTRY['iso'].strengths[0]
  plain = tmp_path / 'plain.py'
  plain.write_text(CONFIG.format(code=''))
  point.is_done(written(tmp_path / 'a', 2))
  point.is_done([
      'vfljax', f'--config={plain}', f'--workdir={tmp_path}/out', '--cache=',
  ])
  assert strengths[1] == (ours, None)


def test_none_of_it_is_left(strengths, tmp_path, monkeypatch):
  had = [{**r} for r in (attacks.REGISTRY, data.REGISTRY, nets.REGISTRY)]
  iso, path = defenses.REGISTRY['iso'], [*sys.path]
  argv = written(tmp_path, 2)
  seen = []

  def run(*a):
    seen.append(defenses.REGISTRY['iso'].strengths)
    raise UserError('It was seen.')

  monkeypatch.setattr(point.run, 'run', run)
  point.is_done(argv)
  assert point.play(argv) == 'It was seen.' and seen == [(2,)]
  axes.points([f'{tmp_path}/exp.py'], ['seeds=1,2'], [], str(tmp_path))
  assert had == [attacks.REGISTRY, data.REGISTRY, nets.REGISTRY]
  assert defenses.REGISTRY['iso'] is iso and sys.path == path
  assert not [name for name in sys.modules if name.startswith('own_apart')]


def test_others_stay_and_so_do_compiled_ones(tmp_path, monkeypatch):
  """A compiled module cannot be imported twice, nor what it belongs to."""
  def module(name, *place, **more):
    made = ModuleType(name)
    vars(made).update(dict(__file__=str(tmp_path.joinpath(*place))) | more)
    monkeypatch.setitem(sys.modules, name, made)

  suffix = apart._COMPILED[0]
  module('own_a', 'mine/own_a.py')
  module('own_b', 'mine/own_b/__init__.py')
  module('own_b.fast', f'mine/own_b/fast{suffix}')
  module('own_c', '', __file__=None, __path__=[f'{tmp_path}/mine/c'])
  module('own_d', 'other/own_d.py')
  assert apart._found_in([str(tmp_path / 'mine')], []) == ['own_a', 'own_c']
  assert apart._found_in([str(tmp_path / 'mine')], ['own_a']) == ['own_c']
  assert apart._found_in([], []) == []


def test_a_package_that_stays_forgets_its_module(monkeypatch):
  package, module = ModuleType('own_e'), ModuleType('own_e.noise')
  package.noise = module
  monkeypatch.setitem(sys.modules, 'own_e', package)
  monkeypatch.setitem(sys.modules, 'own_e.noise', module)
  apart._forget('own_e.noise')
  assert not hasattr(package, 'noise') and 'own_e.noise' not in sys.modules
