"""Reads a work directory's files of text, which people open and edit.

What an editor, a copy or another program has spoiled is refused in one place,
with the file and its line or field, as far as types tell: values of the right
type are taken as they stand. A byte order mark is no damage: some editors add
one.
"""
from collections.abc import Iterator, Mapping
import contextlib
import dataclasses
import json
import math
import os
from pathlib import Path
from typing import Any

from vfljax.runner.config import Config, Entry
from vfljax.runner.errors import UserError
from vfljax.runner.machine import disk
from vfljax.runner.workdir import collecting, identity, parts
from vfljax.runner.workdir.parts import FIELDS, Damaged

# Fields of a unit's timing with which reports calculate.
_NUMBERS = (
    'classes', 'compile_seconds', 'run_seconds', 'rounds_per_second',
    'peak_memory_bytes',
)
_USUAL = dataclasses.asdict(Config()) | dict(sources={})  # A run adds these.
_KINDS = {dict: 'an object', list: 'a list', str: 'text'}
# Of what lists consist.
_ROW = dataclasses.asdict(Entry(''))
_PARTS: dict[str, Any] = dict(
    listed=_ROW, after=_ROW, variants={}, listed_attacks='',
)


def config(path: str | os.PathLike) -> dict[str, Any]:
  """The configuration in a work directory; {} if it has none.

  Raises:
    UserError: if it and its copy are both damaged, or edited beyond use.
  """
  place = Path(path)
  found = identity.read(place)
  if _odd(found):  # The copy has a digest, so nobody has edited that.
    found = identity.said(place)
  if odd := _odd(found):
    raise UserError(
        f'{place / identity.CONFIG} is damaged: {odd}.\nUndo what was edited, '
        'or copy the folder again.'
    )
  return found


def results(path: str | os.PathLike) -> list[dict]:
  """The rows of results.jsonl; null values come back as NaN.

  Raises:
    UserError: if it is damaged, or lacks results of finished units.
  """
  place, timed = Path(path), timings(path)  # A run writes rows first.
  with _readable(place / 'results.jsonl') as text:
    if (rows := _measured(text)) is None:
      raise Damaged(f'line {_wrong_line(text)} is no measurement')
    found = [row | {'value': _or_nan(row['value'])} for row in rows]
  collecting.check(place, [t['unit'] for t in timed], len(found))
  return found


def timings(path: str | os.PathLike) -> list[dict]:
  """The objects of timings.json; each has its 'unit'.

  Raises:
    UserError: if it is damaged.
  """
  with _readable(Path(path) / 'timings.json') as text:
    try:
      return [
          {'unit': t['unit']} | _checked(t) for t in json.loads(text or '[]')
      ]
    except json.JSONDecodeError as error:
      raise Damaged(f'line {error.lineno} is no JSON') from None
    except (LookupError, TypeError, ValueError, RecursionError):
      raise Damaged('it is no list of units') from None


def _odd(
    found: Mapping[str, Any], usual: Mapping[str, Any] = _USUAL, group: str = ''
) -> str:
  """What is wrong with a configuration's fields; '' if nothing is."""
  for name, value in found.items():
    kind = type(usual.get(name))
    kind = list if kind is tuple else kind
    if kind in _KINDS and not isinstance(value, kind):
      return f'{group}{name} is {value!r}, not {_KINDS[kind]}'
    if kind is dict and (odd := _odd(value, usual[name], f'{name}.')):
      return odd
    for part in value if kind is list else ():
      if odd := _odd_part(name, part, _PARTS.get(name)):
        return odd
  return ''


def _odd_part(name: str, part: Any, usual: Any) -> str:
  if usual is None:  # Numbers, or what nobody reads.
    return ''
  if not isinstance(part, type(usual)):
    return f'{name} has {part!r}, not {_KINDS[type(usual)]}'
  if usual is _ROW and 'defense' not in part:
    return f'{name} has {json.dumps(part)} without a defense'
  return _odd(part, usual, f'{name}.') if isinstance(usual, dict) else ''


def _checked(timing: dict) -> dict:
  """A unit's timing, whose fields have the types that reports rely on."""
  if not isinstance(timing['unit'], str):
    raise Damaged('a unit has no name')
  for name in _NUMBERS:
    if not isinstance(timing.get(name) or 0, (int, float)):
      raise Damaged(f'{name} of {timing["unit"]} is no number')
  return timing


def _measured(text: str) -> list[dict] | None:
  """The rows of some lines; `None` if one of them is no measurement."""
  try:
    rows = [{k: row[k] for k in FIELDS} for row in parts.lines(text)]
    for row in rows:
      if row['value'] != row['value']:  # NaN is null here, but not in Python.
        row['value'] = None
  except (ValueError, LookupError, TypeError, RecursionError):
    return None
  return rows if all(map(parts.is_row, rows)) else None


def _wrong_line(text: str) -> int:
  """The first line that is no measurement, counted from 1."""
  each = enumerate(text.split('\n'), start=1)
  return next(number for number, line in each if _measured(line) is None)


@contextlib.contextmanager
def _readable(file: Path) -> Iterator[str]:
  """A file's text, or '', for a block; its errors become `UserError`."""
  try:
    yield file.read_text('utf-8-sig') if os.path.lexists(file) else ''
  except OSError as error:
    if not disk.is_lost(error):  # As another user's file.
      raise disk.unreadable(file, error) from error
    raise _damaged(file, error.strerror or str(error)) from error
  except (Damaged, ValueError) as error:
    said = str(error) if isinstance(error, Damaged) else 'it is not UTF-8'
    raise _damaged(file, said) from error


def _damaged(file: Path, why: str) -> UserError:
  return UserError(
      f'{file} is damaged: {why}.\nRun the experiment again to write it again: '
      'what is done is not run twice.'
  )


def _or_nan(value: float | None) -> float:
  return math.nan if value is None else value
