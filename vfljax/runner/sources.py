"""Which code from outside of vfljax a work directory's numbers come from.

Whoever edits a method of his own and repeats the command asks for new numbers,
and a finished directory has the old ones. So config.json keeps a digest of the
files in which those methods stand that a run uses. Of a config file itself
`get_config` is left out: what it returns is compared anyway, and may ask for
more seeds. Modules that such a file imports are not looked at.
"""
import ast
from collections.abc import Callable, Iterable, Mapping
import functools
import hashlib
import inspect
from pathlib import Path
from typing import Any

from vfljax import algorithms, defenses, nets
from vfljax.runner import attackers, choosing, outside
from vfljax.runner.config import Entry
from vfljax.runner.setting import Setting

FIELD = 'sources'  # Of config.json: {a file's name: its digest}.


def of(setting: Setting) -> dict[str, str]:
  """The digests by the files' names; {} where all is vfljax's own."""
  files = {
      file for method in _used(setting) if not outside.is_ours(method)
      if (file := _file(outside.factory(method)))
  }
  found: dict[str, str] = {}
  for file in sorted(files):
    found[file.name] = _digest(found.get(file.name, ''), file)
  return found


def completed(saved: dict, now: Mapping[str, Any]) -> dict:
  """A saved configuration; one of before there were digests goes on."""
  return {FIELD: now[FIELD]} | saved if FIELD in now else saved


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
