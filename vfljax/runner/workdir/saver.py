"""Finished jobs saved while the next one trains, one at a time."""
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
import contextlib
from typing import Self

from vfljax.runner.machine.stopping import Stop


class Saver:
  """Saves in a thread; a context manager, on leaving which all is saved.

  A signal does not end the process while it is at work.
  """

  def __init__(self, stop: Stop):
    self._stop = stop
    self._pool = ThreadPoolExecutor(1, 'results')
    self._begun: deque[Future] = deque()

  def __enter__(self) -> Self:
    return self

  def __exit__(self, kind, error, trace) -> None:
    try:
      self._pool.shutdown()
    finally:  # Whoever lost patience: nobody else may write there before.
      self._pool.shutdown()
    while self._begun:
      self._begun.popleft().result()

  def begin(self, save: Callable[[], None]) -> None:
    """Has a job saved, after those before it."""
    heard = contextlib.ExitStack()
    heard.enter_context(self._stop.awaited())

    def do():
      with heard:
        save()

    try:
      self._begun.append(self._pool.submit(do))
    except BaseException:
      heard.close()
      raise

  def check(self) -> None:
    """Waits for nothing.

    Raises:
      UserError: if the disk did not take a job whose turn has been.
    """
    while self._begun and self._begun[0].done():
      self._begun.popleft().result()
