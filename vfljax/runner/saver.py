"""Finished jobs saved while the next one trains, one at a time."""
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
import contextlib
from typing import Self

from vfljax.runner.stopping import Stop


class Saver:
  """Saves in a thread; a context manager, on leaving which all is saved.

  Who asks to stop while it is at work is heard when it is done.
  """

  def __init__(self, stop: Stop):
    self._stop = stop
    self._pool = ThreadPoolExecutor(1, 'results')
    self._last: Future | None = None

  def __enter__(self) -> Self:
    return self

  def __exit__(self, kind, error, trace) -> None:
    self._pool.shutdown()
    self._wait()

  def begin(self, save: Callable[[], None]) -> None:
    """Begins with a job when the one before is saved.

    Raises:
      UserError: if the disk did not take the one before.
    """
    self._wait()
    heard = contextlib.ExitStack()
    heard.enter_context(self._stop.awaited())

    def do():
      with heard:
        save()

    self._last = self._pool.submit(do)

  def _wait(self) -> None:
    if self._last is not None:
      self._last.result()
