"""Converts a configuration's values to their fields' declared types.

A config file in Python may have a list where a tuple is declared, or a NumPy
integer for an `int`. They mean the same, also in JSON; after the conversion all
code can rely on the declared types.
"""
import dataclasses
import types
import typing
from typing import Any, TypeVar

import numpy as np

_T = TypeVar('_T')
_DEEPEST = 30  # Groups within groups; `ranges` refuses fewer than that.


def as_declared(group: _T, depth: int = 0) -> _T:
  """A dataclass with tuples for lists, and Python's numbers for NumPy's.

  Args:
    group: A configuration or a group of it; stays as it is.
    depth: How many groups it is nested in.

  Returns:
    A copy, or `group` itself if nothing was converted. Values of entirely other
    types are left to `ranges.check`, which refuses them.
  """
  kinds, changed = typing.get_type_hints(type(group)), {}
  for f in dataclasses.fields(typing.cast(Any, group)):
    value = getattr(group, f.name)
    new = _converted(value, kinds[f.name], depth)
    if new is not value:
      changed[f.name] = new
  if not changed:
    return group
  return dataclasses.replace(typing.cast(Any, group), **changed)


def _converted(value: Any, kind: Any, depth: int) -> Any:
  """`value` as a `kind`; unchanged if it is one, or cannot be converted."""
  origin, inner = typing.get_origin(kind), typing.get_args(kind)
  if depth > _DEEPEST:  # A list within itself.
    return value
  if origin in (types.UnionType, typing.Union):  # 'float | None'
    return _converted(value, inner[0], depth)
  if isinstance(value, (np.bool_, np.integer, np.floating)):
    # np.float64 is a float; JAX types its results otherwise than a float's.
    return value if isinstance(value, float) else value.item()
  if dataclasses.is_dataclass(value) and not isinstance(value, type):
    return as_declared(value, depth + 1)
  if isinstance(value, dict):
    of = inner[1] if origin is dict else Any
    new = {k: _converted(v, of, depth + 1) for k, v in value.items()}
    return value if _same(new.values(), value.values()) else new
  if isinstance(value, (list, tuple)):
    several = origin is tuple
    of = inner[0] if several else Any
    entries = [_converted(v, of, depth + 1) for v in value]
    if _same(entries, value) and not (several and isinstance(value, list)):
      return value
    if isinstance(value, tuple) and hasattr(value, '_fields'):
      return type(value)(*entries)  # A NamedTuple among a defense's options.
    # Options are of no declared type: a list stays one.
    return entries if isinstance(value, list) and not several else (
        tuple(entries)
    )
  return value


def _same(some: Any, others: Any) -> bool:
  """Whether no entry was converted."""
  return all(a is b for a, b in zip(some, others, strict=True))
