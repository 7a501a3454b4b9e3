"""Values made what they are declared to be, or refused in one line.

What people type is text, numbers and tuples of them; what a loader or an attack
declares is int, float, bool, str, or several of one of them. How strict one is,
and in which words one refuses, is its `Rule`.
"""
from collections.abc import Callable, Sequence
import types
import typing
from typing import Any, NamedTuple

import numpy as np


class Rule(NamedTuple):
  """What is taken for what.

  Attributes:
    whole: The largest whole number.
    large: The largest number.
    words: What a value must be, by kind, for messages.
    show: A value as a message has it.
    texts: Types whose values also make a word.
    lenient: Whether a value of another kind than those passes as it is.
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
    kind: As it is declared. Of several, the first that takes as many values.
    where: What the value is of, for the message.

  Raises:
    ValueError: (one line) if it is none.
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
  """A single value as a `kind`; `None` if it is none."""
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
