"""Finds the file of a data set, or says in one line how to get it.

What is not an ordinary file is refused before it is opened: a device has no
end, and a pipe waits for whoever writes to it.
"""
from collections.abc import Iterator
import codecs
import contextlib
import os
import pathlib
import stat
from typing import Any

SAVE = 'save the file as UTF-8.'
# Of loaders that have the option.
ENCODING = (
    'save the file as UTF-8, or say what it is, as in'
    ' --config.data.options=encoding=latin-1'
)
# Of a container's memory, in both versions of control groups.
LIMITS = (
    '/sys/fs/cgroup/memory.max', '/sys/fs/cgroup/memory/memory.limit_in_bytes',
)
LONGEST = 300  # Letters of what others say, and of what a file holds.


def find(path: str, usual: str, how: str) -> pathlib.Path:
  """The file at `path`, or the one called `usual` in the folder `path`.

  Args:
    path: A file or a folder; '~' is the home folder.
    usual: The file's customary name; '' where it has none.
    how: One sentence on where to get the file or put it.

  Raises:
    FileNotFoundError: if it is not there or no ordinary file; the message ends
      with `how`.
  """
  if not path:
    raise FileNotFoundError(f'No path to {usual or "a file"} given. {how}')
  place = at(path)
  if usual and place.is_dir():
    place = place / usual
  ordinary(place, how)
  return place


def folder(path: str, how: str) -> pathlib.Path:
  """The folder at `path`.

  Raises:
    FileNotFoundError: if it is not there; the message ends with `how`.
  """
  if not path:
    raise FileNotFoundError(f'No path to a folder given. {how}')
  place = at(path)
  if not place.is_dir():
    raise FileNotFoundError(f'{place} is not a folder. {how}')
  return place


def at(path: str) -> pathlib.Path:
  """`path` with its '~' as the home folder.

  Raises:
    FileNotFoundError: if there is no such user, or no file can be called so.
  """
  parts = os.fsencode(path).split(b'/')
  if '\0' in path or max(map(len, parts)) > 255 or len(path) > 4000:
    raise FileNotFoundError(f'No file can be called {brief(path)}.')
  try:
    return pathlib.Path(path).expanduser()
  except RuntimeError as error:
    raise FileNotFoundError(f'{brief(path)}: {one_line(error)}') from error


def ordinary(place: pathlib.Path, how: str) -> None:
  """Passes if there is an ordinary file, which nothing is read of.

  Raises:
    FileNotFoundError: if not; the message ends with `how`.
  """
  try:
    mode = place.stat().st_mode
  except (FileNotFoundError, NotADirectoryError):
    raise FileNotFoundError(f'{place} is not there. {how}') from None
  if stat.S_ISDIR(mode):
    raise FileNotFoundError(f'{place} is a folder, not a file. {how}')
  if not stat.S_ISREG(mode):
    raise FileNotFoundError(
        f'{place} is a device, a pipe or a socket, not a file. {how}'
    )


@contextlib.contextmanager
def reading(file: pathlib.Path | str, fault: str) -> Iterator[None]:
  """For readers that are not ours, which raise whatever they met.

  Args:
    file: What is read.
    fault: What is said of it: 'cannot be read as CSV'.

  Raises:
    ValueError: (one line) instead of anything that is raised inside.
  """
  try:
    yield
  except BaseException as error:
    # A panic of a library in Rust is no `Exception`.
    panic = type(error).__name__ == 'PanicException'
    if not panic and not isinstance(error, Exception):
      raise
    raise ValueError(f'{file} {fault}: {one_line(error)}') from error


def lines(
    file: pathlib.Path, encoding: str = 'utf-8', how: str = SAVE
) -> Iterator[tuple[int, str]]:
  """(number from 1, text without its end) of every line of a text file.

  Args:
    file: What is read.
    encoding: A name that Python knows, of one in which ASCII is as it is.
    how: What to do about a file that is in another one.

  Raises:
    ValueError: (one line) for another encoding, and for what is not in it.
  """
  own = codec(encoding)
  utf8 = own == 'utf-8'
  with file.open('rb') as raw:
    for number, line in enumerate(raw, start=1):
      try:
        text = line.decode('utf-8-sig' if utf8 and number == 1 else own)
      except UnicodeDecodeError as error:
        raise ValueError(
            f'{file}, line {number}: not {own.upper()} from byte'
            f' {error.start + 1} on'
            f' ({brief(line[error.start : error.start + 8])}); {how}'
        ) from None
      yield number, text.rstrip('\r\n')


def codec(encoding: str, ascii_alike: bool = True) -> str:
  """Python's name of an encoding.

  Args:
    encoding: Any of its names.
    ascii_alike: Whether its lines have to end as those of ASCII do.

  Raises:
    ValueError: (one line) if it is none.
  """
  try:
    same = '\t\n01aZ'.encode(encoding) == b'\t\n01aZ'
    found = codecs.lookup(encoding).name
  except (LookupError, ValueError):
    same, found = False, ''
  if not (same if ascii_alike else found and _is_text(found)):
    rest = ' in which ASCII is as it is' if ascii_alike else ''
    raise ValueError(
        f'encoding must be one{rest}, like utf-8, latin-1 or cp1252; got'
        f' {brief(encoding)}.'
    )
  return found


def _is_text(encoding: str) -> bool:
  """Whether it is of texts: Python has some that are of bytes."""
  try:
    return isinstance('a'.encode(encoding), bytes)
  except (LookupError, ValueError):
    return False


def fits(size: int, what: str) -> None:
  """Passes if so many bytes are in this machine.

  Raises:
    ValueError: (one line) if not.
  """
  most = memory()
  if size > most:
    raise ValueError(
        f'{what} would take {size / 2**30:.3g} GiB; this machine has '
        f'{most / 2**30:.3g} GiB of memory.'
    )


def memory() -> int:
  """Bytes of memory; where a system does not tell, none is too much.

  A container may have less than its machine: Linux ends who takes more.
  """
  try:
    most = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
  except (AttributeError, ValueError, OSError):
    most = 1 << 62
  for place in LIMITS:
    try:
      most = min(most, int(pathlib.Path(place).read_text('ascii')))
    except (OSError, ValueError):  # There is none, or it is 'max'.
      pass
  return most


def one_line(error: BaseException) -> str:
  """The first line of an error's message, for use inside another message."""
  first = (str(error).strip().splitlines() or [type(error).__name__])[0]
  return first if len(first) <= LONGEST else f'{first[:LONGEST]}...'


def brief(value: Any, most: int = 60) -> str:
  """`repr(value)`, cut off: what a file or a person holds can be long."""
  try:
    text = repr(value)
  except ValueError:  # Python does not print integers of 5000 digits.
    text = f'a huge {type(value).__name__}'
  return text if len(text) <= most else f'{text[:most]}...'
