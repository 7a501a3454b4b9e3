"""Checkpoints written behind training's back, one at a time."""
from concurrent.futures import Future, ThreadPoolExecutor, wait
import time
from typing import Any, Self

from vfljax.runner.workdir import checkpoints
from vfljax.runner.workdir.checkpoints import Snapshot
from vfljax.runner.workdir.store import Workdir


class Writer:
  """Writes a unit's checkpoints in a thread; a context manager.

  On leaving it whatever was begun is finished. Training goes on while the disk
  is at work, so what is saved is copied first: its memory will be used again.
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
    """Seconds that the last whole checkpoint took; 0 before there is one."""
    return self._took

  def save(self, step: int, tree: Any) -> None:
    """Begins to write a checkpoint, when the one before is there.

    Raises:
      UserError: if the disk did not take the one before.
    """
    self.wait()
    began = time.perf_counter()
    taken = checkpoints.snapshot(tree)
    self._last = self._pool.submit(self._write, step, taken, began)

  def check(self) -> None:
    """Waits for nothing.

    Raises:
      UserError: if the disk did not take what was written last.
    """
    if not self.busy:
      self.wait()

  def wait(self) -> None:
    """Until everything is on disk.

    Raises:
      UserError: if the disk does not take it.
    """
    if self._last is not None:
      self._last.result()

  def settle(self) -> None:
    """Until nothing is written any more, whatever became of it.

    For a unit that is done: its results are saved next, which tells of a disk
    that is really full, and then its checkpoints go.
    """
    if self._last is not None:
      wait([self._last])

  def _write(self, step: int, taken: Snapshot, began: float) -> None:
    self._work.save_checkpoint(self._unit, step, taken)
    self._took = time.perf_counter() - began
