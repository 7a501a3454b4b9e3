"""Several processes in one work directory: their locks, and how they wait.

A single process holds `.lock`. Each of several processes of an experiment holds
a lock of its own, such as `.lock-0-of-2`, and holds `.lock` while it enters. So
no second process with the same number and no single process can enter beside
them. The operating system releases a lock when its process ends.

Processes communicate only through files: the first writes its configuration,
each its results. So they need a shared file system, with locks that hold on all
machines (NFS 4, Lustre with -o flock).
"""
from collections.abc import Callable, Iterator
import contextlib
from pathlib import Path
import time

import filelock

from vfljax.data.table import counted
from vfljax.runner.errors import UserError
from vfljax.runner.machine import disk
from vfljax.runner.workdir.shares import Share

PATIENCE = 300.0  # Seconds to wait for a process that is not running.
_COMING = 10.0  # Seconds to wait while other processes enter.
_LOOK = 0.5  # Seconds between two checks.
_LOOKED_AT = 2.0  # Seconds to wait for a process that only checks a lock.
_SHARED = (
    'Start it with the same command and its own --process_id. On several '
    'machines --workdir must be a folder that all of them see.'
)


@contextlib.contextmanager
def among(path: Path, share: Share) -> Iterator[None]:
  """Lets only the processes of this division into a work directory.

  Raises:
    UserError: if another process is in it, or the directory cannot be made.
  """
  if share.count == 1:
    with disk.alone(path):
      _refuse_others(path, share)
      yield
    return
  with disk.alone(path, _COMING):
    _refuse_others(path, share)
    lock = filelock.FileLock(_file(path, share))
    with disk.writing(path):
      try:
        lock.acquire(_LOOKED_AT)
      except filelock.Timeout:
        raise UserError(
            f'There is a {share} in {path} already.\nGive each process its own '
            f'--process_id.{disk.left_over(_file(path, share))}'
        ) from None
  try:
    yield
  finally:
    lock.release()


def await_first(share: Share, path: Path, begun: Callable[[], bool]) -> None:
  """Waits until the first process has begun in a work directory.

  Args:
    share: This process.
    path: The work directory.
    begun: Whether the first process has begun.

  Raises:
    UserError: if it has not begun after `PATIENCE` seconds.
  """
  since = time.monotonic()
  if not begun():
    print(f'This is {share}: waiting for process 0 to begin in {path}.',
          flush=True)
  while not begun():
    if time.monotonic() - since > PATIENCE:
      raise UserError(
          f'Process 0 has not begun in {path} for {PATIENCE:g} seconds.\n'
          f'{_SHARED}'
      )
    time.sleep(_LOOK)


def await_others(
    path: Path, share: Share, missing: Callable[[Share], int],
    stop: Callable[[], bool],
) -> None:
  """Waits until all results of the other processes are there.

  A file server may not answer for a moment: errors of the file system end the
  waiting only when they last.

  Args:
    path: The work directory.
    share: The first process.
    missing: Returns how many results of a process are missing.
    stop: Whether to stop waiting, for example after ctrl-C.

  Raises:
    UserError: if results of a process are missing that has not been running for
      `PATIENCE` seconds, or the work directory cannot be read for as long.
  """
  absent: dict[Share, float] = {}  # Since when.
  said, looked, hinted = '', time.monotonic(), set()
  while not stop():
    now = time.monotonic()
    try:
      left, gone = _look(path, share, missing)
    except UserError as error:
      if not isinstance(error.__cause__, OSError) or now - looked > PATIENCE:
        raise
      absent = {}  # Whoever runs there may have been stopped by the same.
      why = str(error).partition('\n')[0]
      said = _say(f'{why} Trying again for {PATIENCE:g} seconds.', said)
      time.sleep(_LOOK)
      continue
    looked = now
    if not left:
      return
    absent = {other: absent.get(other, now) for other in gone}
    waiting = ', '.join(
        f'process {other.number} ({counted(count, "result")} left'
        + (', not running)' if other in gone else ')')
        for other, count in left.items()
    )
    said = _say(f'Waiting for {waiting}.', said)
    for other in left.keys() - hinted:
      hinted.add(other)
      if hint := disk.left_over(_file(path, other)):
        print(hint.strip(), flush=True)
    late = [other for other, since in absent.items() if now - since > PATIENCE]
    if late:
      raise UserError(
          f'{path} lacks {counted(left[late[0]], "result")} of {late[0]}.\n'
          f'It has not run for {PATIENCE:g} seconds. {_SHARED}'
      )
    time.sleep(_LOOK)


def _say(told: str, said: str) -> str:
  """Prints a line, unless it is what was said last."""
  if told != said:
    print(told, flush=True)
  return told


def _look(
    path: Path, share: Share, missing: Callable[[Share], int]
) -> tuple[dict[Share, int], list[Share]]:
  """(results left of each other process that lacks some, those not running).

  Raises:
    UserError: if that cannot be found out.
  """
  with disk.writing(path):
    counts = {other: missing(other) for other in share.others}
  left = {other: count for other, count in counts.items() if count}
  return left, [other for other in left if not _held(_file(path, other))]


def _refuse_others(path: Path, share: Share) -> None:
  """Refuses to enter beside processes of another division.

  Raises:
    UserError: if there are any.
  """
  ours = {_file(path, Share(n, share.count)) for n in range(share.count)}
  for file in sorted(path.glob('.lock-*-of-*')):
    if file not in ours and _held(file):
      _, number, _, count = file.name.split('-')
      raise UserError(
          f'Process {number} of {count} is running in {path}.\nWait until it '
          f'is done, be one of {count}, or choose another --workdir.'
          f'{disk.left_over(file)}'
      )


def _file(path: Path, share: Share) -> Path:
  return path / f'.lock-{share.number}-of-{share.count}'


def _held(file: Path) -> bool:
  """Whether a process holds this lock.

  Raises:
    UserError: if that cannot be found out.
  """
  lock = filelock.FileLock(file)
  # It may be another user's, or on a server that does not answer for a moment.
  with disk.writing(file.parent):
    if not disk.exists(file):
      return False
    try:
      lock.acquire(blocking=False)
    except filelock.Timeout:
      return True
  lock.release()
  return False
