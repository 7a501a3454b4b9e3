"""Configurations of earlier versions: fields that did not exist yet.

A work directory keeps its whole configuration. When a later version gives
`Config` another field, the runs of before did what the field's default does;
so they go on, and only what differs from the default is another experiment.
"""
import dataclasses
import typing
from typing import Any

from experiments.config import Config


def completed(saved: dict, kind: Any = Config) -> dict:
  """A saved configuration with defaults for the fields that it lacks.

  Args:
    saved: What `dataclasses.asdict` made of a `kind`, through JSON.
    kind: The dataclass.

  Returns:
    The same, deeper groups and lists of them included. Entries that `kind` does
    not know stay.
  """
  types = typing.get_type_hints(kind)
  found = dict(saved)
  for f in dataclasses.fields(kind):
    if f.name in saved:
      found[f.name] = _deeper(saved[f.name], types[f.name])
    elif f.default is not dataclasses.MISSING:
      found[f.name] = _plain(f.default)
    elif f.default_factory is not dataclasses.MISSING:
      found[f.name] = _plain(f.default_factory())
  return found


def _deeper(value: Any, kind: Any) -> Any:
  if dataclasses.is_dataclass(kind) and isinstance(value, dict):
    return completed(value, kind)
  inner = typing.get_args(kind)
  if isinstance(value, list) and inner:
    return [_deeper(v, inner[0]) for v in value]
  return value


def _plain(value: Any) -> Any:
  if dataclasses.is_dataclass(value) and not isinstance(value, type):
    return dataclasses.asdict(value)
  return list(value) if isinstance(value, tuple) else value
