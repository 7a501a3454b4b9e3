"""Errors that the user at the command line can mend."""
import argparse
from collections.abc import Iterator
import contextlib
import pathlib
import sys
from typing import Any


_WIDE = 500  # Characters of a line; longer ones are shortened in the middle.


class UserError(Exception):
  """A message for the user: what is wrong, and what would be right.

  One or two lines, no traceback: `launch.py` prints it on stderr and exits
  with code 2, and so does whatever runs inside `explained`. A notebook shows it
  without a traceback, too.
  """

  def _render_traceback_(self) -> list[str]:
    return [f'error: {self}']  # IPython asks for it.


class Refused(UserError, ValueError):
  """A `UserError` for who calls vfljax from Python, as other ValueErrors."""


def denied(error: PermissionError) -> UserError:
  """The error for a place of another user, which we may not read or write."""
  return UserError(
      f'Permission denied: {error.filename}.\nAsk its owner for it, '
      'or name another place.'
  )


@contextlib.contextmanager
def explained() -> Iterator[None]:
  """A context, or decorator, where a `UserError` ends the program with code 2.
  """
  try:
    yield
  except UserError as error:
    print(f'error: {error}', file=sys.stderr)
    raise SystemExit(2) from None


def new_file(text: str) -> str:
  """An argparse type: a file to write, checked before hours of work.

  Raises:
    argparse.ArgumentTypeError: if its folder does not exist.
  """
  folder = pathlib.Path(text).absolute().parent
  if text and not folder.is_dir():
    raise argparse.ArgumentTypeError(f'there is no folder {folder}.')
  return text


def one_or_more(text: str) -> int:
  """An argparse type: a number of seeds, epochs, ...

  Raises:
    argparse.ArgumentTypeError: for less than 1, or no whole number.
  """
  if not text.strip().isdecimal() or int(text) < 1:
    raise argparse.ArgumentTypeError(f'{text!r} is no whole number from 1.')
  return int(text)


def brief(text: str) -> str:
  """The first two lines of an error's text, long ones cut in the middle."""
  lines = [line.strip() for line in text.splitlines() if line.strip()]
  half = _WIDE // 2
  return '\n'.join(
      x if len(x) <= _WIDE else f'{x[:half]} ... {x[-half:]}'
      for x in lines[:2]
  )


def choices(group: Any, **allowed: tuple[str, ...]) -> None:
  """Refuses a text field whose value is not among its choices.

  Raises:
    UserError: naming the field and the choices.
  """
  for name, values in allowed.items():
    value = getattr(group, name)
    if value not in values:
      raise UserError(
          f'{name} must be one of {", ".join(values)}; got {value!r}.'
      )
