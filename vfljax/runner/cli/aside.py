"""What is done in a thread beside the first training, and not before it.

Before, it would take turns with Python that somebody waits for: what traces
programs, or finds them again.
"""
from collections.abc import Callable, Iterator
import contextlib
from contextvars import ContextVar
import threading

_WAITING: ContextVar[list[Callable[[], None]]] = ContextVar('aside')


@contextlib.contextmanager
def waiting(work: Callable[[], None]) -> Iterator[None]:
  """In the block, `begin` has it done, once."""
  token = _WAITING.set([work])
  try:
    yield
  finally:
    _WAITING.reset(token)


def begin() -> None:
  """Begins what waits: a process that ends does not wait for it."""
  works = _WAITING.get([])
  while works:
    threading.Thread(target=works.pop(), daemon=True).start()
