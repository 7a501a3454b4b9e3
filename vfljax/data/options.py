"""Converts a loader's options to the types that its parameters declare.

On a command line 5 is a number, but a column may also be called 5. So an option
for text accepts numbers, and an option for names accepts a tuple or words
between commas.
"""
import ast
from collections.abc import Callable, Iterator, Sequence
import contextlib
from contextvars import ContextVar
import functools
import json
import os
import re
import shlex
import sys
import typing
from typing import Any

from vfljax.converting import Rule, as_kind
from vfljax.data.files import brief

Names = str | Sequence[str]  # 'a, b', or ('a', 'b').
# Options that take several names.
_NAMES = {'drop', 'text', 'rounded', 'gaps'}
_QUOTE = "'\"'\"'"  # An apostrophe, as shlex writes it between two.
_TYPED = re.compile(  # A flag in a message, as `flag` writes it.
    rf"--config\.data\.options=(?:'((?:[^']|{_QUOTE})+)'"
    r"|([^\s']+?)(?=[,.;)]*(?:\s|$)))"
)
_MOST = 2**63 - 1  # The largest whole number that options accept.
_RULE = Rule(
    _MOST, sys.float_info.max, {
        int: 'a whole number', float: 'a finite number', bool: 'True or False',
        str: 'a word',
    }, brief, (bool, int, float, type(None), os.PathLike), lenient=True,
)


def converted(
    load: Callable[..., Any], given: dict[str, Any], name: str
) -> dict[str, Any]:
  """The options in `given`, converted to the types that `load` declares.

  Args:
    load: The loader. Options without a declared type stay as they are.
    given: Options by name.
    name: The data set's name, for messages.

  Raises:
    ValueError: (one line) for a value of another type.
  """
  while isinstance(load, functools.partial):
    load = load.func
  try:
    kinds = typing.get_type_hints(load)
  except (NameError, TypeError):  # Types that exist for type checkers only.
    kinds = {}
  return {
      option: as_kind(value, kinds.get(option), f'{name}: {option}', _RULE)
      for option, value in given.items()
  }


def flag(**given: Names) -> str:
  """The flag to type for options: "--config.data.options='drop=a;sep=tab'".

  Args:
    **given: An option's value; of one that takes several names, one name or a
      sequence of them.
  """
  written = {
      option: _listed([value] if isinstance(value, str) else value)
      if option in _NAMES else str(value) for option, value in given.items()
  }
  return _written(_MEANT.get()(written))


@contextlib.contextmanager
def meant(change: Callable[[dict[str, str]], dict[str, str]]) -> Iterator[None]:
  """A context where `flag` writes changed options, in this thread alone."""
  token = _MEANT.set(change)
  try:
    yield
  finally:
    _MEANT.reset(token)


_MEANT: ContextVar[Callable[[dict[str, str]], dict[str, str]]] = ContextVar(
    'meant', default=lambda given: given
)


def _written(given: dict[str, str]) -> str:
  said = ';'.join(f'{option}={value}' for option, value in given.items())
  quoted = shlex.quote(said)
  # Outside of quotes a last comma, as in "decimal=comma,", reads as one of the
  # sentence around it.
  if quoted.endswith((',', '.')):
    quoted = f"'{quoted}'"
  return f'--config.data.options={quoted}'


def _listed(names: Sequence[str]) -> str:
  """'a,b'; with a comma in a name '("a,b","c")'."""
  if not any(',' in name for name in names):
    return ','.join(names)
  quoted = ','.join(json.dumps(name, ensure_ascii=False) for name in names)
  return f'({quoted},)' if len(names) == 1 else f'({quoted})'


def _more(before: str, now: str) -> str:
  """The names of two such texts in one."""
  read = lambda text: (
      ast.literal_eval(text) if text.startswith('("') else several(text)
  )
  return _listed([*read(before), *read(now)])


def retyped(said: str, typed: str) -> str:
  """A message in which advice keeps the options that the user has typed.

  A loader does not know them: its advice to type "drop=id" alone would undo all
  others.

  Args:
    said: A message that may contain flags as `flag` writes them.
    typed: The options typed so far: "decimal=comma;drop=since".
  """
  before = _named(typed)
  if not before:
    return said

  def whole_flag(match: re.Match) -> str:
    now = _named(match[2] or match[1].replace(_QUOTE, "'"))
    for name in _NAMES & before.keys() & now.keys():
      now[name] = _more(before[name], now[name])
    return _written(before | now)

  return _TYPED.sub(whole_flag, said)


def _named(typed: str) -> dict[str, str]:
  """'a=1;b=2' as {a: '1', b: '2'}."""
  parts = [part.partition('=') for part in typed.split(';') if part]
  return {name: value for name, _, value in parts}


def whole(name: str, low: int, most: int = _MOST, **options: int) -> None:
  """Checks that every option is between `low` and `most`.

  Raises:
    ValueError: (one line) for the first that is not.
  """
  for option, value in options.items():
    if not low <= value <= most:
      upto = 'or more' if most == _MOST else f'to {most}'
      raise ValueError(
          f'{name}: {option} must be {low} {upto}; got {brief(value)}.'
      )


def several(names: Names) -> tuple[str, ...]:
  """('a', 'b') from 'a, b' or from a sequence, without blanks or empty names.
  """
  parts = names.split(',') if isinstance(names, str) else names
  return tuple(part.strip() for part in parts if part.strip())
