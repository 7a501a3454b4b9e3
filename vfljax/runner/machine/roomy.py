"""Gives deep calls, such as JAX's while it traces, room on Python's stack.

CPython keeps the frames of calls in pieces of 16 KB. A function at the end of a
piece that makes calls in a loop has the next piece mapped into memory at each
call and unmapped at each return, and the other cores are notified each time.
This took up to a tenth of the time to compile the papers' configurations
(experiments/bench/README.md). Since the spring of 2026, Python from 3.13 on
keeps one piece in reserve (https://github.com/python/cpython/issues/142183).

A function that declares a large stack gets one large piece, and the functions
that it calls use the rest of it.
"""
from collections.abc import Callable
import functools
from types import FunctionType
from typing import Any

# Just too many for a piece of one megabyte: of two, about one is left to use.
_SLOTS = 1 << 17


def roomy(fn: Callable) -> Callable:
  """`fn` with about a megabyte of mapped stack for the calls that it makes."""

  @functools.wraps(fn)
  def called(*args: Any, **kwargs: Any) -> Any:
    return _wide(fn, args, kwargs)

  return called


def _call(fn: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
  return fn(*args, **kwargs)


# It declares more stack than `_call`, but uses no more.
_wide = FunctionType(
    _call.__code__.replace(co_stacksize=_SLOTS), globals(), '_wide'
)
