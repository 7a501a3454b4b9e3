"""Options of one data set, network or attack: parsed, and type-checked."""
import ast
from collections.abc import Mapping
import difflib
import types
import typing
from typing import Any

from vfljax.converting import Rule, as_kind
from vfljax.runner.config.ranges import LARGE, WHOLE, shown
from vfljax.runner.errors import UserError

_RULE = Rule(WHOLE, LARGE, {
    int: f'a whole number of at most {WHOLE}', bool: 'True or False',
    float: f'a finite number of at most {LARGE:g}', str: 'a word',
}, shown)


def parse(
    text: str, field: str, example: str,
    own: Mapping[str, str] = types.MappingProxyType({}),
) -> dict[str, Any]:
  """'samples=500;signal=(1, 0.5)' as keyword arguments.

  Args:
    text: Names and Python literals; a word needs no quotes.
    field: The config's field, for the message.
    example: A text of the right form, for the message.
    own: {name: flag} of options that have a flag of their own and are refused.

  Raises:
    UserError: if it is not of that form.
  """
  found = {}
  for part in filter(None, (part.strip() for part in text.split(';'))):
    name, equals, value = (word.strip() for word in part.partition('='))
    if name in own:
      raise UserError(
          f'{field} does not take {name}, which has a flag: {own[name]}'
      )
    if not equals or not name.isidentifier():
      raise UserError(
          f'{field} must look like {example!r}; got {shown(part)}.'
      )
    if name in found:
      raise UserError(f'{field} has {name} twice.')
    found[name] = value_of(value)
  return found


def as_defaults(
    given: dict[str, Any], defaults: dict[str, Any], field: str
) -> None:
  """Refuses options whose type is not that of their defaults.

  Args:
    given: The result of `parse`. Options without a default here, or with the
      default `None`, pass; the function that gets them may refuse them.
    defaults: By name.
    field: The config's field, for the message.

  Raises:
    UserError: for the first such option, and for numbers that are too large.
  """
  for name, value in given.items():
    default, where = defaults.get(name), f'{field}: {name}'
    several = isinstance(value, (tuple, list))
    if several != isinstance(default, tuple) and default is not None:
      raise _unlike(where, default, value)
    like = default if several else (default,)
    kinds = set(map(type, like or ()))
    for entry in value if several else (value,):
      number = isinstance(entry, (int, float)) and not isinstance(entry, bool)
      if number and not abs(entry) <= WHOLE:
        raise UserError(
            f'{where} must be a number of at most {WHOLE}; got {shown(value)}.'
        )
      # Of () nobody knows what it has.
      right = not kinds or type(entry) in kinds or number and float in kinds
      # A text may look like a number, and a default of None allows anything.
      if not right and default is not None and kinds <= {bool, int, float}:
        raise _unlike(where, default, value)


def _unlike(where: str, default: Any, value: Any) -> UserError:
  return UserError(
      f'{where} must be like its default, {shown(default)}; got the '
      f'{type(value).__name__} {shown(value)}.'
  )


def value_of(text: str) -> Any:
  """The value of a Python literal; any other text is a word."""
  try:
    return ast.literal_eval(text)
  except (
      ValueError, SyntaxError, TypeError, MemoryError, RecursionError
  ):  # A list as a key is a TypeError.
    return text


def typed(kind: Any, given: dict[str, Any], where: str) -> Any:
  """A NamedTuple of options, each of its declared type.

  Args:
    kind: The NamedTuple's class, with a default for every field.
    given: The options that are not at their defaults.
    where: The name under which they are set, for the message.

  Raises:
    UserError: for an unknown option, or a value of another type.
  """
  types = typing.get_type_hints(kind)
  for name in given:
    if name not in types:
      close = difflib.get_close_matches(name, types, n=1, cutoff=0.5)
      hint = f' Did you mean {close[0]}?' if close else ''
      raise UserError(
          f'{where} has no option {name!r}; it has '
          f'{", ".join(types) or "none"}.{hint}'
      )
  try:
    return kind(**{
        name: as_kind(value, types[name], f'{where}.{name}', _RULE)
        for name, value in given.items()
    })
  except ValueError as error:
    raise UserError(str(error)) from None
