"""A configuration as the Python file that returns it."""
from collections.abc import Iterable
import dataclasses
import math
from typing import Any

from vfljax.runner.config import Config

_PLAIN = (str, bool, int, float, type(None))
_NO_CODE = (math.inf, -math.inf)  # Nor NaN.


def module(config: Config, docstring: str) -> str:
  """A config file's text."""
  used = sorted(_classes(config))
  return (
      f'"""{docstring}"""\nfrom vfljax.runner.config import (\n'
      f'    {", ".join(used)},\n)\n\n\ndef get_config() -> Config:\n'
      f'  return {_code(config, 2)}\n'
  )


def unwritable(value: Any, name: str = '') -> tuple[str, Any] | None:
  """A field whose value is nothing that `module` can write, and the value.

  Returns:
    (its name, the value); `None` if all can be written.
  """
  parts: Iterable[tuple[Any, Any]] = ()
  if type(value).__module__ == Config.__module__:
    parts = vars(value).items()
  elif isinstance(value, dict):
    parts = value.items()
  elif type(value) in (tuple, list):
    parts = enumerate(value)
  elif type(value) not in _PLAIN or value in _NO_CODE or value != value:
    return name, value
  inner = (
      unwritable(own, f'{name}.{key}' if name else str(key))
      for key, own in parts
  )
  return next(filter(None, inner), None)


def _classes(value: Any) -> set[str]:
  if isinstance(value, (tuple, list)):
    return {name for part in value for name in _classes(part)}
  if not dataclasses.is_dataclass(value):
    return set()
  parts = [_classes(part) for _, part in _set(value)]
  return {type(value).__name__}.union(*parts)


def _set(value: Any) -> list[tuple[str, Any]]:
  """The fields whose values differ from their defaults."""
  found = []
  for f in dataclasses.fields(value):
    default = f.default
    if f.default_factory is not dataclasses.MISSING:
      default = f.default_factory()
    if (own := getattr(value, f.name)) != default:
      found.append((f.name, own))
  return found


def _code(value: Any, indent: int) -> str:
  inner = indent + 4
  if isinstance(value, tuple) and any(map(dataclasses.is_dataclass, value)):
    parts = [_code(part, inner) for part in value]
    return _lines('(', parts, indent)
  if not dataclasses.is_dataclass(value):
    return repr(value)
  parts = [f'{name}={_code(own, inner)}' for name, own in _set(value)]
  start = f'{type(value).__name__}('
  return _lines(start, parts, indent) if parts else start + ')'


def _lines(start: str, parts: list[str], indent: int) -> str:
  """The parts, up to a ')', on one line if they fit, else one a line."""
  one = f'{start}{", ".join(parts)}{"," if start == "(" else ""})'
  if len(one) + indent < 70 and '\n' not in one:
    return one
  space = ' ' * (indent + 4)
  body = ''.join(f'\n{space}{part},' for part in parts)
  return f'{start}{body}\n{" " * indent})'
