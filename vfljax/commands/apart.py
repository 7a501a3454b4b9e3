"""Keeps the code of a grid's experiments apart, as if each had its own process.

A config file registers methods, and imports modules of its folder. Both last as
long as the process. So the next experiment would run a method that another file
put in place of vfljax's, or another folder's module of the same name; and what
was edited since would run as it was, under the digest of what it is now.
"""
from collections.abc import Callable, Collection, Iterator
import contextlib
import functools
import sys
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

from vfljax import algorithms, attacks, data, defenses, importing, nets

_P = ParamSpec('_P')
_T = TypeVar('_T')
_REGISTRIES: tuple[dict[str, Any], ...] = (
    algorithms.AGGREGATIONS, attacks.REGISTRY, data.REGISTRY,
    defenses.REGISTRY, nets.ACTIVATIONS, nets.REGISTRY,
)


@contextlib.contextmanager
def kept() -> Iterator[None]:
  """A context that leaves no method and no module of the user's behind."""
  had = [dict(registry) for registry in _REGISTRIES]
  path, modules = [*sys.path], {*sys.modules}
  try:
    yield
  finally:
    for registry, before in zip(_REGISTRIES, had):
      registry.clear()
      registry.update(before)
    sys.path[:] = path
    for name in _own(modules):
      del sys.modules[name]


def alone(function: Callable[_P, _T]) -> Callable[_P, _T]:
  """The function, called within `kept`."""
  @functools.wraps(function)
  def called(*args: _P.args, **kwargs: _P.kwargs) -> _T:
    with kept():
      return function(*args, **kwargs)

  return called


def _own(before: Collection[str]) -> list[str]:
  """The user's modules that were imported since, and folders of such."""
  new = {k: m for k, m in [*sys.modules.items()] if k not in before}
  own = [name for name, module in new.items() if _is_own(module)]
  return [
      name for name, module in new.items()
      if name in own or not getattr(module, '__file__', None) and any(
          inner.startswith(f'{name}.') for inner in own
      )
  ]


def _is_own(module: ModuleType) -> bool:
  file = getattr(module, '__file__', None)
  return isinstance(file, str) and importing.is_own(file)
