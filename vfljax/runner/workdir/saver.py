"""Saves finished jobs, one at a time, while the next one trains."""
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
import contextlib
from typing import Self

from vfljax.runner.machine.stopping import Stop


class Saver:
  """Saves in a thread. It is a context manager; on exit everything is saved.

  A first signal does not end the process while it saves.
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
    finally:  # Wait even after an interrupt: nothing else may write meanwhile.
      self._pool.shutdown()
    while self._begun:
      self._begun.popleft().result()

  def begin(self, save: Callable[[], None]) -> None:
    """Starts to save a job, after the jobs before it."""
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
    """Raises errors of jobs whose saving has ended, without waiting.

    Raises:
      UserError: if a job could not be saved.
    """
    while self._begun and self._begun[0].done():
      self._begun.popleft().result()
