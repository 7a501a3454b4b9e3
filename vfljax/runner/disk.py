"""Files that are there whole or not at all, in a folder that one process has.

What the file system refuses becomes a message for the person at the command
line. Names that end in '.tmp' are unfinished writes.
"""
import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import filelock

from vfljax.runner.errors import UserError


@contextlib.contextmanager
def alone(path: str | os.PathLike) -> Iterator[None]:
  """Keeps a second process out of a work directory while the block runs.

  The lock is the operating system's: it goes with the process, however that
  ends.

  Raises:
    UserError: if another process is in it, or the directory cannot be made.
  """
  place = Path(path).absolute()
  with writing(place):
    place.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(place / '.lock')
    try:
      lock.acquire(blocking=False)
    except filelock.Timeout:
      raise UserError(
          f'Another process is running in {place}.\nWait until it is done, or '
          'choose another --workdir.'
      ) from None
  try:
    yield
  finally:
    lock.release()


def write_text(file: Path, text: str) -> None:
  """Writes a file of a work directory in one step.

  Raises:
    UserError: if the disk does not take it.
  """
  with writing(file.parent):
    replace(file, text)


def replace(file: Path, content: str | bytes) -> None:
  """Writes a file in one step: readers and kills see the old or the new."""
  data = content.encode() if isinstance(content, str) else content
  temporary = file.with_name(file.name + '.tmp')
  try:
    with temporary.open('wb') as f:
      f.write(data)
      f.flush()
      os.fsync(f.fileno())
    os.replace(temporary, file)
  finally:
    temporary.unlink(missing_ok=True)
  sync(file.parent)


def sync(path: Path) -> None:
  """Asks the disk to keep what was written to a file or directory."""
  descriptor = os.open(path, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)


def remove_unfinished(path: Path) -> None:
  """Removes what a process that was killed had begun to write below `path`."""
  for stray in sorted(path.rglob('*.tmp')):
    if stray.is_dir():
      shutil.rmtree(stray)
    else:
      stray.unlink(missing_ok=True)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
  """Turns what the file system refuses into a message for the user."""
  try:
    yield
  except OSError as e:
    where = e.filename or path
    raise UserError(
        f'Cannot write to {path}: {e.strerror or e} ({where}).\n'
        'Make room or make it writable, or choose another --workdir.'
    ) from e
