"""Keeps the code of a grid's experiments apart, as if each had its own process.

A config file registers methods, and imports modules of its folder. Both last as
long as the process. So the next experiment would run a method that another file
put in place of vfljax's, or another folder's module of the same name. So each
experiment imports the modules of its config's folder again, even several times.
Those of folders that Python looked into before, as the current one, stay.
"""
from collections.abc import Callable, Collection, Iterator, Sequence
import contextlib
import functools
import importlib.machinery
from pathlib import Path
import sys
from typing import Any, ParamSpec, TypeVar

from vfljax import algorithms, attacks, data, defenses, nets

_COMPILED = tuple(importlib.machinery.EXTENSION_SUFFIXES)
_P = ParamSpec('_P')
_T = TypeVar('_T')
_REGISTRIES: tuple[dict[str, Any], ...] = (
    algorithms.AGGREGATIONS, attacks.REGISTRY, data.REGISTRY,
    defenses.REGISTRY, nets.ACTIVATIONS, nets.REGISTRY,
)


@contextlib.contextmanager
def kept() -> Iterator[None]:
  """A context that leaves no method and no module of a config's behind."""
  had = [dict(registry) for registry in _REGISTRIES]
  path, modules = [*sys.path], {*sys.modules}
  try:
    yield
  finally:
    for registry, before in zip(_REGISTRIES, had):
      registry.clear()
      registry.update(before)
    added = [folder for folder in sys.path if folder not in path]
    sys.path[:] = path
    for name in _found_in(added, modules):
      _forget(name)


def alone(function: Callable[_P, _T]) -> Callable[_P, _T]:
  """The function, called within `kept`."""
  @functools.wraps(function)
  def called(*args: _P.args, **kwargs: _P.kwargs) -> _T:
    with kept():
      return function(*args, **kwargs)

  return called


def _found_in(folders: Sequence[str], before: Collection[str]) -> list[str]:
  """Modules and packages that were imported since, out of some folders.

  Compiled ones, with all of their package, can be imported only once.
  """
  new = {k: m for k, m in [*sys.modules.items()] if k not in before}
  files = {k: _files(m) for k, m in new.items()}
  own = {
      name for name, places in files.items()
      if places and all({*map(Path, folders)} & {*p.parents} for p in places)
  }
  whole = lambda name: name.partition('.')[0]
  compiled = {
      whole(k) for k in own if any(p.name.endswith(_COMPILED) for p in files[k])
  }
  return [name for name in new if name in own and whole(name) not in compiled]


def _files(module: Any) -> list[Path]:
  """A module's file, or the folders of a package that has none."""
  file = getattr(module, '__file__', None)
  found = [file] if file else [*getattr(module, '__path__', ())]
  return [Path(place).absolute() for place in found]


def _forget(name: str) -> None:
  """The next import of a module reads its file."""
  module, (parent, _, last) = sys.modules.pop(name), name.rpartition('.')
  if getattr(sys.modules.get(parent), last, None) is module:
    delattr(sys.modules[parent], last)
