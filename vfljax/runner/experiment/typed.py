"""Digests of code that was typed into a notebook's cell, or a shell.

No file has it. So a digest is made of a function's text, or of its bytecode if
its text is lost, and of all that it uses by name: other functions, numbers,
text and arrays. Whether such a value is ever read is not asked.
"""
from collections.abc import Callable, Iterator
import contextlib
import dis
import functools
import hashlib
import inspect
import json
from pathlib import Path
import textwrap
import types
from typing import Any

import jax
import numpy as np

from vfljax.runner.config import blaming


def name(factory: Callable[..., Any]) -> str:
  """What config.json and messages call such code."""
  while isinstance(factory, functools.partial):
    factory = factory.func
  return f'{getattr(factory, "__name__", type(factory).__name__)} in a cell'


def read(factory: Callable[..., Any]) -> tuple[str, set[Path]]:
  """(a digest of the code, the user's own files that it uses)."""
  texts: list[str] = []
  files: set[Path] = set()
  _collect(factory, texts, files, [])
  said = hashlib.sha256('\0'.join(texts).encode()).hexdigest()[:16]
  return said, files


def _collect(
    value: Any, texts: list[str], files: set[Path], seen: list[Any]
) -> None:
  """Adds what a value says, and the files of the code that it names.

  Args:
    seen: What was collected before; it also keeps identities from being reused.
  """
  if any(value is one for one in seen):
    return
  seen.append(value)
  if callable(value) and not isinstance(value, functools.partial):
    value = inspect.unwrap(value)
  if file := _file(value):
    if blaming.is_own(str(file)):
      files.add(file)
    return
  text = _text(value)
  texts.append(text)
  if not text or isinstance(value, types.FunctionType):
    for part in _parts(value):
      _collect(part, texts, files, seen)


def _file(value: Any) -> Path | None:
  """The file that a module, function or class is in."""
  if isinstance(value, type) and value.__module__ == '__main__':
    own = (f for f in vars(value).values() if inspect.isfunction(f))
    return next(filter(None, map(_file, own)), None)
  if not isinstance(value, (types.ModuleType, types.FunctionType, type)):
    return None
  try:
    file = Path(inspect.getfile(value))
  except (TypeError, ValueError, OSError):
    return None
  return file if file.is_file() else None


def _text(value: Any) -> str:
  """The text of a function, or a plain value; '' for everything else."""
  if isinstance(value, types.FunctionType):
    return _source(value) or '\n'.join(
        ' '.join([
            code.co_code.hex(), *code.co_names, *map(_plain, code.co_consts)
        ]) for code in _codes(value.__code__)
    )
  if isinstance(value, (np.ndarray, jax.Array)):
    with contextlib.suppress(TypeError):  # Typed keys have no bytes.
      found = np.ascontiguousarray(value)
      digest = hashlib.sha256(found.tobytes()).hexdigest()
      return f'{found.dtype} {found.shape} {digest}'
  return _plain(value)


def _source(function: types.FunctionType) -> str:
  """A function's lines; '' if Python has not kept them.

  Without that check `inspect` may take them from the program's own file.
  """
  if not blaming.is_typed(function.__code__.co_filename):
    return ''
  try:
    text = textwrap.dedent(inspect.getsource(function))
  except (OSError, TypeError, SyntaxError):
    return ''
  return '\n'.join(filter(None, map(str.rstrip, text.splitlines())))


def _plain(value: Any) -> str:
  """A number, text, or a group of them; '' for what is none."""
  try:
    return json.dumps(value)
  except (TypeError, ValueError, RecursionError):
    return ''


def _parts(value: Any) -> Iterator[Any]:
  """What a value is made of, and what a function uses by name."""
  if isinstance(value, functools.partial):
    yield from (value.func, *value.args, *value.keywords.values())
  elif isinstance(value, types.FunctionType):
    yield from value.__defaults__ or ()
    yield from (value.__kwdefaults__ or {}).values()
    for cell in value.__closure__ or ():
      with contextlib.suppress(ValueError):  # It is empty.
        yield cell.cell_contents
    for used in _globals(value.__code__):
      if used in value.__globals__:
        yield value.__globals__[used]
  elif isinstance(value, type):
    for part in (*value.__bases__, *vars(value).values()):
      part = getattr(part, '__func__', getattr(part, 'fget', part))
      if isinstance(part, (types.FunctionType, type)):
        yield part
  elif isinstance(value, (tuple, list)):
    yield from value
  elif isinstance(value, dict):
    yield from value.values()


def _globals(code: types.CodeType) -> list[str]:
  """The names of a function's global variables, and of functions in it."""
  return sorted({
      step.argval for each in _codes(code)
      for step in dis.get_instructions(each)
      if step.opname in ('LOAD_GLOBAL', 'LOAD_NAME')
  })


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
  yield code
  for constant in code.co_consts:
    if isinstance(constant, types.CodeType):
      yield from _codes(constant)
