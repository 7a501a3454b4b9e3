"""Errors of a user's file, in two lines with its place."""
import jax
import jax.numpy as jnp
import pytest

from vfljax.runner.config import blaming, outside
from vfljax.runner.errors import UserError


def caught(tmp_path, body):
  """The file, and the error of a function in it whose body this is."""
  file, known = tmp_path / 'my.py', dict(jax=jax, jnp=jnp)
  file.write_text(f'def mine():\n  {body}\n')
  exec(compile(file.read_text(), str(file), 'exec'), known)
  with pytest.raises(Exception) as found:
    known['mine']()
  return file, found.value


@pytest.mark.parametrize('body, words', [
    ('return {}[3]', 'KeyError: 3'),
    (r'raise ValueError("one\n\ntwo\n ^~~ \nthree")', 'ValueError: two three'),
    ('assert 1 == 2', 'AssertionError'),
    ('return jnp.zeros(3) @ jnp.zeros(4)', 'TypeError: '),
])
def test_a_config_files_error_has_its_line(tmp_path, body, words):
  file, error = caught(tmp_path, body)
  assert blaming.said(error).startswith(f'{file}, line 2: {words}')
  assert blaming.said(error).count('\n') < 2


def test_messages_of_ours_are_passed_on():
  assert blaming.said(UserError('no such file\n\ntype another')) == (
      'no such file\ntype another'
  )


@pytest.mark.parametrize('body, words', [
    ('assert 1 == 2', 'AssertionError: assert 1 == 2'),
    ('assert 1 == 2, "no"', 'AssertionError: no'),
    ('return {}["a"]', "KeyError: 'a'"),
    ('raise ValueError("mine: too few")', 'too few'),
    ('raise ValueError("too few")', 'too few'),
    ('return 1 if jax.jit(lambda x: x > 0 or 1)(1.0) else 2',
     'Python looks at a number that is traced'),
])
def test_a_methods_error_has_its_line(tmp_path, body, words):
  file, error = caught(tmp_path, body)
  begin = f'mine: {file}, line 2: {words}'
  assert outside.said('mine', error).startswith(begin)


def test_a_range_that_names_the_method_is_told_as_it_is(tmp_path):
  _, error = caught(tmp_path, 'raise ValueError("mine must be 3; got 4.")')
  assert outside.said('mine', error) == 'mine must be 3; got 4.'


def test_what_comes_from_nowhere_has_its_type():
  assert outside.said('mine', AssertionError()) == 'mine: AssertionError'
  assert outside.said('mine', KeyError('a')) == "mine: KeyError: 'a'"


def test_what_was_told_already_is_told_by_its_end():
  told = UserError('from afar\n\nwhat is wrong\n  ^~~\nwhat to type')
  assert blaming.said(told) == 'what is wrong\nwhat to type'


def test_a_traceback_is_told_by_its_last_line_and_the_users(tmp_path):
  file, _ = caught(tmp_path, 'assert False')
  text = (
      'In another process:\nTraceback (most recent call last):\n'
      f'  File "{file}", line 3, in f\n    x()\n'
      f'  File "{jax.__file__}", line 9, in g\n    y()\nKeyError: 7'
  )
  assert blaming.said(RuntimeError(text)) == f'{file}, line 3: KeyError: 7'
