"""Writes files in one step, in a work directory that one process holds.

A file is there whole or not at all. Errors of the file system become messages
for the user. Unfinished files are called '.vfljax-<name>.tmp', to distinguish
them from the user's own.

For the tests in tests/faults: VFLJAX_FAULT='<files>:<n>:<what>' causes a fault
at the n-th moment (from 1) of writing files whose path matches the pattern.
`replace` and checkpoints have three moments each: half is written; all is
written under the unfinished name; the file has its name. The fault is 'kill'
(SIGKILL), 'term' (SIGTERM) or 'full' (the disk). For example,
VFLJAX_FAULT='*/parts/*.json:2:kill' kills the process just before the first
unit counts as finished.
"""
import contextlib
import errno
from fnmatch import fnmatchcase
import itertools
import os
from pathlib import Path
import shutil
import signal
import sys
import time
from collections.abc import Iterator

import filelock

from vfljax.runner.errors import UserError

DAMAGED = 'damaged'  # The folder for files that cannot be used.
# Errors of a file that is gone, is a folder or can never be read again. Others
# may pass: no permission, no descriptors left, a server that does not answer.
_LOST = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EIO)
_FAULT = os.environ.get('VFLJAX_FAULT', '').rsplit(':', 2)
_MOMENTS = itertools.count(1)
_PAUSES = 0.05, 0.15, 0.3, 0.5, 1.0  # Seconds between attempts.


@contextlib.contextmanager
def alone(path: str | os.PathLike, seconds: float = 0) -> Iterator[None]:
  """Locks a work directory while the block runs.

  The operating system holds the lock, and releases it however the process ends.

  Args:
    path: The work directory.
    seconds: How long to wait for another process to release it.

  Raises:
    UserError: if another process holds it, or the directory cannot be made.
  """
  place = Path(path).absolute()
  with writing(place):
    place.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(place / '.lock')
    try:
      lock.acquire(seconds)
    except filelock.Timeout:
      raise UserError(
          f'Another process is running in {place}.\nWait until it is done, or '
          f'choose another --workdir.{left_over(place / ".lock")}'
      ) from None
  try:
    yield
  finally:
    lock.release()


def left_over(lock: Path) -> str:
  """What to do about a lock that a dead process may have left, or ''.

  A lock of the operating system is an empty file and ends with its process.
  Where the file system has none (Lustre without flock), filelock writes process
  and machine into the file. From another machine it cannot see whether that
  process lives.
  """
  with contextlib.suppress(OSError, ValueError):
    said = lock.read_text('utf-8').split()
    if len(said) > 1:
      return (
          f' If process {said[0]} on {said[1]} has ended without removing its '
          f'lock, and nobody else runs there, delete {lock}.'
      )
  return ''


def write_text(file: Path, text: str, flag: str = '--workdir') -> None:
  """Writes a file in one step.

  Args:
    file: The file.
    text: Its content.
    flag: The flag with which the user can choose another place.

  Raises:
    UserError: if it cannot be written.
  """
  with writing(file.parent, flag):
    replace(file, text)


def replace(file: Path, content: str | bytes) -> None:
  """Writes a file in one step: after a kill it is either the old or the new.
  """
  data = content.encode() if isinstance(content, str) else content
  unfinished, half = temporary(file), len(data) // 2
  try:
    with unfinished.open('wb') as f:
      f.write(data[:half])
      f.flush()
      fault(file)
      f.write(data[half:])
      f.flush()
      os.fsync(f.fileno())
    fault(file)
    move(unfinished, file)
  finally:
    unfinished.unlink(missing_ok=True)
  fault(file)
  sync(file.parent)


def move(old: Path, new: Path) -> None:
  """Gives a file or folder another name, at which no folder may be.

  Windows refuses that while anybody reads it, as a virus scanner does for a
  moment.
  """
  for seconds in _PAUSES if sys.platform == 'win32' else ():
    try:
      os.replace(old, new)
      return
    except PermissionError:
      time.sleep(seconds)
  os.replace(old, new)


def renew(file: Path, content: str) -> None:
  """Like `replace`, unless the file already has this content."""
  try:
    if file.read_bytes() == content.encode():
      return
  except OSError:
    pass
  replace(file, content)


def exists(file: Path) -> bool:
  """Whether a file is there; an error if that cannot be found out.

  `Path.exists` takes some errors for a no.
  """
  try:
    file.stat()
  except (FileNotFoundError, NotADirectoryError):
    return False
  return True


def is_lost(error: OSError) -> bool:
  """Whether an error of reading means that the file's content is lost."""
  return error.errno in _LOST


def unreadable(file: Path, error: OSError) -> UserError:
  """The error for a file that cannot be read now, but may be undamaged."""
  return UserError(
      f'Cannot read {file}: {error.strerror or error}.\nIt is left as it is; '
      'once it can be read, the same command continues.'
  )


def temporary(file: Path) -> Path:
  """The name of a file or folder until it is finished."""
  return file.with_name(f'.vfljax-{file.name}.tmp')


def remove_unfinished(folder: Path) -> None:
  """Removes unfinished files that a killed process left in a folder."""
  for stray in sorted(folder.glob('.vfljax-*.tmp')):
    remove(stray)


def remove(place: Path) -> None:
  """Removes a file, or a folder with its contents, if it exists."""
  if place.is_dir() and not place.is_symlink():
    shutil.rmtree(place)
  else:
    place.unlink(missing_ok=True)


def sync(path: Path) -> None:
  """Makes the disk store what was written to a file or directory (fsync).

  Windows opens no directories, and stores only what is open for writing.
  """
  windows = sys.platform == 'win32'
  if windows and path.is_dir():
    return
  descriptor = os.open(path, os.O_RDWR if windows else os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)


def set_aside(place: Path, file: Path, why: str, then: str) -> None:
  """Moves an unusable file into damaged/, and says so on stderr.

  Args:
    place: The work directory.
    file: A file or folder in it.
    why: The reason, such as 'is damaged: not JSON'.
    then: What happens next, such as 'its unit runs again'.
  """
  shelve(place, file)
  print(
      f'{file.relative_to(place).as_posix()} {why}. It is set aside in '
      f'{DAMAGED}/; {then}.', file=sys.stderr, flush=True,
  )


def shelve(place: Path, file: Path) -> None:
  """Moves a file or folder of the work directory `place` into damaged/."""
  shelf = place / DAMAGED
  shelf.mkdir(exist_ok=True)
  name = file.relative_to(place).as_posix().replace('/', '@')
  names = itertools.chain([name], (f'{name}-{i}' for i in itertools.count(2)))
  free = next(n for n in names if not os.path.lexists(shelf / n))
  move(file, shelf / free)


@contextlib.contextmanager
def writing(path: Path, flag: str = '--workdir') -> Iterator[None]:
  """Turns errors of the file system in the block into `UserError`.

  Args:
    path: The folder that is written to.
    flag: The flag with which the user can choose another place.
  """
  try:
    yield
  except OSError as e:
    where = e.filename or path
    if isinstance(e, (FileExistsError, NotADirectoryError)):
      raise UserError(
          f'Cannot write to {path}: {where} is a file, not a folder.\n'
          f'Move it, or choose another {flag}.'
      ) from e
    then = 'Make room or make it writable'
    if e.filename2 and sys.platform == 'win32':  # It could not get its name.
      where, then = e.filename2, 'Close the program that has it open'
    raise UserError(
        f'Cannot write to {path}: {e.strerror or e} ({where}).\n'
        f'{then}, or choose another {flag}.'
    ) from e


def fault(file: Path) -> None:
  """A moment of writing `file` at which tests can cause a fault."""
  if len(_FAULT) < 3:
    return
  pattern, number, what = _FAULT
  if fnmatchcase(str(file), pattern) and next(_MOMENTS) == int(number):
    if what == 'full':
      raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file))
    stop = dict(kill=signal.SIGKILL, term=signal.SIGTERM)[what]
    os.kill(os.getpid(), stop)
