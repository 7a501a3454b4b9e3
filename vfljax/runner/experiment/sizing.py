"""Rows that differ in sizes alone: one program of the largest.

See `defense.Method.sized`: how often an attacker strikes whom a defender
imagines is a number of a loop, which the program may be told. On CPUs alone,
where trainings are played one by one: trainings in a batch would ask in each
turn of the loop which of them are over.
"""
from collections.abc import Callable, Sequence
import dataclasses
from typing import Any

from vfljax import defenses, target
from vfljax.runner.config import Entry


def _sizes(entry: Entry) -> dict[str, dict[str, int]]:
  """By argument, those of the entry's options that are not swept already."""
  if target.kind() != 'cpu':
    return {}
  method = defenses.REGISTRY.get(entry.defense)
  found = {
      name: getattr(entry.options.get(name), 'sizes', {})
      for name in (method.sized if method else ())
      if not any(swept.partition('.')[0] == name for swept in entry.grid)
  }
  return {name: sizes for name, sizes in found.items() if sizes}


def without(entry: Entry) -> dict[str, Any]:
  """The options, of size one: the same where they differ in sizes alone."""
  return entry.options | {
      name: entry.options[name].of_size(**dict.fromkeys(sizes, 1))
      for name, sizes in _sizes(entry).items()
  }


def largest(
    listed: Sequence[Entry], entry: Entry, bare: Callable[[Entry], Any]
) -> tuple[Entry, dict[str, int]]:
  """The entry with the largest sizes of all like it, and which it has of them.

  Args:
    listed: The experiment's.
    bare: What entries are compared by.

  Returns:
    The entry itself and {} where there is none like it of another size, and
    wherever the program is not for a CPU.
  """
  own = _sizes(entry)
  alike = [_sizes(e) for e in listed if own and bare(e) == bare(entry)]
  if all(sizes == own for sizes in alike):
    return entry, {}
  options, numbers = dict(entry.options), {}
  for name, sizes in own.items():
    most = {part: max(e[name][part] for e in (own, *alike)) for part in sizes}
    options[name] = options[name].of_size(**most)
    numbers |= {f'{name}.{part}': n for part, n in sizes.items()}
  return dataclasses.replace(entry, options=options), numbers
