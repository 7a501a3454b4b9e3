"""Ctrl-C and SIGTERM: a run that is asked to stop ends within ten seconds.

Python runs signal handlers in the main thread, between two of its steps, and a
step may be minutes of compiling. So the work is done in a second thread, and
the main one only waits for signals. Files on disk are whole at any moment, so
the process may end at any: it does so at once, unless there is something to
save; then it ends once that is saved or takes too long.

That is for the command line. A program or notebook that calls the runner keeps
its process, see `listening`.
"""
from collections.abc import Callable, Iterator
import contextlib
import os
import signal
import sys
import threading
import time
from typing import Any, NoReturn

from vfljax.runner.machine import notebook

CODE = 130  # What shells report of a program that ctrl-C ended.
PATIENCE = 7.0  # Seconds that a block gets to save everything.
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_POOLS = {
    'concurrent.futures.process', 'loky.process_executor',
    'joblib.externals.loky.process_executor',
}
_STACK = 64 << 20  # Bytes: compilers recurse, and macOS gives threads little.


class Interrupted(Exception):
  """The run was asked to stop; everything up to here has been saved."""


class Stop:
  """Whether the user has asked to stop, and whether something is being saved.

  Attributes:
    since: The time of the request; 0 if there was none.
    place: The work directory that the same command continues, for the message.
  """

  def __init__(self):
    self.since = 0.0
    self.place = ''
    self._going: list[None] = []  # An entry for each block in `awaited`.

  def __bool__(self) -> bool:
    return bool(self.since)

  def check(self) -> None:
    """Raises `Interrupted` after a request, where there is nothing to save."""
    if self:
      raise Interrupted

  @contextlib.contextmanager
  def awaited(self) -> Iterator[None]:
    """Marks a block that saves: a request to stop waits for it.

    The block should end soon, or check this `Stop` now and then. Several blocks
    may run in different threads.
    """
    self._going.append(None)
    try:
      yield
    finally:
      self._going.pop()

  def ask(self, number: int = 0, frame: Any = None) -> None:
    """Handles a signal: ends the process, or notes it if a block is saving."""
    del number, frame
    if self or not self._going:
      leave(self.place)
    self.note()

  def note(self) -> None:
    """Notes the request to stop, and tells the user."""
    self.since = time.monotonic()
    _tell('Stopping soon, after saving; once more stops at once.')


def heeding(work: Callable[[Stop], Any]) -> Any:
  """Runs `work(stop)` in another thread, while this one listens to signals.

  Returns or raises what `work` does. If this is not the main thread, signals
  cannot be handled, and `work` simply runs.
  """
  stop = Stop()
  if threading.current_thread() is not threading.main_thread():
    return work(stop)
  results, errors = [], []

  def run():
    try:
      results.append(work(stop))
    except BaseException as error:  # It is raised in the main thread below.
      errors.append(error)

  with _handled(stop.ask):
    _wait(_started(run), stop)
  if errors:
    raise errors[0]
  return results[0]


@contextlib.contextmanager
def listening() -> Iterator[Stop]:
  """A `Stop` that is true after a signal; the next raises KeyboardInterrupt.

  The process is never ended, because it belongs to the caller. If this is not
  the main thread, signals are not handled.

  But in a worker of a process pool SIGTERM does its usual work after the block,
  which is to end the process: the pool would take the exception for a result,
  and the worker would wait for other jobs, if need be for ever.
  """
  stop, asked = Stop(), []

  def ask(number: int, frame: Any) -> None:
    del frame
    asked.append(number)
    if stop:
      raise KeyboardInterrupt
    stop.note()

  if threading.current_thread() is not threading.main_thread():
    yield stop
    return
  try:
    with _handled(ask):
      yield stop
  finally:
    if signal.SIGTERM in asked and _in_pool():
      signal.raise_signal(signal.SIGTERM)


def _in_pool() -> bool:
  """Whether a pool has called us that takes any exception for a result."""
  frame = sys._getframe()
  while frame and frame.f_globals.get('__name__') not in _POOLS:
    frame = frame.f_back
  return frame is not None


def leave(place: str = '') -> NoReturn:
  """Ends the process with code 130, whatever its other threads are doing."""
  if sys.stdout.isatty():
    _write(sys.stdout, '\x1b[?25h\n')  # The cursor, hidden by a progress bar.
  _tell(last_words(place))
  os._exit(CODE)


def end(code: int) -> NoReturn:
  """Flushes the output and ends the process, whatever its threads are doing."""
  for stream in (sys.stdout, sys.stderr):
    with contextlib.suppress(OSError, ValueError):
      stream.flush()
  os._exit(code)


def last_words(place: str = '') -> str:
  """The last message; `place` is the work directory that can be continued."""
  return f'Stopped. The same command continues {place}.' if place else (
      'Stopped.'
  )


@contextlib.contextmanager
def _handled(ask: Callable[[int, Any], None]) -> Iterator[None]:
  """Sends signals to `ask` while the block runs, in the main thread."""
  before = {number: signal.signal(number, ask) for number in _SIGNALS}
  try:
    yield
  finally:
    for number, handler in before.items():
      signal.signal(number, handler)


def _started(run: Callable[[], None]) -> threading.Thread:
  before = threading.stack_size(_STACK)
  try:
    thread = threading.Thread(target=run, name='vfljax', daemon=True)
    thread.start()
  finally:
    threading.stack_size(before)
  return thread


def _wait(thread: threading.Thread, stop: Stop) -> None:
  while thread.is_alive():
    thread.join(0.2)
    if stop and time.monotonic() - stop.since > PATIENCE and thread.is_alive():
      leave(stop.place)


def _tell(text: str) -> None:
  _write(sys.stderr, text + '\n')


def _write(stream: Any, text: str) -> None:
  """Writes without buffers, which another thread may hold locked.

  A notebook's cell has no file: the kernel's own one is in the terminal that
  Jupyter was started from.
  """
  if notebook.is_kernel():
    stream.write(text)
    return
  with contextlib.suppress(OSError, ValueError):
    os.write(stream.fileno(), text.encode())
