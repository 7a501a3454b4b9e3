"""Work that is done in a thread during the first training, not before it.

Before, it would compete with Python code that the user waits for: tracing
programs, or finding them in the cache.
"""
from collections.abc import Callable, Iterator
import contextlib
from contextvars import ContextVar
import threading

_WAITING: ContextVar[list[Callable[[], None]]] = ContextVar('aside')


@contextlib.contextmanager
def waiting(work: Callable[[], None]) -> Iterator[None]:
  """A context in which `begin` starts `work`, once."""
  token = _WAITING.set([work])
  try:
    yield
  finally:
    _WAITING.reset(token)


def begin() -> None:
  """Starts the waiting work in a daemon thread, which delays no exit."""
  works = _WAITING.get([])
  while works:
    threading.Thread(target=works.pop(), daemon=True).start()
