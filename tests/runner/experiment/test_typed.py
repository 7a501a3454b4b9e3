"""Code that is in no file: what counts as a change of it."""
from functools import partial
import linecache
import os
import subprocess
import sys
import types

import numpy as np
import pytest

from vfljax import importing
from vfljax.runner.config import outside
from vfljax.runner.experiment import typed

CELL = """
import jax.numpy as jnp
import numpy as np
SCALE = 2.0
WEIGHTS = np.arange(3)
losses = []

def helper(x):
  return SCALE * x

def rounding(step, sharp=1):
  '''A defense.'''
  def rounded(key, d, labels):
    return helper(d) + WEIGHTS.sum() / step
  return rounded
"""


def made(*changes, name='rounding', kept=True, text=CELL):
  """The function of a cell, whose text Python knows if `kept`."""
  for old, new in changes:
    assert old in text
    text = text.replace(old, new)
  file = f'/tmp/ipykernel_1/{abs(hash(text))}.py'
  if kept:
    lines = text.splitlines(keepends=True)
    linecache.cache[file] = (len(text), None, lines, file)
  scope = {'__name__': '__main__'}
  exec(compile(text, file, 'exec'), scope)
  return scope[name]


def digest(*changes, **how):
  return typed.read(made(*changes, **how))[0]


@pytest.mark.parametrize('kept', [True, False])
@pytest.mark.parametrize('old, new, differs', [
    ('', '', False),
    ('SCALE = 2.0', 'SCALE = 2.5', True),  # A number that a helper reads.
    ('np.arange(3)', 'np.arange(4)', True),
    ('SCALE * x', 'SCALE - x', True),
    ('sum() / step', 'sum() * step', True),
    ('sharp=1', 'sharp=2', True),
    ('losses = []', 'losses = [1, 2]', False),  # Nothing reads it.
])
def test_what_is_a_change(kept, old, new, differs):
  assert (digest((old, new), kept=kept) != digest(kept=kept)) == differs


MORE = """
import collections, dataclasses, enum, functools, operator, typing
import flax.linen as nn
import jax
import numpy as np
import pandas as pd

"""


@pytest.mark.parametrize('kept', [True, False])
@pytest.mark.parametrize('text, old, new', [
    ('class N(nn.Module):\n  width: int = 8\n  @nn.compact\n'
     '  def __call__(self, x):\n    return 2 * nn.Dense(self.width)(x)\n'
     'def m(s):\n  return N()\n', '2 * nn', '3 * nn'),
    ('@dataclasses.dataclass\nclass N:\n  a: int = 1\n'
     '  def f(self):\n    return 2\ndef m(s):\n  return N().f()\n',
     'return 2', 'return 3'),
    ('class N(typing.NamedTuple):\n  a: int = 1\n  def f(self):\n'
     '    return 2\nn = N()\ndef m(s):\n  return n.f()\n',
     'return 2', 'return 3'),
    ('class N(float):\n  def f(self):\n    return 2\nn = N(1)\n'
     'def m(s):\n  return n.f()\n', 'return 2', 'return 3'),
    ('class N(dict):\n  def f(self):\n    return 2\nn = N(a=1)\n'
     'def m(s):\n  return n.f()\n', 'return 2', 'return 3'),
    ('@jax.custom_vjp\ndef g(x):\n  return x\ndef fwd(x):\n'
     '  return x, None\ndef bwd(r, d):\n  return (2 * d,)\n'
     'g.defvjp(fwd, bwd)\ndef m(s):\n  return g(s)\n', '2 * d', '3 * d'),
    ('@jax.custom_jvp\ndef g(x):\n  return x\n@g.defjvp\n'
     'def j(p, t):\n  return p[0], 2 * t[0]\ndef m(s):\n  return g(s)\n',
     '2 * t', '3 * t'),
    ('P = operator.itemgetter(0)\ndef m(s):\n  return P(s)\n', '(0)', '(1)'),
    ('P = operator.methodcaller("sum", axis=0)\ndef m(s):\n  return P(s)\n',
     'axis=0', 'axis=1'),
    ('P = {1: 2}.get\ndef m(s):\n  return P(s)\n', '2}', '3}'),
    ('T = collections.defaultdict(lambda: 2)\ndef m(s):\n  return T[s]\n',
     ': 2', ': 3'),
    ('T = pd.DataFrame(dict(a=[1], b=[2]))\ndef m(s):\n  return T["a"]\n',
     'a=[1], b', 'c=[1], a'),
    ('T = pd.Series([1, 2], index=["a", "b"])\ndef m(s):\n  return T["a"]\n',
     '"a", "b"', '"b", "a"'),
    ('class N:\n  def f(self, a):\n    return a\n'
     '  g = functools.partialmethod(f, 2)\ndef m(s):\n  return N().g()\n',
     'f, 2', 'f, 3'),
])
def test_what_libraries_make_of_a_cells_code_counts(text, old, new, kept):
  """Each was read as what it is made by, and an edit gave the old numbers."""
  one, same = (
      digest(name='m', kept=kept, text=MORE + text) for _ in range(2)
  )
  assert one == same
  assert one != digest((old, new), name='m', kept=kept, text=MORE + text)


def test_blank_lines_and_other_code_of_the_cell_are_none():
  more = ('def helper', '\n\nconfig = 3\n\ndef helper')
  assert digest(more) == digest()


def test_the_order_of_a_set_is_no_change():
  """Which is another one in each process; here they collide."""
  one, other = (('losses = []', f'losses = {s}') for s in ('{0, 8}', '{8, 0}'))
  reads = ('SCALE * x', 'SCALE * x + len(losses)')
  assert [*{0, 8}] != [*{8, 0}]
  assert digest(one, reads) == digest(other, reads) != digest(reads)


def test_arguments_of_a_partial_and_what_a_closure_holds_count():
  one, other = (typed.read(partial(made(), sharp=n))[0] for n in (1, 2))
  assert one != other
  assert typed.name(partial(made(), sharp=1)) == 'rounding in a cell'
  one, other = (typed.read(made()(step))[0] for step in (0.1, 0.2))
  assert one != other


def test_a_class_is_its_functions():
  text = 'class Own:\n  def __call__(self, x):\n    return 2 * x\n'
  one, other = digest(text=text, name='Own'), digest(
      ('2 * x', '3 * x'), text=text, name='Own'
  )
  assert one != other


USES = """
import argparse, array, collections, dataclasses, datetime, enum, functools
import types, typing
import flax.core, flax.linen as nn, jax, jax.numpy as jnp, numpy as np, optax
import pandas as pd
from vfljax.defense import Defense, each

%s
def own(strength):
  return S
"""
WRAPPED = """def times(f):
  @functools.wraps(f)
  def g(x):
    return 3 * f(x)
  return g
@times
def S(x):
  return x"""


@pytest.mark.parametrize('kept', [True, False])
@pytest.mark.parametrize('text', [  # One with a 4 in place of the 3 differs.
    'S = np.float16(1.3)',
    'S = 3j',
    "S = b'3'",
    "S = {'a', 'b', 'c', '3'}",
    "S = {'a': np.ones(2), '3': 0}",
    "S = np.array(['a', None, 3])",
    'S = pd.DataFrame(dict(a=[1, 3]))',
    'S = slice(3), range(5)',
    'S = collections.deque([3])',
    'S = jax.random.key(3)',
    'S = optax.sgd(.3)',
    'S = nn.Dense(3)',
    'S = [max, min, np.sin, jnp.maximum, jnp.minimum][3]',
    'S = jax.jit(lambda x: 3 * x)',
    'S = Defense(gradient=each(lambda key, d, labels: 3 * d))',
    'class S:\n  x = 3',
    'class S(enum.Enum):\n  X = 3',
    'class A(typing.NamedTuple):\n  x: int = 3\nS = A()',
    '@dataclasses.dataclass\nclass A:\n  x: int = 3\nS = A()',
    'class A:\n  def __init__(self, x):\n    self.x = x\nS = A(3)',
    'class A:\n  @property\n  def x(self):\n    return 3\nS = A()',
    'class A:\n  def m(self):\n    return 3\nS = A().m',
    'S = types.SimpleNamespace(x=3)',
    'S = argparse.Namespace(x=[3])',
    'S = types.MappingProxyType(dict(x=3))',
    'S = collections.ChainMap(dict(x=3))',
    'S = datetime.timedelta(3)',
    'class S:\n  _x = 3',
    '@dataclasses.dataclass(slots=True)\nclass A:\n  x: int\nS = A(3)',
    'class A:\n  __slots__ = "x"\nS = A()\nS.x = 3',
    'class A:\n  @functools.cached_property\n  def x(self):\n'
    '    return 3\nS = A()',
    'def S():\n  return S.x\nS.x = 3',
    WRAPPED,
    'class A:\n  @functools.partial(jax.jit, static_argnums=0)\n'
    '  def __call__(self, x):\n    return 3 * x\nS = A()',
    '@functools.singledispatch\ndef S(x):\n  return 3 * x',
    '@functools.singledispatch\ndef S(x):\n  return x\n'
    '@S.register\ndef _(x: int):\n  return 3 * x',
    'class A:\n  @functools.singledispatchmethod\n  def m(self, x):\n'
    '    return 3 * x\nS = A()',
    'class M(type):\n  x = 3\nclass S(metaclass=M):\n  pass',
    'S = np.vectorize(lambda x: 3 * x)',
    'S = np.vectorize(abs, otypes=[float if 3 % 2 else int])',
    '@jax.custom_batching.custom_vmap\ndef S(x):\n  return x\n'
    '@S.def_vmap\ndef _(size, batched, x):\n  return 3 * x, True',
    'S = collections.UserList([3])',
    'S = array.array("d", [3])',
    'S = flax.core.FrozenDict(a=np.full(2, 3))',
])
def test_what_it_uses_by_name_counts(text, kept):
  text = USES % text
  first, again, last = (
      digest(text=text, name='own', kept=kept),
      digest(text=text, name='own', kept=kept),
      digest(('3', '4'), text=text, name='own', kept=kept),
  )
  assert first == again != last


def test_what_an_object_keeps_once_it_is_asked_for_is_no_change():
  """Else the same cell, run again, would be refused its own folder."""
  text = (
      'import functools\nclass A:\n  @functools.cached_property\n'
      '  def x(self):\n    return 3\nS = A()\ndef own():\n  return S.x\n'
  )
  factory = made(text=text, name='own')
  one = typed.read(factory)
  assert factory() == 3 and typed.read(factory) == one


def test_the_same_number_under_another_name_counts():
  text = 'A, B, C = 3, 4, 3\ndef own(x):\n  return A + B + C * x\n'
  changed = digest(('3, 4, 3', '3, 4, 4'), text=text, name='own')
  assert digest(text=text, name='own') != changed


@pytest.mark.slow
def test_another_process_finds_the_same_digest():
  """Sets have another order there, and objects another address."""
  uses = (
      'class A:\n  x = object(), {"a", "b", "c", "d"}\n'
      'S = A(), np.array(["a", None, print, A()]), frozenset("defg"), jax.jit'
  )
  code = (
      'from tests.runner.experiment import test_typed as t\n'
      f'text = t.USES % {uses!r}\n'
      'print(t.digest(text=text, name="own", kept=False))'
  )
  found = {
      subprocess.run(
          [sys.executable, '-c', code], capture_output=True, text=True,
          check=True, env=os.environ | {'PYTHONHASHSEED': seed},
      ).stdout for seed in '12'
  }
  assert len(found) == 1 and len(found.pop().strip()) == 16


def test_what_has_no_text_or_is_in_itself_ends():
  text = 'import jax\nkey = jax.random.key(0)\nloop = []\n'
  text += 'loop.append(loop)\ndef f():\n  return key, loop, f, print\n'
  assert len(digest(text=text, name='f')) == 16


def test_files_that_it_uses_are_the_users_alone(tmp_path, monkeypatch):
  file = tmp_path / 'own_helping.py'
  file.write_text('def helper(x):\n  return x\n')
  module = types.ModuleType('own_helping')
  exec(compile(file.read_text(), str(file), 'exec'), module.__dict__)
  monkeypatch.setattr(module, '__file__', str(file), raising=False)
  factory = made(('WEIGHTS.sum()', 'other(1) + jnp.sum(1)'))
  factory.__globals__['other'] = module.helper
  assert typed.read(factory)[1] == {file}


def test_errors_name_the_line_of_the_cell():
  text = 'def f():\n  return 1 / 0\n'
  with pytest.raises(ZeroDivisionError) as error:
    made(text=text, name='f')()
  assert outside.said('own', error.value) == (
      'own: a cell, line 2: ZeroDivisionError: division by zero'
  )
  assert not importing.is_typed('<frozen importlib._bootstrap>')
  assert not importing.is_own('numpy/random/x.pyx')


def test_numbers_of_numpy_are_as_plain_as_pythons():
  """A list of them was asked, one by one, which class it is of."""
  assert typed._plain([np.float64(0.5), {'a': (1, np.str_('b'))}]) == (
      '[0.5, {"a": [1, "b"]}]'
  )
  assert not typed._plain([np.float32(0.5)])
  assert typed._is_own.__wrapped__(type('Mine', (), {'__module__': '__main__'}))
