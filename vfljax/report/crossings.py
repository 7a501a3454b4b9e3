"""The report's table of what crosses between the parties in a round.

`auditing.of_job` writes these facts into the timing records, once a job.
"""
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from vfljax.report import reading
from vfljax.report.tables import Table, Text

TITLE = 'What crosses between the parties in a round'
_WAYS = ('up', 'down')
_UNITS = ('B', 'KiB', 'MiB', 'GiB', 'TiB')


def taken(units: Sequence[dict]) -> list[Table]:
  """The table in a list, or [] if no unit has such a record.

  Removes the records from `units`, so that the timings' table omits them.
  """
  found: dict[str, Mapping] = {}
  for unit in units:
    own = unit.pop('crossing', None)
    if isinstance(own, Mapping):
      found.setdefault(str(own.get('defense')), own)
  if not found:
    return []
  return [Table(
      TITLE, _note(list(found.values())),
      ('defense', 'up, a round', 'down, a round', 'up, an epoch',
       'down, an epoch', 'anything else'),
      [_row(name, own) for name, own in found.items()],
  )]


def warnings(units: Sequence[Mapping]) -> list[str]:
  """A warning for each defense that the audit proves to leak.

  Call it before `taken`, which removes the records that it reads.
  """
  said = {}
  for unit in units:
    own = unit.get('crossing')
    if isinstance(own, Mapping) and own.get('leaks'):
      name = reading.pretty(str(own.get('defense')))
      said[name] = (
          f'WARNING: the audit proves that {name} leaks beside the messages: '
          f'{_leak(own)}. No attack here looks there, so the leakage below '
          'understates what an attacker can learn.'
      )
  return [*said.values()]


def _leak(own: Mapping[str, Any]) -> str:
  """The first leak that the audit found, and how many more there are."""
  more = own['count'] - 1
  return f'{own["leaks"][0]}' + (f' (and {more} more)' if more else '')


def _note(found: Sequence[Mapping]) -> str:
  known = [own for own in found if 'error' not in own]
  sizes = {(own['samples'], own['rounds']) for own in known}
  amount = ''.join(
      f' A round has {samples} samples, an epoch {rounds} rounds.'
      for samples, rounds in sizes if len(sizes) == 1
  )
  return (
      f'The messages of all passive parties together: they send "up" and '
      f'receive "down".{amount} "Nothing" in the last column is proved by '
      'following every value of one traced round in which all parties keep to '
      'the protocol. All parties run in one process here, so the sizes leave '
      'out what keys, encryption or secret shares would add between machines, '
      'and what a tighter code would save: zeros and few digits count in full. '
      'Embeddings sent for validation and inference are not counted. '
      'How much the messages reveal is what the attacks measure.'
  )


def _row(name: str, own: Mapping[str, Any]) -> list[Text]:
  first = Text(reading.pretty(name), strong=True)
  if 'error' in own:
    blank = [Text('–')] * (2 * len(_WAYS))
    return [first, *blank, Text(f'not known, no audit: {own["error"]}')]
  a_round = [Text(_messages(own['messages'], way)) for way in _WAYS]
  an_epoch = [Text(_size(own['epoch_bytes'][way])) for way in _WAYS]
  leaks = bool(own['leaks'])
  return [
      first, *a_round, *an_epoch,
      Text(_else(own), 0 if leaks else None, leaks),
  ]


def _messages(messages: Sequence[Sequence], way: str) -> str:
  """'2 × [64, 8] float32, 4.0 KiB'."""
  mine = [message for message in messages if message[1] == way]
  kinds = Counter((tuple(shape), kind) for _, _, shape, kind, _ in mine)
  said = [
      f'{f"{times} × " if times > 1 else ""}{list(shape)} {kind}'
      for (shape, kind), times in kinds.items()
  ]
  return f'{" + ".join(said)}, {_size(sum(message[4] for message in mine))}'


def _else(own: Mapping[str, Any]) -> str:
  """What the audit found to cross besides messages."""
  if own['leaks']:
    return f'LEAK: {_leak(own)}'
  if not own['borrowers']:
    return 'nothing'
  who = ', '.join(map(str, own['borrowers']))
  anew = ', '.join(own.get('made_anew_of', ()))  # Older runs do not say.
  return f'only what the defense lends to party {who}' + (
      f', which it renews between epochs from {anew}' if anew else ''
  )


def _size(size: float) -> str:
  """'4.0 KiB'."""
  for unit in _UNITS[:-1]:
    if size < 1024:
      return f'{size:.1f} {unit}' if unit != 'B' else f'{size:.0f} B'
    size /= 1024
  return f'{size:.1f} {_UNITS[-1]}'
