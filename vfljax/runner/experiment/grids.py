"""An entry's grid of other arguments: its points, their names and options."""
from collections.abc import Callable, Sequence
import inspect
import itertools
from typing import Any

from vfljax.runner.config import Entry


def grid(entry: Entry) -> list[dict[str, float]]:
  """Every combination of an entry's other arguments; [{}] without a grid."""
  return [
      dict(zip(entry.grid, values))
      for values in itertools.product(*entry.grid.values())
  ]


def row_name(entry: Entry, others: dict[str, float]) -> str:
  """The name in the results of an entry at a point of its grid."""
  swept = [f'{k}={v:g}' for k, v in others.items() if len(entry.grid[k]) > 1]
  return ' '.join([entry.name, *swept])


def options(
    method: Callable[..., Any], entry: Entry, others: dict[str, Any]
) -> dict[str, Any]:
  """An entry's options with a point's values in place.

  Args:
    method: The defense's factory, which knows the arguments' defaults.
    entry: The defense and its options.
    others: Values by argument, or by a field of an argument that is a named
      tuple: 'attacker.plays'.

  Raises:
    ValueError: for a field that an argument does not have.
  """
  known = inspect.signature(method).parameters
  found = dict(entry.options)
  for name, value in others.items():
    argument, *parts = name.split('.')
    if parts and argument in known:
      whole = found.get(argument, known[argument].default)
      value = _replaced(whole, parts, value, f'{entry.name}: {name}')
    found[argument] = value
  return found


def _replaced(whole: Any, parts: Sequence[str], value: Any, name: str) -> Any:
  """A named tuple with one field replaced, given as a path of names."""
  if not parts:
    return value
  part, *rest = parts
  fields = getattr(whole, '_fields', ())
  if part not in fields:
    known = f'There are {", ".join(fields)}' if fields else 'It has no parts'
    raise ValueError(f'{name} cannot be swept: no part is {part!r}. {known}.')
  own = _replaced(getattr(whole, part), rest, value, name)
  return whole._replace(**{part: own})
