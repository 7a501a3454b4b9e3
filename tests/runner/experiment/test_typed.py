"""Code that is in no file: what counts as a change of it."""
from functools import partial
import linecache
import types

import pytest

from vfljax.runner.config import blaming, outside
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


def test_blank_lines_and_other_code_of_the_cell_are_none():
  more = ('def helper', '\n\nconfig = 3\n\ndef helper')
  assert digest(more) == digest()


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
  assert not blaming.is_typed('<frozen importlib._bootstrap>')
  assert not blaming.is_own('numpy/random/x.pyx')
