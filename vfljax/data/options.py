"""A loader's options, each made what its parameter is declared to be.

At a command line 5 is a number and a column may be called so; whoever calls a
loader from Python means what he types. So text takes numbers, and names take a
tuple or words between commas.
"""
from collections.abc import Callable, Sequence
import functools
import os
import re
import shlex
import sys
import typing
from typing import Any

from vfljax.converting import Rule, as_kind
from vfljax.data.files import brief

Names = str | Sequence[str]  # 'a, b', or ('a', 'b').
# Options that take several columns, and how a message says what to type.
_NAMES = {'drop', 'text', 'rounded', 'gaps'}
_TYPED = re.compile(
    r"--config\.data\.options=(?:'([^']+)'|([^\s']+?)(?=[,.;)]*(?:\s|$)))"
)
_MOST = 2**63 - 1  # Larger ones are in no file and no loop.
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
    load: The loader; what has no type there stays as it is.
    given: Options by name.
    name: Of the data set, for messages.

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


def flag(**given: str) -> str:
  """How options are typed: "--config.data.options='drop=a;sep=tab'"."""
  said = ';'.join(f'{name}={value}' for name, value in given.items())
  return f'--config.data.options={shlex.quote(said)}'


def retyped(said: str, typed: str) -> str:
  """A message whose advice keeps the options that somebody has typed.

  A loader knows its own options: "drop=id" alone would undo all others.

  Args:
    said: A message, perhaps with what `flag` gives in it.
    typed: The options typed so far: "decimal=comma;drop=since".
  """
  before = _named(typed)
  if not before:
    return said

  def whole_flag(match: re.Match) -> str:
    now = _named(match[1] or match[2])
    for name in _NAMES & before.keys() & now.keys():
      now[name] = f'{before[name]},{now[name]}'
    return flag(**before | now)

  return _TYPED.sub(whole_flag, said)


def _named(typed: str) -> dict[str, str]:
  """'a=1;b=2' as {a: '1', b: '2'}."""
  parts = [part.partition('=') for part in typed.split(';') if part]
  return {name: value for name, _, value in parts}


def whole(name: str, low: int, most: int = _MOST, **options: int) -> None:
  """Passes if every option is between `low` and `most`.

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
  """('a', 'b') of 'a, b' or of itself; blanks and empty names are left out."""
  parts = names.split(',') if isinstance(names, str) else names
  return tuple(part.strip() for part in parts if part.strip())
