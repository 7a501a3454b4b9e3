"""What parts of one experiment may differ in.

Each part lists rows: defenses under names. Parts may have other rows, and a row
at other strengths; but what two of them call by one name must be one method, as
the name is all that tells rows apart afterwards. Nor is the seed that an
experiment begins with free where it decides which samples are tested.
"""
from collections.abc import Iterable, Mapping
import dataclasses
import json
from typing import Any, NamedTuple

from vfljax.runner.config import Entry
from vfljax.runner.config.nested import flat
from vfljax.runner.workdir import parts

FIRST = 'first_seed'
# Of the top, if all else is the same.
FIELDS = frozenset({
    'defenses', 'attacks', 'listed', 'listed_attacks', 'seeds', FIRST,
})
UNSAID = 'not set'  # What a row lacks that its namesake has.


class Odd(NamedTuple):
  """What two rows of one name differ in.

  Attributes:
    name: Theirs.
    field: As 'options.power'.
    one: What the first one has there, as JSON has it, or `UNSAID`.
    other: The second one.
  """

  name: str
  field: str
  one: Any
  other: Any


def fields(*configs: Mapping[str, Any]) -> frozenset[str]:
  """Fields of the top that may be other ones in each of these."""
  split = any(one_split(config) for config in configs)
  return FIELDS - {FIRST} if split else FIELDS


def one_split(config: Mapping[str, Any]) -> bool:
  """Whether all seeds have the train/test split of `first_seed`."""
  return not config.get('data', {}).get('resplit', True)


def can_be_merged(
    one: Mapping[str, Any], other: Mapping[str, Any], names: Iterable[str]
) -> bool:
  """Whether two configurations that differ in `names` are of parts."""
  return {*names} <= fields(one, other) and not odds(listed(one), listed(other))


def listed(config: Mapping[str, Any]) -> list[Entry]:
  """The rows that a configuration lists, asked for or not."""
  return [entry(e) for e in config.get('listed', ())]


def entry(saved: Mapping[str, Any]) -> Entry:
  """A row as config.json has it; earlier versions wrote fewer fields."""
  return Entry(
      saved['defense'], tuple(saved.get('strengths', ())),
      saved.get('options', {}), saved.get('label', ''),
      tuple(map(entry, saved.get('after', ()))), saved.get('grid', {}),
  )


def odds(one: Iterable[Entry], other: Iterable[Entry]) -> list[Odd]:
  """What rows of the same name differ in, but for their strengths."""
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
  """What a row does at any strength, by field, without what is empty."""
  said = json.loads(parts.dumps(_full(row)))
  del said['strengths']
  return {k: v for k, v in flat(said).items() if v not in ([], {})}


def _full(row: Entry) -> dict[str, Any]:
  """A row, without what results call it and what is empty."""
  said = {f.name: getattr(row, f.name) for f in dataclasses.fields(row)}
  said['after'] = [
      {k: v for k, v in _full(e).items() if v not in ((), [], {})}
      for e in row.after
  ]
  del said['label']
  return said
