"""Room on Python's stack for calls as deep as JAX's while it traces.

CPython keeps the frames of calls in pieces of 16 KB. Who stands at the end of a
piece and calls, in a loop over a program's equations say, has the next piece
mapped into memory and, with each return, taken out again, of which other cores
are told each time. Of what compiling the papers' configurations takes, that was
up to a tenth (experiments/bench/README.md). Python from 3.13 on keeps one piece
in reserve, since the spring of 2026
(https://github.com/python/cpython/issues/142183).

A function that needs much of the stack gets a piece that is doubled until it
fits, and leaves what is over to those whom it calls.
"""
from collections.abc import Callable
import functools
from types import FunctionType
from typing import Any

# Just too many for a megabyte: of the two, about one is left.
_SLOTS = 1 << 17


def roomy(fn: Callable) -> Callable:
  """`fn`, which finds a megabyte for its calls, which nobody has to map."""

  @functools.wraps(fn)
  def called(*args: Any, **kwargs: Any) -> Any:
    return _wide(fn, args, kwargs)

  return called


def _call(fn: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
  return fn(*args, **kwargs)


# It uses no more of the stack than before: what it says of itself is larger.
_wide = FunctionType(
    _call.__code__.replace(co_stacksize=_SLOTS), globals(), '_wide'
)
