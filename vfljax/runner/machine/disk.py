"""Files that are there whole or not at all, in a folder that one process has.

What the file system refuses becomes a message for the person at the command
line. Unfinished writes are called '.vfljax-<name>.tmp', so that they can be
told from other people's files.

For the tests in tests/faults: VFLJAX_FAULT='<files>:<n>:<what>' makes something
go wrong at the n-th moment, from 1, of writing files whose path matches the
pattern. `replace` and checkpoints have three moments each: half is written, all
is but for the name, the name is given. What goes wrong is 'kill' (SIGKILL),
'term' (SIGTERM) or 'full' (the disk). VFLJAX_FAULT='*/parts/*.json:2:kill'
kills the process before the first finished unit counts.
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
from collections.abc import Iterator

import filelock

from vfljax.runner.errors import UserError

DAMAGED = 'damaged'  # The folder for what cannot be used.
# What is said of a file that is gone, is a folder or can never be read again.
# All else may pass: no permission, no descriptors left, a server that is away.
_LOST = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EIO)
_FAULT = os.environ.get('VFLJAX_FAULT', '').rsplit(':', 2)
_MOMENTS = itertools.count(1)


@contextlib.contextmanager
def alone(path: str | os.PathLike, seconds: float = 0) -> Iterator[None]:
  """Keeps a second process out of a work directory while the block runs.

  The lock is the operating system's: it goes with the process, however that
  ends.

  Args:
    path: The work directory.
    seconds: To wait for another process to leave.

  Raises:
    UserError: if another process is in it, or the directory cannot be made.
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
          'choose another --workdir.'
      ) from None
  try:
    yield
  finally:
    lock.release()


def write_text(file: Path, text: str, flag: str = '--workdir') -> None:
  """Writes a file, by default of a work directory, in one step.

  Args:
    flag: The one to say where else, if it is another.

  Raises:
    UserError: if the disk does not take it.
  """
  with writing(file.parent, flag):
    replace(file, text)


def replace(file: Path, content: str | bytes) -> None:
  """Writes a file in one step: readers and kills see the old or the new."""
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
    os.replace(unfinished, file)
  finally:
    unfinished.unlink(missing_ok=True)
  fault(file)
  sync(file.parent)


def renew(file: Path, content: str) -> None:
  """As `replace`, unless that is what the file says."""
  try:
    if file.read_bytes() == content.encode():
      return
  except OSError:
    pass
  replace(file, content)


def is_lost(error: OSError) -> bool:
  """Whether a file that is read so will never be what was written."""
  return error.errno in _LOST


def unreadable(file: Path, error: OSError) -> UserError:
  """Of a file that may well be whole, and is therefore left where it is."""
  return UserError(
      f'Cannot read {file}: {error.strerror or error}.\nIt is left as it is; '
      'once it can be read, the same command continues.'
  )


def temporary(file: Path) -> Path:
  """What a file or folder is called until it is whole."""
  return file.with_name(f'.vfljax-{file.name}.tmp')


def remove_unfinished(folder: Path) -> None:
  """Removes what a process that was killed had begun to write right there."""
  for stray in sorted(folder.glob('.vfljax-*.tmp')):
    remove(stray)


def remove(place: Path) -> None:
  """Removes a file, or a folder with all that is in it, if it is there."""
  if place.is_dir() and not place.is_symlink():
    shutil.rmtree(place)
  else:
    place.unlink(missing_ok=True)


def sync(path: Path) -> None:
  """Asks the disk to keep what was written to a file or directory."""
  descriptor = os.open(path, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)


def set_aside(place: Path, file: Path, why: str, then: str) -> None:
  """Moves what cannot be used out of the way, and says so on stderr.

  Args:
    place: The work directory.
    file: A file or folder in it.
    why: 'is damaged: not JSON'.
    then: What happens now: 'its unit runs again'.
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
  os.rename(file, shelf / free)


@contextlib.contextmanager
def writing(path: Path, flag: str = '--workdir') -> Iterator[None]:
  """Turns what the file system refuses into a message for the user.

  Args:
    path: Where to.
    flag: The one to say where else.
  """
  try:
    yield
  except OSError as e:
    where = e.filename or path
    if isinstance(e, (FileExistsError, NotADirectoryError)):
      raise UserError(
          f'Cannot write to {path}: {where} is a file and no folder.\n'
          f'Move it, or choose another {flag}.'
      ) from e
    raise UserError(
        f'Cannot write to {path}: {e.strerror or e} ({where}).\n'
        f'Make room or make it writable, or choose another {flag}.'
    ) from e


def fault(file: Path) -> None:
  """A moment of writing `file`, at which tests have something go wrong."""
  if len(_FAULT) < 3:
    return
  pattern, number, what = _FAULT
  if fnmatchcase(str(file), pattern) and next(_MOMENTS) == int(number):
    if what == 'full':
      raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file))
    stop = dict(kill=signal.SIGKILL, term=signal.SIGTERM)[what]
    os.kill(os.getpid(), stop)
