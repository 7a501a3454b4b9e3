"""Processes in one work directory: who is there, and who is waited for.

A process that is alone holds `.lock`. Processes of one experiment hold a lock
each, `.lock-0-of-2`, and `.lock` while they come in, so that neither a second
one of a number nor a process that is alone gets in beside them. Locks are the
operating system's and go with the process that holds them.

What one process tells the others is what it writes: the first its
configuration, each its results. So there has to be a file system that all of
them see, with locks that hold on all machines (NFS 4, Lustre with -o flock).
"""
from collections.abc import Callable, Iterator
import contextlib
from pathlib import Path
import time

import filelock

from vfljax.runner.errors import UserError
from vfljax.runner.machine import disk
from vfljax.runner.workdir.shares import Share

PATIENCE = 300.0  # Seconds until somebody who is not there is not waited for.
_COMING = 10.0  # Seconds that others may take to come in.
_LOOK = 0.5  # Seconds between two looks.
_LOOKED_AT = 2.0  # Seconds in which who looks at a lock has let go of it again.
_SHARED = (
    'Start it with the same command and its own --process_id; on other machines'
    ' --workdir has to be a folder that all of them see.'
)


@contextlib.contextmanager
def among(path: Path, share: Share) -> Iterator[None]:
  """Keeps all but the other processes out of a work directory for the block.

  Raises:
    UserError: if somebody is in it who does not belong there, or the directory
      cannot be made.
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
            f'There is a {share} in {path} already.\nEach has a --process_id '
            'of its own.'
        ) from None
  try:
    yield
  finally:
    lock.release()


def await_first(share: Share, path: Path, begun: Callable[[], bool]) -> None:
  """Until the first process has begun in a work directory, as `begun` says.

  Raises:
    UserError: if it does not.
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
  """Until nothing is missing of the other processes, or somebody asks to stop.

  Args:
    path: The work directory.
    share: The first process.
    missing: How many results are, of a process.
    stop: Whether to stop.

  Raises:
    UserError: if somebody is not there, and something of him is missing.
  """
  absent: dict[Share, float] = {}  # Since when.
  said = ''
  while not stop():
    left = {other: missing(other) for other in share.others}
    left = {other: count for other, count in left.items() if count}
    if not left:
      return
    now = time.monotonic()
    gone = [other for other in left if not _held(_file(path, other))]
    absent = {other: absent.get(other, now) for other in gone}
    waiting = ', '.join(
        f'process {other.number} ({count} results left'
        + (', not running)' if other in gone else ')')
        for other, count in left.items()
    )
    if waiting != said:
      print(f'Waiting for {waiting}.', flush=True)
      said = waiting
    late = [other for other, since in absent.items() if now - since > PATIENCE]
    if late:
      raise UserError(
          f'{left[late[0]]} results of {late[0]} are missing in {path}, and '
          f'it has not run for {PATIENCE:g} seconds.\n{_SHARED}'
      )
    time.sleep(_LOOK)


def _refuse_others(path: Path, share: Share) -> None:
  """Refuses to come in beside processes of another division.

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
      )


def _file(path: Path, share: Share) -> Path:
  return path / f'.lock-{share.number}-of-{share.count}'


def _held(file: Path) -> bool:
  """Whether a process holds a lock, looked at without keeping it."""
  if not file.exists():
    return False
  lock = filelock.FileLock(file)
  try:
    lock.acquire(blocking=False)
  except filelock.Timeout:
    return True
  lock.release()
  return False
