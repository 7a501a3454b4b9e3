"""Compiles or reads programs in threads, identical ones only once."""
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
import itertools
from queue import PriorityQueue
import threading
from typing import Any, TypeAlias

import jax

from vfljax.runner.compiled import alike
from vfljax.runner.compiled.kept import Kept, Program
from vfljax.runner.machine import exhausted, tuning
from vfljax.runner.machine.stopping import Stop

Made: TypeAlias = tuple[Program, str]  # (program, its name in the store or '').
Turn: TypeAlias = tuple[int, ...]  # Whose turn to compile it is: the smallest.
_LOOK_SECONDS = 0.2  # Between two checks for a request to stop.


class Maker:
  """Compiles or reads programs in the threads of a pool.

  Attributes:
    kept: The store of programs of earlier starts; `None` for none.
  """

  def __init__(
      self, pool: ThreadPoolExecutor, kept: Kept | None,
      stop: Stop | None = None, tell: Callable[[str], None] | None = None,
  ):
    """`tell` prints that a program exceeds the memory, from any thread."""
    self.kept = kept
    self._tell = tell
    self._told, self._telling = False, threading.Lock()
    self._stop = Stop() if stop is None else stop  # A new one is false.
    self._pool = pool
    self._waiting: PriorityQueue[Any] = PriorityQueue()
    self._count = itertools.count()  # Of two with one turn, the earlier.
    self._alike: dict[str, Future] = {}
    self._read: dict[str, Future] = {}
    self._known: dict[Hashable, Future] = {}

  def make(
      self, lowered: jax.stages.Lowered, turn: Turn = ()
  ) -> 'Future[Made]':
    """Compiles a program; programs that differ only in names, only once.

    Args:
      lowered: The program.
      turn: While all threads are busy, programs wait; the smallest comes first.
    """
    self._stop.check()  # Between two programs, whose tracing takes seconds.
    made: Future = Future()
    self._waiting.put((turn, next(self._count), made, lowered))
    self._pool.submit(self._next)
    return made

  def known(
      self, about: Hashable, lower: Callable[[], jax.stages.Lowered],
      turn: Turn = (),
  ) -> 'Future[Made]':
    """Like `make`, but lowers the program only at the first call with `about`.
    """
    if about not in self._known:
      self._known[about] = self.make(lower(), turn)
    return self._known[about]

  def load(self, name: str) -> 'Future[Made]':
    """Reads a kept program, only once for each name."""
    assert self.kept
    load = self.kept.load
    if name not in self._read:
      self._read[name] = self._pool.submit(
          lambda: self._weighed((load(name), name))
      )
    return self._read[name]

  def wait(self, made: Future) -> None:
    """Waits until a program is compiled or read.

    Raises:
      Interrupted: after a request to stop. The thread goes on, as XLA's
        compiler cannot be stopped.
    """
    while not wait([made], _LOOK_SECONDS).done:
      self._stop.check()

  def forget(self) -> None:
    """Drops the references to all programs, so that unused ones are freed."""
    for made in (self._alike, self._read, self._known):
      made.clear()

  def _next(self) -> None:
    *_, made, lowered = self._waiting.get()
    self._into(made, lowered)

  def _into(self, made: Future, lowered: jax.stages.Lowered) -> None:
    """Compiles a program, or takes the result of an identical one.

    It does not wait for the other's result, because that would hold a thread.
    """
    try:
      first = self._alike.setdefault(alike.digest(lowered), made)
      if first is made:
        made.set_result(self._weighed(self._compiled(lowered)))
      else:
        first.add_done_callback(partial(_pass_on, made))
    except BaseException as error:  # As executors do.
      made.set_exception(error)

  def _compiled(self, lowered: jax.stages.Lowered) -> Made:
    if self.kept:
      return self.kept.compile(lowered)
    return tuning.compiled(lowered), ''

  def _weighed(self, made: Made) -> Made:
    """`made`, once it is said if the program takes more memory than there is.
    """
    if self._tell and not self._told:
      said = exhausted.warning(made[0])
      with self._telling:  # Once: what to do about others is the same.
        first, self._told = said and not self._told, self._told or bool(said)
      if first:
        self._tell(said)
    return made


def _pass_on(made: Future, first: Future) -> None:
  """Gives the result of an identical program to `made`."""
  error = first.exception()
  if error:
    made.set_exception(error)
  else:
    made.set_result(first.result())
