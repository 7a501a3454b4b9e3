"""Which code from outside of vfljax a work directory's numbers come from.

Whoever edits a method of his own and repeats the command asks for new numbers,
and a finished directory has the old ones. So config.json keeps a digest of the
files in which those methods stand that a run uses, and of what these import
that is neither vfljax's nor installed. Of a config file itself `get_config` is
left out: what it returns is compared anyway, and may ask for more seeds. What
is imported by a name put together while it runs is not found.
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
from vfljax.runner.config import Entry, blaming, outside
from vfljax.runner.experiment import attackers, choosing
from vfljax.runner.experiment.setting import Setting

FIELD = 'sources'  # Of config.json: {a file's name: its digest}.


def of(setting: Setting) -> dict[str, str]:
  """The digests by the files' names; {} where all is vfljax's own."""
  files: set[Path] = set()
  for method in _used(setting):
    if not outside.is_ours(method):
      if file := _file(outside.factory(method)):
        _collect(file, files)
  found: dict[str, str] = {}
  for file in sorted(files):
    found[file.name] = _digest(found.get(file.name, ''), file)
  return found


def completed(saved: dict, now: Mapping[str, Any]) -> dict:
  """A saved configuration; one of before there were digests goes on.

  As does one of before there were those of imported files.
  """
  if FIELD not in now:
    return saved
  return saved | {FIELD: now[FIELD] | saved.get(FIELD, {})}


def _used(setting: Setting) -> list[Any]:
  """The registries' entries that a run computes with; samples have a digest."""
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


def _defenses(entries: Iterable[Entry]) -> Iterable[Any]:
  for entry in entries:
    yield defenses.REGISTRY[entry.defense]
    yield from _defenses(entry.after)


def _file(factory: Callable[..., Any]) -> Path | None:
  """Where a function stands; `None` of one that was typed, or is no Python."""
  while isinstance(factory, functools.partial):
    factory = factory.func
  try:
    file = Path(inspect.getfile(inspect.unwrap(factory)))
  except (TypeError, ValueError):
    return None
  return file if file.is_file() else None


def _collect(file: Path, found: set[Path]) -> None:
  """Adds a file and those of a person's own that it imports."""
  if file in found:
    return
  found.add(file)
  for name in _imported(file):
    parts = name.split('.')
    for i in range(len(parts)):  # A package's own file runs, too.
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
  """Of a file's text without `get_config`, and of what came before it."""
  text = file.read_text('utf-8', errors='replace')
  lines = text.splitlines()
  for part in ast.parse(text).body:
    if isinstance(part, ast.FunctionDef) and part.name == 'get_config':
      lines[part.lineno - 1 : part.end_lineno] = [''] * (
          (part.end_lineno or part.lineno) - part.lineno + 1
      )
  code = '\n'.join(filter(None, map(str.rstrip, lines)))
  return hashlib.sha256((before + code).encode()).hexdigest()[:16]
