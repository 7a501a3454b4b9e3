"""Converts typed values to declared types, or refuses them in one line.

Users type text, numbers and tuples of them; a loader or an attack declares int,
float, bool, str, or a sequence of one of these. A `Rule` says how strict the
conversion is, and the words of its messages.
"""
from collections.abc import Callable, Sequence
import types
import typing
from typing import Any, NamedTuple

import numpy as np


class Rule(NamedTuple):
  """How values are converted.

  Attributes:
    whole: The largest whole number allowed.
    large: The largest number allowed.
    words: {kind: its name}, for messages.
    show: (value) -> text, for messages.
    texts: Types whose values are accepted as a word, too.
    lenient: Whether values for kinds other than int, float, bool and str pass.
  """

  whole: int
  large: float
  words: dict[Any, str]
  show: Callable[[Any], str]
  texts: tuple[type, ...] = ()
  lenient: bool = False


def as_kind(value: Any, kind: Any, where: str, rule: Rule) -> Any:
  """`value` as a `kind`: int, float, bool, str, or a tuple of one of them.

  Args:
    kind: The declared type. Of a union, the first member that is a sequence if
      `value` is one, else the first that is not.
    where: The value's name, for the message.

  Raises:
    ValueError: (one line) if it cannot be converted.
  """
  origin, inner = typing.get_origin(kind), typing.get_args(kind)
  several = isinstance(value, (tuple, list))
  if origin in (typing.Union, types.UnionType):
    kind = next((k for k in inner if bool(typing.get_args(k)) == several), None)
    return as_kind(value, kind, where, rule)
  if inner and isinstance(origin, type) and issubclass(origin, Sequence):
    parts = value if several else (value,)
    return tuple(as_kind(part, inner[0], where, rule) for part in parts)
  if rule.lenient and kind not in (int, float, bool, str):
    return value
  if isinstance(value, np.generic):
    value = value.item()
  found = _one(value, kind, rule)
  if found is None:
    raise ValueError(
        f'{where} must be {rule.words.get(kind, kind)}; got {rule.show(value)}.'
    )
  return found


def _one(value: Any, kind: Any, rule: Rule) -> int | float | bool | str | None:
  """A single value as a `kind`; `None` if it cannot be converted."""
  if kind in (bool, str) and isinstance(value, kind):
    return value
  if kind is str and isinstance(value, rule.texts):
    return str(value)
  if isinstance(value, (int, float)) and not isinstance(value, bool):
    if kind is float and abs(value) <= rule.large:
      return float(value)
    if kind is int and abs(value) <= rule.whole and value == int(value):
      return int(value)
  return None


def check_options(kind: Any) -> None:
  """Passes if `kind` is a NamedTuple class with a default for every field.

  Raises:
    TypeError: if not.
  """
  fields = getattr(kind, '_fields', None) if isinstance(kind, type) else None
  if fields is None or len(fields) > len(kind._field_defaults):
    raise TypeError(
        'recipe: options must be a NamedTuple class with a default for every '
        f'field; got {kind!r}.'
    )
