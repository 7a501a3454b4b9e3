"""Lets entries that differ only in sizes share one program, of the largest.

`defense.Method.sized` names such sizes: for example, how many steps the attack
takes that a defender simulates. It is the length of a loop, which a program can
get as an argument. This is done on CPUs only, where trainings run one by one:
in a batch of trainings each step of the loop would have to test which of them
are finished.
"""
from collections.abc import Callable, Sequence
import dataclasses
from typing import Any

from vfljax import defenses, target
from vfljax.runner.config import Entry


def _sizes(entry: Entry) -> dict[str, dict[str, int]]:
  """Argument -> its sizes, for sized options that the grid does not sweep."""
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
  """The options with all sizes set to 1, to compare entries without sizes."""
  return entry.options | {
      name: entry.options[name].of_size(**dict.fromkeys(sizes, 1))
      for name, sizes in _sizes(entry).items()
  }


def largest(
    listed: Sequence[Entry], entry: Entry, bare: Callable[[Entry], Any]
) -> tuple[Entry, dict[str, int]]:
  """The entry with the largest sizes among similar ones, and its own sizes.

  Args:
    listed: The experiment's entries.
    entry: One of them.
    bare: Entries for which it returns the same value are similar.

  Returns:
    (entry with the largest sizes, 'argument.part' -> the entry's own size); the
    entry itself and {} if no similar entry has another size, or the program is
    not for a CPU.
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
