"""Writes checkpoints in a thread, one at a time, while training goes on."""
from concurrent.futures import Future, ThreadPoolExecutor, wait
import time
from typing import Any, Self

from vfljax.runner.workdir import checkpoints
from vfljax.runner.workdir.checkpoints import Snapshot
from vfljax.runner.workdir.store import Workdir


class Writer:
  """Writes a unit's checkpoints in a thread. It is a context manager.

  On exit the last checkpoint is finished. What is saved is copied first,
  because training goes on and reuses its memory.
  """

  def __init__(self, work: Workdir, unit: str):
    self._work, self._unit = work, unit
    self._pool = ThreadPoolExecutor(1, 'checkpoint')
    self._last: Future | None = None
    self._took = 0.0

  def __enter__(self) -> Self:
    return self

  def __exit__(self, kind, error, trace) -> None:
    self._pool.shutdown()

  @property
  def busy(self) -> bool:
    """Whether a checkpoint is being written."""
    return self._last is not None and not self._last.done()

  @property
  def took(self) -> float:
    """Seconds that the last finished checkpoint took; 0 if there is none."""
    return self._took

  def save(self, step: int, tree: Any) -> None:
    """Waits for the checkpoint before, then starts to write this one.

    Raises:
      UserError: if the one before could not be written.
    """
    self.wait()
    began = time.perf_counter()
    taken = checkpoints.snapshot(tree)
    self._last = self._pool.submit(self._write, step, taken, began)

  def check(self) -> None:
    """Raises the error of the last checkpoint if it has ended; does not wait.

    Raises:
      UserError: if it could not be written.
    """
    if not self.busy:
      self.wait()

  def wait(self) -> None:
    """Waits until everything is on disk.

    Raises:
      UserError: if the last checkpoint could not be written.
    """
    if self._last is not None:
      self._last.result()

  def settle(self) -> None:
    """Waits until nothing is being written, and ignores errors.

    For a unit that is done: saving its results, which comes next, will fail if
    the disk is really full, and its checkpoints are then removed.
    """
    if self._last is not None:
      wait([self._last])

  def _write(self, step: int, taken: Snapshot, began: float) -> None:
    self._work.save_checkpoint(self._unit, step, taken)
    self._took = time.perf_counter() - began
