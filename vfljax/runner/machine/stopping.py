"""Ctrl-C and SIGTERM: a run that is asked to stop leaves within ten seconds.

Python runs signal handlers in the main thread, between two of its steps, and a
step may be minutes of compiling. So the work is done in a second thread, and
the main one does nothing but wait and listen. What is on disk is whole at any
moment, so the process may end at any: it does so at once unless there is
something to save, and then as soon as that is saved or takes too long.

That is for the command line, whose process it is. Who calls from a program or a
notebook of his own keeps it: see `listening`.
"""
from collections.abc import Callable, Iterator
import contextlib
import os
import signal
import sys
import threading
import time
from typing import Any, NoReturn

CODE = 130  # What shells report of a program that ctrl-C ended.
PATIENCE = 7.0  # Seconds for coming to a point where everything is saved.
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_STACK = 64 << 20  # Bytes: compilers recurse, and a Mac gives threads little.


class Stop:
  """Whether somebody has asked to stop, and whether that is worth a while.

  Attributes:
    since: When it was asked; 0 if it was not.
    place: What the same command continues, for people.
  """

  def __init__(self):
    self.since = 0.0
    self.place = ''
    self._going: list[None] = []  # One for each block below.

  def __bool__(self) -> bool:
    return bool(self.since)

  @contextlib.contextmanager
  def awaited(self) -> Iterator[None]:
    """The block saves: it is soon done, or looks at this now and then.

    There may be several, in threads of their own.
    """
    self._going.append(None)
    try:
      yield
    finally:
      self._going.pop()

  def ask(self, number: int = 0, frame: Any = None) -> None:
    """Handles a signal: leaves, or makes a note for the block above."""
    del number, frame
    if self or not self._going:
      leave(self.place)
    self.note()

  def note(self) -> None:
    """From now on somebody has asked to stop."""
    self.since = time.monotonic()
    _tell('Stopping soon, after saving; once more stops at once.')


def heeding(work: Callable[[Stop], Any]) -> Any:
  """`work(stop)` in a thread of its own, while this one listens to signals.

  Whatever it returns or raises, this does. In a thread that is not the main one
  nobody listens, and `work` simply runs.
  """
  stop = Stop()
  if threading.current_thread() is not threading.main_thread():
    return work(stop)
  results, errors = [], []

  def run():
    try:
      results.append(work(stop))
    except BaseException as error:  # It is raised below, where it belongs.
      errors.append(error)

  with _handled(stop.ask):
    _wait(_started(run), stop)
  if errors:
    raise errors[0]
  return results[0]


@contextlib.contextmanager
def listening() -> Iterator[Stop]:
  """A `Stop` that is true after a signal; the next raises KeyboardInterrupt.

  The process is not ours and is never ended. In a thread that is not the main
  one nobody listens.
  """
  stop = Stop()

  def ask(number: int, frame: Any) -> None:
    del number, frame
    if stop:
      raise KeyboardInterrupt
    stop.note()

  if threading.current_thread() is not threading.main_thread():
    yield stop
    return
  with _handled(ask):
    yield stop


def leave(place: str = '') -> NoReturn:
  """Ends the process, whatever its other threads are doing."""
  if sys.stdout.isatty():
    _write(sys.stdout, '\x1b[?25h\n')  # The cursor, hidden by a progress bar.
  _tell(last_words(place))
  os._exit(CODE)


def end(code: int) -> NoReturn:
  """Ends the process with what was printed, whatever its threads are doing."""
  for stream in (sys.stdout, sys.stderr):
    with contextlib.suppress(OSError, ValueError):
      stream.flush()
  os._exit(code)


def last_words(place: str = '') -> str:
  """What is said at the end; `place` is what there is to be continued."""
  return f'Stopped. The same command continues {place}.' if place else (
      'Stopped.'
  )


@contextlib.contextmanager
def _handled(ask: Callable[[int, Any], None]) -> Iterator[None]:
  """Signals go to `ask` while the block runs, which is in the main thread."""
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
  """Past all buffers, which another thread may hold while it waits."""
  with contextlib.suppress(OSError, ValueError):
    os.write(stream.fileno(), text.encode())
