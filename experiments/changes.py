"""What has changed between a record's config and that of its run again."""
from collections.abc import Iterator, Mapping
from typing import Any

from vfljax.commands import same

_TOLD = 3  # Changed fields.
# Mappings that have what somebody set; others have the fields of their type.
_FREE = 'options', 'grid', 'own'


def told(record: Mapping[str, Any], again: Mapping[str, Any]) -> str:
  """'train.epochs is 30 in the record and 20 now', of the first such fields."""
  then, now = same.agreed([r.get('config', {}) for r in (record, again)])
  found = list(_differences(then, now))
  more = f'and {len(found) - _TOLD} more'
  return '; '.join(found[:_TOLD] + [more] * (len(found) > _TOLD))


def _differences(then: Any, now: Any, name: str = '') -> Iterator[str]:
  """Each field that has changed, in words; those that came later have not."""
  if isinstance(then, dict) and isinstance(now, dict):
    names = [k for k in then if k in now and (name or k != 'seeds')]
    if name.rpartition('.')[2] in _FREE:
      names = list(dict.fromkeys([*then, *now]))
    for own in names:
      before, after = then.get(own, 'unset'), now.get(own, 'unset')
      yield from _differences(before, after, f'{name}.{own}'.lstrip('.'))
  elif _are_of_mappings(then, now):
    if len(then) != len(now):
      yield f'len({name}) is {len(then)} in the record and {len(now)} now'
    for i, (before, after) in enumerate(zip(then, now)):
      yield from _differences(before, after, f'{name}[{i}]')
  elif not _still(then, now):
    yield f'{name} is {then} in the record and {now} now'


def _are_of_mappings(*values: Any) -> bool:
  """Whether these are lists, and there is a mapping in one."""
  lists = [x for x in values if isinstance(x, list)]
  some = any(isinstance(x, dict) for own in lists for x in own)
  return some and len(lists) == len(values)


def _still(then: Any, now: Any) -> bool:
  """Whether a value is what it was, but for options that it lacked, unset."""
  if not (isinstance(then, list) and isinstance(now, list)):
    return then == now
  added = now[len(then):]
  return (
      len(then) <= len(now) and all(map(_still, then, now))
      and all(x is None for x in added)
  )
