"""Where draws are combined: in the programs of runs.

Code of the library draws for whole networks in programs of others, too.
"""
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any

from vfljax.draws.bundled import bundled

_ASKED: ContextVar[bool] = ContextVar('asked', default=False)


def where_asked(fn: Callable) -> Callable:
  """`bundled(fn)` in programs of `asking`; elsewhere `fn`.

  In a program of one's own JAX may be told to look for keys that are used
  twice, or which arrays differ along a mesh. It cannot follow either through a
  table of keys.
  """

  @wraps(fn)
  def run(*arguments: Any, **named: Any) -> Any:
    return (bundled(fn) if _ASKED.get() else fn)(*arguments, **named)

  return run


def asking(fn: Callable) -> Callable:
  """`fn`, where all functions that are `where_asked` combine their draws."""

  @wraps(fn)
  def run(*arguments: Any, **named: Any) -> Any:
    before = _ASKED.set(True)
    try:
      return fn(*arguments, **named)
    finally:
      _ASKED.reset(before)

  return run
