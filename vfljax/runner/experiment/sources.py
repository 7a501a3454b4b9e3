"""Digests of the code outside vfljax that a work directory's numbers come from.

If a user edits a method of their own and repeats the command, the numbers in a
finished directory are out of date. So config.json keeps a digest of each file
that defines such a method of the run or wraps it, and of the files it imports,
except those of vfljax and of installed packages. A config file's `get_config`
is left out: what it returns is compared anyway, and it may ask for more seeds.
Modules that are imported by a computed name are not found. Code that is in no
file, as in a notebook, has a digest of its own (`typed`), and so have the
arguments of a partial, what a closure captured and what a lambda or an inner
function was given by a default, which a program may have computed. A module
stays as it was imported, whatever its file says by now: it is the text of that
time that counts (`imported`). What a file's function reads of a module's
variables does not count: an environment variable read there, say, may change
unnoticed.
"""
import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
import contextlib
import functools
import hashlib
import inspect
from pathlib import Path
import types
from typing import Any

from vfljax import algorithms, defenses, importing, nets
from vfljax.nets import base
from vfljax.runner.config import Entry, outside
from vfljax.runner.experiment import attackers, choosing, imported, typed
from vfljax.runner.experiment.setting import Setting

FIELD = 'sources'  # Of config.json: {a file's name, or a function's: digest}.


def of(setting: Setting) -> dict[str, str]:
  """Where code is -> digest; {} if the run uses only vfljax's own methods."""
  files: set[Path] = set()
  found: dict[str, str] = {}
  every = tuple(f for m in _used(setting) for f in outside.functions(m))
  for factory in every:
    if outside.is_here(factory):
      continue
    there, whole = _files(factory)
    for file in there:
      importing.collect(file, files)
    name = typed.name(factory)
    if whole:
      name = typed.holding(factory)
    if not name:
      continue
    digest, used = typed.read(factory)
    found[name] = found.get(name, '') + digest
    for file in used:
      importing.collect(file, files)
  for name, own in _activations(setting):
    found[f'activation {name}'] = typed.identity(own)
    for file in _files(own)[0]:
      if importing.is_own(str(file)):
        importing.collect(file, files)
  for file in sorted(files):
    text = imported.text(file, [x for f in every for x in _chain(f)], _code)
    found[file.name] = _digest(found.get(file.name, ''), text)
  return found


def completed(saved: dict, now: Mapping[str, Any]) -> dict:
  """A saved configuration, with digests that it lacks taken from `now`.

  Older versions saved no digests, or none of imported files. Their directories
  can be continued.
  """
  if FIELD not in now:
    return saved
  return saved | {FIELD: now[FIELD] | saved.get(FIELD, {})}


def _used(setting: Setting) -> list[Any]:
  """The registered methods that a run uses, except data loaders.

  config.json has a digest of the samples themselves.
  """
  config = setting.config
  attacks = [
      *setting.in_training, *setting.replayed, *setting.after_training,
      *filter(None, [setting.backdoor]),
  ]
  return [
      *_defenses(choosing.entries(config, setting.classes)),
      *map(attackers.recipe, attacks),
      *filter(None, [
          nets.REGISTRY.get(config.model.name),
          algorithms.AGGREGATIONS.get(config.model.aggregation),
      ]),
  ]


def _activations(setting: Setting) -> Iterator[tuple[str, Any]]:
  """(name, function) of those that are not vfljax's, most of which are JAX's.

  Another one of JAX's would be in the same file.
  """
  model = setting.config.model
  for name in dict.fromkeys((model.activation, model.bottom_final)):
    found = nets.ACTIVATIONS.get(name)
    if found is not base.OUR_ACTIVATIONS.get(name):
      yield name, found


def _defenses(entries: Iterable[Entry]) -> Iterable[Any]:
  for entry in entries:
    yield defenses.REGISTRY[entry.defense]
    yield from _defenses(entry.after)


def _files(function: Callable[..., Any]) -> tuple[list[Path], bool]:
  """(files of a function and of all that it wraps, whether they have it all).

  The user's own ones. If there are none, that of the innermost function.
  """
  chain = [*_chain(function)]
  found = [*map(_file, chain)]
  own = [file for file in found if file and importing.is_own(str(file))]
  last = found[-1]
  if last is None or any(
      file is None and isinstance(each, types.FunctionType)
      for each, file in zip(chain, found)
  ):
    return own, False  # A cell has it, or another part.
  return own or [last], True


def _chain(function: Any) -> Iterator[Any]:
  """A function and those that it wraps, from the outermost on."""
  while function is not None:
    while isinstance(function, functools.partial):
      function = function.func
    yield function
    function = getattr(function, '__wrapped__', None)


def _file(function: Any) -> Path | None:
  """The file that has a function's text; `None` if there is no such file."""
  try:
    file = Path(inspect.getfile(function))
  except (TypeError, ValueError, OSError):
    return None
  return file if file.is_file() else None


def _code(text: str) -> str:
  """The lines of a file's text that are code, without `get_config`."""
  lines = text.splitlines()
  with contextlib.suppress(SyntaxError, ValueError):  # It need not be imported.
    for part in ast.parse(text).body:
      if isinstance(part, ast.FunctionDef) and part.name == 'get_config':
        lines[part.lineno - 1 : part.end_lineno] = [''] * (
            (part.end_lineno or part.lineno) - part.lineno + 1
        )
  return '\n'.join(filter(None, map(str.rstrip, lines)))


def _digest(before: str, code: str) -> str:
  """A digest of a file's code, after that of another file of the same name."""
  return hashlib.sha256((before + code).encode()).hexdigest()[:16]
