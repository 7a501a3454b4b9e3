"""Digests of code that was typed into a notebook's cell, or a shell.

No file has it. So a digest is made of a function's text, or of its bytecode if
its text is lost, and of all that it uses by name: other functions and classes,
numbers, text, arrays, and what is made of these. Of other objects, as of those
of an installed package, only the kind counts. Whether such a value is ever read
is not asked.
"""
import argparse
import array
import collections
from collections.abc import Callable, Iterable, Iterator
import contextlib
import dataclasses
import datetime
import dis
import functools
import hashlib
import inspect
import itertools
import json
import numbers
import operator
from pathlib import Path, PurePath
import re
import sys
import textwrap
import types
from typing import Any, NamedTuple

import jax
import numpy as np

from vfljax import importing
from vfljax.runner.experiment import kinds

# Written with all that they are, whichever process writes them.
_PRINTED = (
    numbers.Number, bytes, bytearray, array.array, range, np.dtype, re.Pattern,
    PurePath, datetime.date, datetime.time, datetime.timedelta,
)
_PICKS = operator.itemgetter, operator.attrgetter, operator.methodcaller
_MAPPINGS = (
    dict, types.MappingProxyType, collections.ChainMap, collections.UserDict
)
# Where objects that are not the user's have a cell's code or values.
_INSIDE = {
    functools.singledispatchmethod: ('dispatcher',),
    np.vectorize: ('pyfunc', 'signature', 'excluded', 'otypes'),
    jax.custom_batching.custom_vmap: ('fun', 'vmap_rule'),
    collections.UserList: ('data',), collections.UserString: ('data',),
}


def name(factory: Callable[..., Any]) -> str:
  """What config.json and messages call such code."""
  return f'{importing.called(factory)} in a cell'


def holding(factory: Callable[..., Any]) -> str:
  """What they call the values that a function in a file was made with.

  '' if it has none that its file does not say: it is neither a partial, a
  closure nor a method of an object, and binds nothing by a default. A program
  may make each of them anew with another value.
  """
  under = inspect.unwrap(factory)  # As of `jit`, which has no closure.
  made = isinstance(factory, (functools.partial, types.MethodType)) or any(
      getattr(each, '__closure__', None) or kinds.binds(each)
      for each in (factory, under)
  )
  return f'what {importing.called(factory)} holds' if made else ''


def read(factory: Callable[..., Any]) -> tuple[str, set[Path]]:
  """(a digest of the code, the user's own files that it uses)."""
  seen = _Seen({}, [], set())
  return _hashed([_said(factory, seen)]), seen.files


def identity(function: Callable[..., Any]) -> str:
  """A digest that also tells the functions of one file apart."""
  digest, _ = read(function)
  text = ''
  if (file := kinds.file_of(function)) and importing.is_own(str(file)):
    with contextlib.suppress(OSError, TypeError):
      text = inspect.getsource(function)
  return _hashed([digest, text])


class _Seen(NamedTuple):
  """What was read before.

  Attributes:
    digests: By identity.
    kept: The same values, so that no other gets the identity of one of them.
    files: The user's own.
  """

  digests: dict[int, str]
  kept: list[Any]
  files: set[Path]


def _said(value: Any, seen: _Seen) -> str:
  """All that a value says: itself if it is plain, else a digest.

  It has no identities or addresses, which another process would not repeat.
  """
  if plain := _plain(value):
    return plain
  if id(value) not in seen.digests:
    seen.kept.append(value)
    seen.digests[id(value)] = 'again'  # In itself, as functions in a circle.
    if (file := kinds.file_of(value)) and importing.is_own(str(file)):
      seen.files.add(file)
    try:
      parts = [_said(part, seen) for part in _parts(value)]
    except RecursionError:  # It is too deep: a list of links, as it may be.
      parts = []
    if isinstance(value, (set, frozenset)):
      parts.sort()
    seen.digests[id(value)] = _hashed([_text(value), *parts])
  return seen.digests[id(value)]


def _hashed(texts: Iterable[str]) -> str:
  return hashlib.sha256('\0'.join(texts).encode()).hexdigest()[:16]


def _text(value: Any) -> str:
  """The text of a function that is in no file, and the name of all else."""
  if isinstance(value, types.FunctionType) and not kinds.file_of(value):
    return _source(value) or ' '.join(
        word for code in _codes(value.__code__)
        for word in (code.co_code.hex(), *code.co_names)
    )
  if (found := kinds.array_of(value)) is not None:
    data = b'' if found.dtype.hasobject else found.tobytes()
    return f'{found.dtype} {found.shape} {hashlib.sha256(data).hexdigest()}'
  if isinstance(value, _PRINTED):
    return repr(value)
  named = value if hasattr(value, '__name__') else type(value)
  return ' '.join(
      str(getattr(named, part, ''))
      for part in ('__module__', '__qualname__', '__name__')
  )


def _source(function: types.FunctionType) -> str:
  """A function's lines; '' if Python has not kept them.

  Without that check `inspect` may take them from the program's own file.
  """
  if not importing.is_typed(function.__code__.co_filename):
    return ''
  try:
    text = textwrap.dedent(inspect.getsource(function.__code__))
  except (OSError, TypeError, SyntaxError):
    return ''
  return '\n'.join(filter(None, map(str.rstrip, text.splitlines())))


def _plain(value: Any) -> str:
  """A number, text, or a group of them; '' for what is none."""
  try:
    return json.dumps(value) if kinds.is_plain(value) else ''
  except (TypeError, ValueError, RecursionError):
    return ''


def _parts(value: Any) -> Iterator[Any]:
  """What a value is made of, and what a function uses by name."""
  own = _is_own(type(value))
  if own and not isinstance(value, type):
    yield from (type(value), _held(value))
  if isinstance(value, (functools.partial, functools.partialmethod)):
    yield from (value.func, value.args, value.keywords)
  elif isinstance(value, types.FunctionType):
    yield from _parts_of_function(value)
  elif isinstance(value, types.MethodType):
    yield from (value.__self__, value.__func__)
  elif isinstance(value, types.BuiltinMethodType):
    if not isinstance(value.__self__, types.ModuleType):
      yield value.__self__  # As of `TABLE.get`.
  elif isinstance(value, _PICKS):
    yield value.__reduce__()
  elif isinstance(value, type):
    if _is_typed(value):
      yield from _parts_of_class(value)
  elif isinstance(value, (tuple, list, set, frozenset, collections.deque)):
    yield from value
  elif isinstance(value, _MAPPINGS):
    yield from itertools.chain.from_iterable(value.items())
    yield getattr(value, 'default_factory', None)
  elif type(value) in _INSIDE:
    yield from (getattr(value, part) for part in _INSIDE[type(value)])
  elif not own and hasattr(type(value), 'unfreeze'):
    yield value.unfreeze()  # Flax's FrozenDict.
  elif isinstance(value, (types.SimpleNamespace, argparse.Namespace)):
    yield vars(value)
  elif isinstance(value, slice):
    yield from (value.start, value.stop, value.step)
  elif (found := kinds.array_of(value)) is not None:
    if found.dtype.hasobject:
      yield from found.flat
    # Names of a data frame's columns and rows.
    yield from (getattr(value, name, None) for name in ('columns', 'index'))
  elif callable(value) and hasattr(value, '__wrapped__'):
    yield value.__wrapped__  # As of `jit`; of `custom_vjp` these, too:
    yield from (getattr(value, name, None) for name in ('fwd', 'bwd', 'jvp'))
  elif not own and dataclasses.is_dataclass(value):  # As Flax's modules.
    yield from (getattr(value, f.name, None) for f in dataclasses.fields(value))


def _held(value: Any) -> dict[str, Any]:
  """An object's values, but for those that it keeps once they are asked for."""
  kind = type(value)
  slots = (vars(each).get('__slots__', ()) for each in kind.__mro__)
  names = itertools.chain.from_iterable(
      (own,) if isinstance(own, str) else own for own in slots
  )
  found = {name: getattr(value, name, None) for name in names}
  kept = functools.cached_property
  return found | {
      name: part for name, part in getattr(value, '__dict__', {}).items()
      if not isinstance(getattr(kind, name, None), kept)
  }


def _parts_of_function(function: types.FunctionType) -> Iterator[Any]:
  held = []
  for cell in function.__closure__ or ():
    with contextlib.suppress(ValueError):  # It is empty.
      held.append(cell.cell_contents)
  if file := kinds.file_of(function):
    # What it was made with. A library may write into the rest of its own.
    rest = () if importing.is_own(str(file)) else (dict, list, set)
    yield from (x for x in held if not isinstance(x, rest))
    if not rest and kinds.binds(function):
      yield from filter(None, (function.__defaults__, function.__kwdefaults__))
    table = getattr(function, 'registry', None)
    if isinstance(table, types.MappingProxyType):
      yield table  # Of `singledispatch`: a function for each type.
    return
  yield from held
  yield from (function.__defaults__, function.__kwdefaults__, vars(function))
  for used in _globals(function.__code__):
    if used in function.__globals__:
      yield function.__globals__[used]
  for code in _codes(function.__code__):
    if not _source(function):
      yield from (x for x in code.co_consts if not inspect.iscode(x))
    for step in dis.get_instructions(code):
      if step.opname == 'IMPORT_NAME' and step.argval in sys.modules:
        yield sys.modules[step.argval]


def _parts_of_class(kind: type) -> Iterator[Any]:
  yield from kind.__bases__
  yield from filter(_is_own, [type(kind)])  # A metaclass.
  for known, part in vars(kind).items():
    part = getattr(part, '__func__', part)
    if isinstance(part, property):
      yield from (part.fget, part.fset)
    elif isinstance(part, functools.cached_property):
      yield part.func
    elif (inspect.isfunction(part) or not known.startswith('__')
          or hasattr(part, '__wrapped__')):  # As a `__call__` under `jit`.
      yield from (known, part)


@functools.cache
def _is_own(kind: type) -> bool:
  """Whether a class is the user's."""
  return _is_typed(kind) or importing.is_own(str(kinds.file_of(kind)))


def _is_typed(kind: type) -> bool:
  """Whether a class is in no file."""
  return kind.__module__ == '__main__' and not kinds.file_of(kind)


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
