"""Checks a configuration's fields: declared types and ranges.

`number`, `numbers` and `word` make fields of a dataclass with a default and
the allowed values. `check` goes over a whole configuration before anything is
read, compiled or written, so that wrong types and absurdly large numbers are
refused in one place. Lists for tuples and NumPy's numbers are converted before
(`declared`).
"""
from collections.abc import Collection, Iterator
import dataclasses
import math
import reprlib
import sys
import types
import typing
from typing import Any, NamedTuple
import unicodedata

from vfljax.check import kind as kind_of
from vfljax.runner.errors import UserError

WHOLE = 2**31 - 1  # The largest whole number of 32 bits.
LARGE = 1e9  # A larger number in an experiment must be a mistake.
LONGEST = 10_000  # Characters of a word, entries of a tuple.
LISTING = 10**6  # Characters of a text that names columns or files.
DEEPEST = 8  # Groups within groups of options.
_WORDS = {int: 'a whole number', float: 'a number', bool: 'True or False',
          str: 'a text'}


class Range(NamedTuple):
  """The numbers that a field may have.

  Attributes:
    low, high: The smallest and the largest.
    above, below: Whether `low`, or `high`, is excluded.
    most: The largest number of entries, for a tuple of numbers.
  """

  low: float
  high: float
  above: bool = False
  below: bool = False
  most: int = LONGEST

  def __str__(self) -> str:
    first = 'above ' if self.above else ''
    last = 'below ' if self.below else ''
    if self.high >= LARGE > -self.low:
      return f'above {_digits(self.low)}' if self.above else (
          f'{_digits(self.low)} or more'
      )
    return f'{first}{_digits(self.low)} to {last}{_digits(self.high)}'

  def why_not(self, value: float) -> str:
    """The bound that the number violates, in words; '' if it is inside."""
    if value < self.low or self.above and value == self.low:
      return f'above {_digits(self.low)}' if self.above else (
          f'{_digits(self.low)} or more'
      )
    if value > self.high or self.below and value == self.high:
      return f'below {_digits(self.high)}' if self.below else (
          f'{_digits(self.high)} or less'
      )
    return ''


def number(
    default: Any, low: float, high: float, *, above: bool = False,
    below: bool = False,
) -> Any:
  """A field with a number from `low` to `high`."""
  limits = Range(low, high, above, below)
  return dataclasses.field(default=default, metadata={'range': limits})


def needed(low: float, high: float) -> Any:
  """As `number`, without a default."""
  return dataclasses.field(metadata={'range': Range(low, high)})


def numbers(default: tuple, low: float, high: float, most: int) -> Any:
  """A field with a tuple of at most `most` numbers from `low` to `high`."""
  limits = Range(low, high, most=most)
  return dataclasses.field(default=default, metadata={'range': limits})


def word(default: str, choices: Collection[str]) -> Any:
  """A field with one of the words `choices`, such as a registry's names."""
  return dataclasses.field(default=default, metadata={'choices': choices})


def listing() -> Any:
  """A field with a text that may name thousands of columns; '' by default."""
  return dataclasses.field(default='', metadata={'longest': LISTING})


def allowed(f: dataclasses.Field) -> str:
  """A field's allowed values, for a help text; '' if its type says it all."""
  limits, choices = f.metadata.get('range'), f.metadata.get('choices')
  return ', '.join(choices) if choices else str(limits or '')


def check(group: Any, path: str = '') -> None:
  """Checks all fields of a dataclass, those of nested groups included.

  Args:
    group: A configuration, or a group of it.
    path: The group's path, for messages.

  Raises:
    UserError: for the first value that is of another type or out of its range.
  """
  kinds = typing.get_type_hints(type(group))
  for f in dataclasses.fields(group):
    value, here = getattr(group, f.name), f'{path}.{f.name}'.lstrip('.')
    if kinds[f.name] is str:
      _check_text(value, here, f.metadata.get('longest', LONGEST))
    else:
      _check_type(value, kinds[f.name], here, f.metadata.get('range'))
    choices = f.metadata.get('choices')
    if choices and value not in choices:
      raise UserError(
          f'{here} must be one of {", ".join(choices)}; got {shown(value)}.'
      )


def shown(value: Any) -> str:
  """A value as a user may have typed it, shortened if it is long."""
  cut = reprlib.Repr()
  cut.maxstring = cut.maxother = cut.maxlong = 60
  try:
    return cut.repr(value)
  except Exception:  # Its own repr, or more digits than Python prints.
    return kind_of(value)


def _check_type(
    value: Any, kind: Any, path: str, limits: Range | None
) -> None:
  """Refuses a value that is not of a declared type, or out of the range."""
  origin, inner = typing.get_origin(kind), typing.get_args(kind)
  if kind is Any:
    _check_plain(value, path)
  elif origin in (types.UnionType, typing.Union):  # 'float | None'
    if value is not None:
      _check_type(value, inner[0], path, limits)
  elif origin is tuple:
    _check_tuple(value, inner[0], path, limits)
  elif origin is dict:
    for key, entry in _entries(value, path):
      _check_type(entry, inner[1], f'{path}.{key}', limits)
  elif dataclasses.is_dataclass(kind):
    if not isinstance(value, typing.cast(type, kind)):
      name = getattr(kind, '__name__', kind)
      raise UserError(f'{path} must be a {name}; got {shown(value)}.')
    check(value, path)
  elif kind is str:
    _check_text(value, path)
  elif kind is bool:
    _must(isinstance(value, bool), path, _WORDS[bool], value)
  else:
    _check_number(value, kind, path, limits)


def _check_tuple(
    value: Any, kind: Any, path: str, limits: Range | None
) -> None:
  _must(isinstance(value, tuple), path, 'a tuple', value)
  most = limits.most if limits else LONGEST
  if len(value) > most:
    raise UserError(
        f'{path} must have {most} entries or fewer; got {len(value)}.'
    )
  for i, entry in enumerate(value):
    _check_type(entry, kind, f'{path}[{i}]', limits)


def _check_number(
    value: Any, kind: Any, path: str, limits: Range | None
) -> None:
  number = isinstance(value, int) and not isinstance(value, bool)
  number = number or kind is float and isinstance(value, float)
  _must(number, path, _WORDS[kind], value)
  if _endless(value):
    raise UserError(f'{path} must be a finite number; got {shown(value)}.')
  wrong = limits.why_not(value) if limits else ''
  if wrong:
    raise UserError(f'{path} must be {wrong}; got {shown(value)}.')


def _check_text(value: Any, path: str, longest: int = LONGEST) -> None:
  _must(isinstance(value, str), path, _WORDS[str], value)
  if len(value) > longest:
    raise UserError(
        f'{path} must have {longest} characters or fewer; got {len(value)}.'
    )
  # Control characters, and halves of a character, which no file takes. A tab
  # separates columns in files: data.options="sep='\t'".
  if any(unicodedata.category(c) in ('Cc', 'Cs') for c in set(value) - {'\t'}):
    raise UserError(
        f'{path} must be one line of printable text; got {shown(value)}.'
    )


def _check_plain(value: Any, path: str, depth: int = 0) -> None:
  """Refuses options that config.json cannot hold, and NaN or infinity."""
  if depth > DEEPEST:
    raise UserError(f'{path} has more than {DEEPEST} groups within groups.')
  if value is None or isinstance(value, bool):
    return
  if isinstance(value, (int, float)):
    if _endless(value):
      raise UserError(f'{path} must be a finite number; got {shown(value)}.')
    if abs(value) > max(LARGE, WHOLE):
      raise UserError(
          f'{path} must be between -{WHOLE} and {WHOLE}; got {shown(value)}.'
      )
  elif isinstance(value, str):
    _check_text(value, path)
  elif isinstance(value, (tuple, list)):
    _must(len(value) <= LONGEST, path, f'{LONGEST} entries or fewer', value)
    for i, entry in enumerate(value):
      _check_plain(entry, f'{path}[{i}]', depth + 1)
  elif isinstance(value, dict):
    for key, entry in _entries(value, path):
      _check_plain(entry, f'{path}.{key}', depth + 1)
  else:
    raise UserError(
        f'{path} must be a number, a text, True, False, None, or a tuple or '
        f'dict of them; got {shown(value)}.'
    )


def _entries(value: Any, path: str) -> Iterator[tuple[str, Any]]:
  """The entries of `value`, which must be a dict with texts as keys."""
  _must(isinstance(value, dict), path, 'a dict', value)
  for key, entry in value.items():
    _check_text(key, f'a name in {path}')
    yield key, entry


def _must(right: bool, path: str, what: str, value: Any) -> None:
  if not right:
    raise UserError(f'{path} must be {what}; got {shown(value)}.')


def _endless(value: float) -> bool:
  """Whether a number is NaN, infinite, or an integer beyond all floats."""
  return not abs(value) <= sys.float_info.max or math.isnan(value)


def _digits(x: float) -> str:
  """A bound as it is typed: no exponent below a million."""
  return f'{int(x)}' if x == int(x) and abs(x) <= WHOLE else f'{x:g}'
