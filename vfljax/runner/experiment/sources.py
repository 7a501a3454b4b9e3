"""Digests of the code outside vfljax that a work directory's numbers come from.

If a user edits a method of their own and repeats the command, the numbers in a
finished directory are out of date. So config.json keeps a digest of each file
that defines such a method of the run, and of the files it imports, except those
of vfljax and of installed packages. A config file's `get_config` is left out:
what it returns is compared anyway, and it may ask for more seeds. Modules that
are imported by a computed name are not found. Code that is in no file, as in a
notebook, has a digest of its own (`typed`), and so have the arguments of a
partial and what a closure captured, which a program may have computed. What a
file's function reads of a module's variables does not count: an environment
variable read there, say, may change unnoticed.
"""
import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
import functools
import hashlib
import importlib.util
import inspect
from pathlib import Path
import sys
from typing import Any

from vfljax import algorithms, defenses, nets
from vfljax.nets import base
from vfljax.runner.config import Entry, blaming, outside
from vfljax.runner.experiment import attackers, choosing, typed
from vfljax.runner.experiment.setting import Setting

FIELD = 'sources'  # Of config.json: {a file's name, or a function's: digest}.


def of(setting: Setting) -> dict[str, str]:
  """Where code is -> digest; {} if the run uses only vfljax's own methods."""
  files: set[Path] = set()
  found: dict[str, str] = {}
  for method in _used(setting):
    if outside.is_ours(method):
      continue
    factory = outside.factory(method)
    name = typed.name(factory)
    if file := _file(factory):
      _collect(file, files)
      name = typed.holding(factory)
    if not name:
      continue
    digest, used = typed.read(factory)
    found[name] = found.get(name, '') + digest
    for file in used:
      _collect(file, files)
  for name, own in _activations(setting):
    found[f'activation {name}'] = typed.identity(own)
    if (file := _file(own)) and blaming.is_own(str(file)):
      _collect(file, files)
  for file in sorted(files):
    found[file.name] = _digest(found.get(file.name, ''), file)
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


def _file(factory: Callable[..., Any]) -> Path | None:
  """The file that defines a function; `None` if there is no such file."""
  while isinstance(factory, functools.partial):
    factory = factory.func
  try:
    file = Path(inspect.getfile(inspect.unwrap(factory)))
  except (TypeError, ValueError):
    return None
  return file if file.is_file() else None


def _collect(file: Path, found: set[Path]) -> None:
  """Adds a file, and the user's own files that it imports."""
  if file in found:
    return
  found.add(file)
  for name in _imported(file):
    parts = name.split('.')
    for i in range(len(parts)):  # Importing a module also runs its packages.
      module = sys.modules.get('.'.join(parts[: i + 1]))
      there = getattr(module, '__file__', None) or ''
      if there.endswith('.py') and blaming.is_own(there):
        _collect(Path(there), found)


def _imported(file: Path) -> Iterator[str]:
  """The modules that a file's import statements may mean."""
  package = next((
      m.__package__ for m in [*sys.modules.values()]
      if getattr(m, '__file__', None) == str(file)
  ), None)
  for part in ast.walk(ast.parse(file.read_text('utf-8', errors='replace'))):
    if isinstance(part, ast.Import):
      yield from (alias.name for alias in part.names)
    elif isinstance(part, ast.ImportFrom):
      base = part.module or ''
      if part.level:
        if not package:
          continue
        name = '.' * part.level + base
        base = importlib.util.resolve_name(name, package)
      yield base
      yield from (f'{base}.{alias.name}' for alias in part.names)


def _digest(before: str, file: Path) -> str:
  """A digest of a file's text without `get_config`, after an earlier digest.

  Args:
    before: The digest of another file of the same name, or ''.
    file: The file.
  """
  text = file.read_text('utf-8', errors='replace')
  lines = text.splitlines()
  for part in ast.parse(text).body:
    if isinstance(part, ast.FunctionDef) and part.name == 'get_config':
      lines[part.lineno - 1 : part.end_lineno] = [''] * (
          (part.end_lineno or part.lineno) - part.lineno + 1
      )
  code = '\n'.join(filter(None, map(str.rstrip, lines)))
  return hashlib.sha256((before + code).encode()).hexdigest()[:16]
