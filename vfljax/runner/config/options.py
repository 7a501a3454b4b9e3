"""Options that are somebody's own: as text, and as what they are declared."""
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
    field: Of the config, for the message.
    example: A text of the form, for the message.
    own: Flags by the names that have one of their own.

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
  """Refuses options of another type than their defaults have.

  Args:
    given: What `parse` found. Options without a default here are let pass, for
      whoever takes them to refuse, and so are those of which it is `None`.
    defaults: By name.
    field: Of the config, for the message.

  Raises:
    UserError: for the first such option, and for numbers beyond all sense.
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
      right = type(entry) in kinds or number and float in kinds
      # A text may look like a number, and what is None by default be anything.
      if not right and default is not None and kinds <= {bool, int, float}:
        raise _unlike(where, default, value)


def _unlike(where: str, default: Any, value: Any) -> UserError:
  return UserError(
      f'{where} must be like its default, {shown(default)}; got the '
      f'{type(value).__name__} {shown(value)}.'
  )


def value_of(text: str) -> Any:
  """A Python literal; all else is a word."""
  try:
    return ast.literal_eval(text)
  except (ValueError, SyntaxError, MemoryError, RecursionError):
    return text


def typed(kind: Any, given: dict[str, Any], where: str) -> Any:
  """A NamedTuple of options, each of its declared type.

  Args:
    kind: The NamedTuple's class, with a default for every field.
    given: The options that are not at their defaults.
    where: Under which name they are set, for the message.

  Raises:
    UserError: for an option that there is not, or a value of another type.
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
