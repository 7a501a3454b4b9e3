"""Whose a file of code is, and which files it imports.

Results depend on a user's own code. What is kept of them is out of date if one
of these files has changed, also one that is only imported.
"""
import ast
from collections.abc import Callable, Iterator
import functools
import importlib.util
import linecache
from pathlib import Path
import sys
import sysconfig
from typing import Any


def is_own(file: str) -> bool:
  """Whether a file is the user's: not installed, nor of vfljax or Python.

  A notebook's cell is, too (`is_typed`). Compiled modules name source files
  that are nowhere (numpy/random/x.pyx).
  """
  place = Path(file).absolute()
  folders = [Path(__file__).parent] + [
      Path(sysconfig.get_paths()[kind])
      for kind in ('stdlib', 'purelib', 'platlib')
  ]
  folders += [Path(at).absolute() for at in sys.path if _has_installed(at)]
  there = place.is_file() or is_typed(file)
  return there and not set(folders) & set(place.parents)


@functools.cache
def _has_installed(folder: str) -> bool:
  """Whether packages were installed into a folder, as by `pip --target`."""
  return next(Path(folder).glob('*.dist-info'), None) is not None


def is_typed(file: str) -> bool:
  """Whether it is the name of code that was typed, as in a notebook's cell.

  Python's cache of lines has such code, and no time of a file for it.
  """
  known = linecache.cache.get(file, ())
  return known[1:2] == (None,) and not file.startswith('<frozen ')


def collect(file: Path, found: set[Path]) -> None:
  """Adds a file, and the user's own files that it imports."""
  if file in found:
    return
  found.add(file)
  for name in _imported(file):
    parts = name.split('.')
    for i in range(len(parts)):  # Importing a module also runs its packages.
      there = _file('.'.join(parts[: i + 1]))
      if there.endswith('.py') and is_own(there):
        collect(Path(there), found)


def _file(name: str) -> str:
  """The file of a module; '' if there is none.

  A function may import it only once it is called: it is looked for where it
  would be found, and not imported.
  """
  if name in sys.modules:
    return getattr(sys.modules[name], '__file__', None) or ''
  package, _, last = name.rpartition('.')
  for folder in _folders(package):
    for place in (folder / last / '__init__.py', folder / f'{last}.py'):
      if place.is_file():
        return str(place)
  return ''


def _folders(package: str) -> list[Path]:
  """Where a package's modules are looked for; of '' all others."""
  if not package:
    return [*map(Path, sys.path)]
  if package in sys.modules:
    return [*map(Path, getattr(sys.modules[package], '__path__', ()))]
  above, _, last = package.rpartition('.')
  places = [folder / last for folder in _folders(above)]
  return [place for place in places if place.is_dir()]


def _imported(file: Path) -> Iterator[str]:
  """The modules that a file's import statements may mean.

  None if it cannot be read, as it need not be imported.
  """
  package = next((
      m.__package__ for m in [*sys.modules.values()]
      if getattr(m, '__file__', None) == str(file)
  ), None)
  # Some editors write a byte order mark.
  text = file.read_text('utf-8-sig', errors='replace')
  try:
    tree = ast.parse(text)
  except (SyntaxError, ValueError):
    return
  for part in ast.walk(tree):
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


def goes_by_name(made: Any) -> bool:
  """Whether a pickle of a named object holds its name alone, as a function's.

  That is so in a module under that name, which another process imports, too. A
  program itself is none: there cloudpickle sends what the object is, and where
  it was told to (`register_pickle_by_value`).
  """
  module = made.__module__ or ''
  there = getattr(sys.modules.get(module), made.__name__, None)
  told = getattr(
      sys.modules.get('cloudpickle'), 'list_registry_pickle_by_value', set
  )
  parts = module.split('.')
  above = {'.'.join(parts[: i + 1]) for i in range(len(parts))}
  return there is made and module != '__main__' and not above & told()


def behind(factory: Callable[..., Any]) -> Callable[..., Any]:
  """The function behind partials, which have no name of their own."""
  while isinstance(factory, functools.partial):
    factory = factory.func
  return factory


def called(factory: Callable[..., Any]) -> str:
  """A function's name; its class's, of an object that can be called."""
  factory = behind(factory)
  return getattr(factory, '__name__', type(factory).__name__)
