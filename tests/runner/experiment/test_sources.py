"""Which files a run's own methods come from, and when they count as changed."""
import functools
import importlib
from pathlib import Path
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax import attack, attacks, defenses, nets
from vfljax.defense import Method
from vfljax.defenses import iso
from vfljax.runner.config import Entry
from vfljax.runner.experiment import imported, sources, typed

FILES = {
    'kit/__init__.py': 'import second\n',
    'kit/mine.py': (
        'import jax, third.inner\nfrom . import helper\nfrom .deep import x\n'
        'def mine(scale=1):\n  return None\n'
        'def get_config():\n  return 1\n'
    ),
    'kit/helper.py': 'y = 1\n', 'kit/deep.py': 'x = 1\n',
    'kit/unused.py': 'z = 1\n', 'second.py': 'a = 1\n',
    'third/__init__.py': '', 'third/inner.py': 'from kit import mine\n',
}


@pytest.fixture
def kit(tmp_path, monkeypatch):
  """Files of somebody's own, which import each other."""
  for name, text in FILES.items():
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
  monkeypatch.syspath_prepend(tmp_path)
  # Two edits of one size within a second would be one of Python's cache.
  monkeypatch.setattr(sys, 'dont_write_bytecode', True)
  yield tmp_path
  forget()


def with_activations(bottom_final='tanh') -> Any:
  """A setting of which nothing else is asked, as `_used` is replaced."""
  model = SimpleNamespace(activation='tanh', bottom_final=bottom_final)
  return SimpleNamespace(config=SimpleNamespace(model=model))


def forget():
  """As in a new process, which imports all files again."""
  for name in [*sys.modules]:
    if name.partition('.')[0] in ('kit', 'second', 'third'):
      del sys.modules[name]


def digests(monkeypatch, wrap=lambda function: function):
  mine = importlib.import_module('kit.mine').mine
  monkeypatch.setattr(sources, '_used', lambda _: [Method(wrap(mine), ())])
  return sources.of(with_activations())


@pytest.mark.parametrize('wrap', [
    lambda function: function, lambda function: functools.partial(
        functools.partial(function, scale=2)
    ), lambda function: functools.wraps(function)(lambda scale=3: None),
])
def test_imported_files_count_too(kit, monkeypatch, wrap):
  """But none that is not imported, nor jax's."""
  here = {'what mine holds', Path(__file__).name}  # Of what wraps it.
  assert set(digests(monkeypatch, wrap)) - here == {
      'mine.py', 'helper.py', 'deep.py', 'second.py', 'inner.py', '__init__.py'
  }


def test_what_wraps_one_of_ours_counts_and_not_ours(monkeypatch):
  """It says that it is in our module; an edit of it went unnoticed."""
  louder = functools.wraps(iso.iso)(lambda ratio: iso.iso(2 * ratio))
  monkeypatch.setattr(sources, '_used', lambda _: [Method(louder, (1.0,))])
  assert [*sources.of(with_activations())] == [Path(__file__).name]


def test_what_wraps_one_in_a_cell_has_a_digest(monkeypatch):
  found = []
  for factor in 2, 3:
    code = (
        '@functools.wraps(iso.iso)\ndef louder(ratio):\n'
        f'  return iso.iso({factor} * ratio)\n'
    )
    scope = {'__name__': '__main__', 'functools': functools, 'iso': iso}
    exec(compile(code, '/tmp/ipykernel_1/2.py', 'exec'), scope)
    method = Method(scope['louder'], (1.0,))
    monkeypatch.setattr(sources, '_used', lambda _, own=method: [own])
    found.append(sources.of(with_activations()))
  assert [*found[0]] == [*found[1]] == ['iso in a cell']
  assert found[0] != found[1]


def test_a_measure_of_ones_own_counts_over_an_attack_of_ours(
    kit, monkeypatch
):
  theirs = attack.recipe_of(attacks.REGISTRY['norm_scoring'])
  mine = importlib.import_module('kit.mine').mine
  own = attack.recipe(stage=attack.TRAINED, measure=mine)(theirs.factory)
  monkeypatch.setattr(sources, '_used', lambda _: [own])
  assert {'mine.py', 'helper.py'} <= {*sources.of(with_activations())}


def closed(function, scale):
  return functools.wraps(function)(lambda: function(scale))


def inside(function, scale):
  return functools.partial(functools.partial(function, scale=[scale]))


class Held:

  def __init__(self, function, scale):
    self.function, self.scale = function, scale

  def mine(self):
    return self.function(self.scale)


@pytest.mark.parametrize('make', [
    closed, inside, functools.partial,
    lambda function, scale: jax.jit(lambda: function(scale)),
    lambda function, scale: functools.partial(closed(function, scale)),
    lambda function, scale: closed(function, np.array([1.0, scale])),
    lambda function, scale: closed(function, dict(scale=scale)),
    lambda function, scale: closed(function, [scale]),
    lambda function, scale: Held(function, scale).mine,
    lambda function, scale: lambda use=function, own=scale: use(own),
    lambda function, scale: lambda *, use=function, own=scale: use(own),
    lambda function, scale: jax.jit(lambda use=function, own=scale: use(own)),
])
def test_values_that_a_function_was_made_with_count(kit, monkeypatch, make):
  """Its file is the same, as where a loop tries some in one folder."""
  one, same, other = (
      digests(monkeypatch, lambda function, n=n: make(function, n))
      for n in (1, 1, 2)
  )
  assert one == same
  (what,) = (k for k in one if one[k] != other[k])
  assert what in ('what mine holds', 'what <lambda> holds')
  assert what not in digests(monkeypatch)


def test_defaults_that_a_file_says_are_covered_by_its_digest():
  """Also those of a cache, which changes with each call."""
  def read():
    return typed.read(functools.partial(remembering, 2.0))

  before = read()
  remembering(2.0)
  assert read() == before and remembering.__defaults__ == ({2.0: 2.0},)


CACHE: dict[float, float] = {}


def remembering(scale, seen=CACHE):
  return seen.setdefault(scale, scale)


def test_a_notebooks_function_brings_the_files_that_it_uses(kit, monkeypatch):
  code = 'from kit import helper\ndef mine():\n  return helper.y\n'
  scope = {'__name__': '__main__'}
  exec(compile(code, '/tmp/ipykernel_1/1.py', 'exec'), scope)
  method = Method(scope['mine'], ())
  monkeypatch.setattr(sources, '_used', lambda _: [method])
  one = sources.of(with_activations())
  assert {'helper.py', 'cell'} == {name.split()[-1] for name in one}
  (kit / 'kit/helper.py').write_text('y = 2\n')
  forget()
  exec(compile(code, '/tmp/ipykernel_1/1.py', 'exec'), scope)
  monkeypatch.setattr(sources, '_used', lambda _: [Method(scope['mine'], ())])
  other = sources.of(with_activations())
  assert {name for name in one if one[name] != other[name]} >= {'helper.py'}


@pytest.mark.parametrize('file, before, after, changed', [
    ('kit/mine.py', 'scale=1', 'scale=2', {'mine.py'}),
    ('kit/mine.py', 'return 1', 'x = 2\n  return x', set()),  # Compared anyway.
    ('kit/mine.py', '():\n  return 1', '(): return 1', set()),
    ('kit/mine.py', 'def get_config', '\n\n\ndef get_config', set()),
    ('kit/mine.py', 'return None', 'return None   ', set()),
    ('kit/helper.py', 'y = 1', 'y = 2', {'helper.py'}),
    ('third/inner.py', 'import mine', 'import mine as m', {'inner.py'}),
    ('third/__init__.py', '', 'b = 1', {'__init__.py'}),
    ('kit/unused.py', 'z = 1', 'z = 2', set()),
])
def test_what_counts_as_a_change(
    kit, monkeypatch, file, before, after, changed
):
  one = digests(monkeypatch)
  path = Path(kit, file)
  path.write_text(path.read_text().replace(before, after, 1) or after)
  forget()
  other = digests(monkeypatch)
  assert {name for name in one | other if one[name] != other[name]} == changed


def test_an_edited_file_counts_once_it_is_imported_again(
    kit, monkeypatch, capsys
):
  """The old code's numbers were kept as those of the new text."""
  old = digests(monkeypatch)
  path = kit / 'kit/mine.py'
  path.write_text(path.read_text().replace('return None', 'return 2'))
  assert digests(monkeypatch) == digests(monkeypatch) == old
  told = capsys.readouterr().err
  assert told.count('has changed since it was imported') == 1
  assert str(path) in told and 'importlib.reload' in told
  before = sys.modules['kit.mine'].mine
  importlib.reload(sys.modules['kit.mine'])
  monkeypatch.setattr(sources, '_used', lambda _: [Method(before, ())])
  assert sources.of(with_activations()) == old  # It is still registered.
  new = digests(monkeypatch)
  assert {name for name in old if old[name] != new[name]} == {'mine.py'}
  assert capsys.readouterr().err == ''


def test_constants_of_an_edited_file_count_once_it_is_imported_again(
    kit, monkeypatch, capsys
):
  old = digests(monkeypatch)
  (kit / 'kit/helper.py').write_text('y = 22\n')
  assert digests(monkeypatch) == old
  assert 'helper.py has changed' in capsys.readouterr().err
  importlib.reload(sys.modules['kit.helper'])
  new = digests(monkeypatch)
  assert {name for name in old if old[name] != new[name]} == {'helper.py'}


def test_what_was_imported_after_it_was_read_may_be_either(
    tmp_path, monkeypatch, capsys
):
  """As by a function that a run calls: no folder of the old text is its own."""
  file, said = tmp_path / 'later.py', lambda: imported.text(file, (), str.strip)
  file.write_text('x = 1\n')
  assert said() == said() == 'x = 1'
  file.write_text('x = 2\n')
  assert said() == 'x = 2'  # Nobody has imported it yet.
  file.write_text('x = 3\n')
  module = ModuleType('later')
  module.__file__, module.__spec__ = str(file), object()
  monkeypatch.setitem(sys.modules, 'later', module)
  assert said() == said() == 'x = 2x = 3'
  assert capsys.readouterr().err.count('has changed since') == 1


def test_what_does_not_count_may_change(kit, monkeypatch, capsys):
  old = digests(monkeypatch)
  path = kit / 'kit/mine.py'
  path.write_text(f'{path.read_text()}\n\ndef get_config():\n  return 7\n')
  assert digests(monkeypatch) == old and capsys.readouterr().err == ''


def test_those_that_act_before_count_too():
  entries = [Entry('none'), Entry('iso', after=(
      Entry('max_norm', after=(Entry('label_dp'),)),
  ))]
  names = 'none', 'iso', 'max_norm', 'label_dp'
  assert list(sources._defenses(entries)) == [
      defenses.REGISTRY[name] for name in names
  ]


def activated(monkeypatch, name, own):
  monkeypatch.setitem(nets.ACTIVATIONS, name, own)
  monkeypatch.setattr(sources, '_used', lambda _: [])
  return sources.of(with_activations(name))


@pytest.mark.parametrize('name', ['mine', 'relu'])
def test_an_activation_of_ones_own_counts_by_any_name(monkeypatch, name):
  """Two of JAX's, or of one file of one's own, are not the same."""
  own = (
      jax.nn.gelu, jax.nn.silu, np.tanh, jnp.add,
      lambda x: x,
      lambda x: 2 * x,
  )
  found = [activated(monkeypatch, name, each) for each in own]
  assert len({one[f'activation {name}'] for one in found}) == len(own)
  assert all(len(one) == 1 for one in found[:4])  # No file of JAX's.
  assert activated(monkeypatch, name, own[0]) == found[0]


def test_ours_are_no_code_of_ones_own(monkeypatch):
  assert activated(monkeypatch, 'linear', nets.ACTIVATIONS['linear']) == {}


def test_what_is_too_deep_is_read_as_far_as_it_goes(kit, monkeypatch):
  deep = []
  for _ in range(5000):
    deep = [deep]
  assert digests(monkeypatch, lambda function: functools.partial(
      function, scale=deep
  ))


def test_an_older_folder_lacks_what_it_did_not_save():
  now = dict(sources=dict(a='1', b='2'))
  assert sources.completed(dict(seeds=1), dict(seeds=2)) == dict(seeds=1)
  assert sources.completed(dict(sources=dict(a='0', c='3')), now) == dict(
      sources=dict(a='0', b='2', c='3')
  )
  assert sources.completed({}, now) == now
