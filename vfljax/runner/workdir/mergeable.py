"""In which fields the configurations of mergeable runs may differ.

Each run lists rows: defenses under names. Runs may have different rows, or the
same row at different strengths. But a name must stand for the same method in
all of them, because only the name tells rows apart after merging. The first
seed may differ only if it does not decide which samples are tested.
"""
from collections.abc import Iterable, Mapping
import dataclasses
import json
from typing import Any, NamedTuple

from vfljax.runner.config import Entry
from vfljax.runner.config.nested import flat
from vfljax.runner.workdir import parts

FIRST = 'first_seed'
# Top-level fields that may differ if all others are the same.
FIELDS = frozenset({
    'defenses', 'attacks', 'listed', 'listed_attacks', 'seeds', FIRST,
})
UNSAID = 'not set'  # For a field that only the other row has.


class Odd(NamedTuple):
  """A field in which two rows of the same name differ.

  Attributes:
    name: The rows' name.
    field: The field, such as 'options.power'.
    one: The first row's value, as in JSON, or `UNSAID`.
    other: The second row's value.
  """

  name: str
  field: str
  one: Any
  other: Any


def fields(*configs: Mapping[str, Any]) -> frozenset[str]:
  """Top-level fields in which these configurations may differ."""
  split = any(one_split(config) for config in configs)
  return FIELDS - {FIRST} if split else FIELDS


def one_split(config: Mapping[str, Any]) -> bool:
  """Whether all seeds have the train/test split of `first_seed`."""
  return not config.get('data', {}).get('resplit', True)


def can_be_merged(
    one: Mapping[str, Any], other: Mapping[str, Any], names: Iterable[str]
) -> bool:
  """Whether runs whose configurations differ in `names` can be merged."""
  return {*names} <= fields(one, other) and not odds(listed(one), listed(other))


def listed(config: Mapping[str, Any]) -> list[Entry]:
  """The rows that a configuration lists, whether they are asked for or not."""
  return [entry(e) for e in config.get('listed', ())]


def entry(saved: Mapping[str, Any]) -> Entry:
  """The row that config.json describes; older files have fewer fields."""
  return Entry(
      saved['defense'], tuple(saved.get('strengths', ())),
      saved.get('options', {}), saved.get('label', ''),
      tuple(map(entry, saved.get('after', ()))), saved.get('grid', {}),
  )


def odds(one: Iterable[Entry], other: Iterable[Entry]) -> list[Odd]:
  """Fields other than strengths in which rows of the same name differ."""
  there = {row.name: method(row) for row in other}
  found = []
  for row in one:
    own, theirs = method(row), there.get(row.name)
    if theirs is None:
      continue
    for field in own | theirs:
      a, b = (x.get(field, UNSAID) for x in (own, theirs))
      if a != b:
        found.append(Odd(row.name, field, a, b))
  return found


def method(row: Entry) -> dict[str, Any]:
  """A row's non-empty fields, without its strengths and its label."""
  said = json.loads(parts.dumps(_full(row)))
  del said['strengths']
  return {k: v for k, v in flat(said).items() if v not in ([], {})}


def _full(row: Entry) -> dict[str, Any]:
  """A row's fields without its label; empty fields of `after` are left out."""
  said = {f.name: getattr(row, f.name) for f in dataclasses.fields(row)}
  said['after'] = [
      {k: v for k, v in _full(e).items() if v not in ((), [], {})}
      for e in row.after
  ]
  del said['label']
  return said
