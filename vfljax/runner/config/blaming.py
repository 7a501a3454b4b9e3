"""Explains errors in a user's config file, with the file's line."""
import difflib
import inspect
import linecache
from pathlib import Path
import re
import sysconfig
import traceback

from absl import flags

import vfljax
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


def is_own(file: str) -> bool:
  """Whether a file is the user's: not installed, nor of vfljax or Python.

  A notebook's cell is, too (`is_typed`). Compiled modules name source files
  that are nowhere (numpy/random/x.pyx).
  """
  place = Path(file).absolute()
  folders = [Path(vfljax.__file__).parent] + [
      Path(sysconfig.get_paths()[kind])
      for kind in ('stdlib', 'purelib', 'platlib')
  ]
  there = place.is_file() or is_typed(file)
  return there and not set(folders) & set(place.parents)


def is_typed(file: str) -> bool:
  """Whether it is the name of code that was typed, as in a notebook's cell.

  Python's cache of lines has such code, and no time of a file for it.
  """
  known = linecache.cache.get(file, ())
  return known[1:2] == (None,) and not file.startswith('<frozen ')


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
