"""The text that a file had when its code was imported.

In a notebook a module stays as it was imported when its file is edited, until
`importlib.reload` or a restart. A digest of the edited text would say of the
old code's numbers that they are the new one's. Python keeps no text, so the
one of the first run counts, for as long as the same code is there.
"""
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
import sys
import types
from typing import Any

# Identity -> (what was made by an import, its file's text at the first run).
_READ: dict[int, tuple[Any, str]] = {}
# Of files that had not been imported by then, the text that a run looked at.
_BEFORE: dict[Path, str] = {}
_TOLD: set[tuple[Path, str]] = set()


def text(
    file: Path, functions: Iterable[Any], meant: Callable[[str], str]
) -> str:
  """The text of a file, as of when its code was imported.

  It says so once if the file has changed since. If it is not known which of two
  texts was imported, both are returned, so that no other run is taken for it.

  Args:
    file: The file.
    functions: What the run calls. Such a function may be that of an import
      before the last one, if it was not registered again.
    meant: What counts of a text.
  """
  now = meant(file.read_text('utf-8', errors='replace'))
  made = [*_made(file, functions)]
  if not made:  # A function may import it later.
    _BEFORE[file] = now
    return now
  before = _BEFORE.pop(file, now)
  new = now if before == now else before + now
  known = (_READ[id(each)][1] for each in made if id(each) in _READ)
  then = next((old for old in known if old != now), new)
  for each in made:
    _READ.setdefault(id(each), (each, new))
  if then != now and (file, now) not in _TOLD:
    _TOLD.add((file, now))
    print(
        f'warning: {file} has changed since it was imported, and what was '
        'imported runs. For the new code restart, or call importlib.reload and '
        'register it again.', file=sys.stderr, flush=True,
    )
  return then


def _made(file: Path, functions: Iterable[Any]) -> Iterator[Any]:
  """What another import of a file makes anew."""
  for module in [*sys.modules.values()]:
    spec = getattr(module, '__spec__', None)
    if spec is not None and getattr(module, '__file__', None) == str(file):
      yield spec
  for each in functions:
    if isinstance(each, types.FunctionType):
      if Path(each.__code__.co_filename) == file:
        yield each.__code__
