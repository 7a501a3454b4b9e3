"""A factory's own arguments, as one line of text."""
import ast
from typing import Any

from vfljax.runner.errors import UserError


def parse(
    text: str, field: str, example: str, own: tuple[str, ...] = ()
) -> dict[str, Any]:
  """'samples=500;signal=(1, 0.5)' as keyword arguments.

  Args:
    text: Names and Python literals; a word needs no quotes.
    field: Of the config, for the message.
    example: A text of the form, for the message.
    own: Names that have config fields of their own.

  Raises:
    UserError: if it is not of that form.
  """
  found = {}
  for part in filter(None, (part.strip() for part in text.split(';'))):
    name, equals, value = (word.strip() for word in part.partition('='))
    if not equals or not name.isidentifier() or name in own:
      raise UserError(f'{field} must look like {example!r}; got {part!r}.')
    try:
      found[name] = ast.literal_eval(value)
    except (ValueError, SyntaxError):
      found[name] = value
  return found
