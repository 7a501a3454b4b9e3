"""A loader's options, each made what its parameter is declared to be.

At a command line 5 is a number and a column may be called so; whoever calls a
loader from Python means what he types. So text takes numbers, and names take a
tuple or words between commas.
"""
from collections.abc import Callable, Sequence
import functools
import os
import sys
import types
import typing
from typing import Any

import numpy as np

from vfljax.data.files import brief

Names = str | Sequence[str]  # 'a, b', or ('a', 'b').
_WORDS = {
    int: 'a whole number', float: 'a finite number', bool: 'True or False',
    str: 'a word',
}
_MOST = 2**63 - 1  # Larger ones are in no file and no loop.


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
      option: as_kind(value, kinds.get(option), f'{name}: {option}')
      for option, value in given.items()
  }


def as_kind(value: Any, kind: Any, where: str) -> Any:
  """`value` as a `kind`: int, float, bool, str, or several of one of them.

  Raises:
    ValueError: (one line) if it is none.
  """
  origin, inner = typing.get_origin(kind), typing.get_args(kind)
  several = isinstance(value, (tuple, list))
  if origin in (typing.Union, types.UnionType):
    kind = next((k for k in inner if bool(typing.get_args(k)) == several), None)
    return as_kind(value, kind, where)
  if inner and origin is not None and issubclass(origin, Sequence):
    parts = value if several else (value,)
    return tuple(as_kind(part, inner[0], where) for part in parts)
  if kind not in _WORDS:
    return value
  if isinstance(value, np.generic):
    value = value.item()
  number = None if isinstance(value, bool) else value
  if kind is str and isinstance(
      value, (bool, int, float, type(None), os.PathLike)
  ):
    return str(value)
  if isinstance(number, (int, float)):
    if kind is float and abs(number) <= sys.float_info.max:
      return float(number)
    if kind is int and abs(number) <= _MOST and number == int(number):
      return int(number)
  if kind in (bool, str) and isinstance(value, kind):
    return value
  raise ValueError(f'{where} must be {_WORDS[kind]}; got {brief(value)}.')


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
