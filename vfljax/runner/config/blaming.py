"""Explains errors in a user's config file, with the file's line."""
import difflib
import inspect
import re
import traceback

from absl import flags

from vfljax.importing import is_own, is_typed
from vfljax.runner import config
from vfljax.runner.errors import UserError, brief

_LINE = re.compile(r'File "([^"]+)", line (\d+)')
_TRACEBACK = 'Traceback (most recent call last)'
# Messages of absl and ml_collections, and our words for them.
_MEANING = (
    (r'^flag (--[\w.]+)=(.*): invalid literal for int\(\) ',
     r"\1 takes a whole number; got '\2'."),
    (r'^flag (--[\w.]+)=(.*): could not convert string to float: ',
     r"\1 takes a number; got '\2'."),
    (r"^flag (--[\w.]+)=(.*): \('Non-boolean argument ",
     r"\1 takes true or false; got '\2'."),
    (r'get_config\(\) takes 0 positional arguments',
     'This config has no variants: leave out the colon and what follows.'),
    (r"has no attribute 'get_config'",
     'The config file has no function get_config().'),
    (r"Attribute <class '([\w.]+)'>",
     r'get_config() must return an vfljax.runner.config.Config, not \1.'),
)
_UNKNOWN = re.compile(r"(\w+)\.__init__\(\) .* unexpected keyword.* '(\w+)'")


def said(error: BaseException) -> str:
  """One or two lines: what is wrong, and where in the user's file.

  Args:
    error: The error that reading a command line with a config file raised.
  """
  text = str(error)
  for pattern, meaning in _MEANING:
    if found := re.search(pattern, text):
      return brief(found.expand(meaning))
  if isinstance(error, SyntaxError):
    return f'{error.filename}, line {error.lineno}: {error.msg}.'
  lines = [line for line in text.strip().splitlines() if line.strip(' \t^~')]
  if _TRACEBACK in text:  # Its end has the type.
    places, words = _LINE.findall(text), lines[-1:]
  elif isinstance(error, (UserError, flags.Error)):
    return brief('\n'.join(lines[-2:]))
  else:
    frames = traceback.extract_tb(error.__traceback__)
    places = [(frame.filename, frame.lineno) for frame in frames]
    words = [f'{type(error).__name__}: {" ".join(lines[-2:])}'.strip(': ')]
  own = [place(file, line) for file, line in places if is_own(file)]
  return brief(''.join([*own[-1:], *words, _hint(text)]))


def place(file: str, line: int | None) -> str:
  """'/a/my.py, line 12: ' for a message; a notebook names no files."""
  return f'{"a cell" if is_typed(file) else file}, line {line}: '


def _hint(text: str) -> str:
  """A suggestion for an unknown field of a config, or the fields it has."""
  found = _UNKNOWN.search(text)
  made = getattr(config, found[1], None) if found else None
  if not (found and inspect.isclass(made)):
    return ''
  known = list(inspect.signature(made).parameters)
  close = difflib.get_close_matches(found[2], known, n=1)
  return f'. Did you mean {close[0]}?' if close else f'; it has {known}'
