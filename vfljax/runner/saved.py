"""Configurations of earlier versions: fields that did not exist yet.

A work directory keeps its whole configuration. When a later version gives
`Config` another field, the runs of before did what the field's default does;
so they go on, and only what differs from the default is another experiment.
The same holds for NamedTuples among a defense's options (an imagined attacker),
which are lists there.
"""
import dataclasses
from itertools import zip_longest
import json
import typing
from typing import Any

from vfljax.runner.config import Config


def completed(saved: dict, now: Any = None, kind: Any = Config) -> dict:
  """A saved configuration with defaults for the fields that it lacks.

  Args:
    saved: What `dataclasses.asdict` made of a `kind`, through JSON.
    now: The configuration with which it is to be compared: says which of its
      lists are NamedTuples, and of which kind.
    kind: The dataclass.

  Returns:
    The same, deeper groups and lists of them included. Entries that `kind` does
    not know stay.
  """
  types = typing.get_type_hints(kind)
  found = dict(saved)
  for f in dataclasses.fields(kind):
    if f.name in saved:
      here = getattr(now, f.name, None)
      found[f.name] = _deeper(saved[f.name], here, types[f.name])
    elif f.default is not dataclasses.MISSING:
      found[f.name] = _plain(f.default)
    elif f.default_factory is not dataclasses.MISSING:
      found[f.name] = _plain(f.default_factory())
  return found


def _deeper(value: Any, now: Any, kind: Any = None) -> Any:
  if dataclasses.is_dataclass(kind) and isinstance(value, dict):
    return completed(value, now, kind)
  if isinstance(value, dict):
    known = now if isinstance(now, dict) else {}
    return {k: _deeper(v, known.get(k)) for k, v in value.items()}
  if not isinstance(value, list):
    return value
  if hasattr(now, '_fields'):  # A NamedTuple: fields are added at its end.
    added = now._fields[len(value):]
    new = [_plain(now._field_defaults.get(name)) for name in added]
    return [_deeper(v, n) for v, n in zip(value, now)] + new
  inner = (*typing.get_args(kind), None)[0]
  others = now if isinstance(now, (list, tuple)) else ()
  pairs = zip_longest(value, others[: len(value)])
  return [_deeper(v, n, inner) for v, n in pairs]


def _plain(value: Any) -> Any:
  if dataclasses.is_dataclass(value) and not isinstance(value, type):
    return dataclasses.asdict(value)
  return json.loads(json.dumps(value))
