"""Finds the file of a data set, or says in one line how to get it.

Anything but an ordinary file is refused before it is opened: a device has no
end, and a pipe waits for a process that writes to it.
"""
from collections.abc import Iterator
import codecs
import contextlib
import os
import pathlib
import stat
from typing import Any

SAVE = 'save the file as UTF-8.'
# For loaders with the option `encoding`.
ENCODING = (
    'save the file as UTF-8, or type its encoding, as in'
    ' --config.data.options=encoding=latin-1'
)
# Limits of a container's memory, in both versions of control groups.
LIMITS = (
    '/sys/fs/cgroup/memory.max', '/sys/fs/cgroup/memory/memory.limit_in_bytes',
)
LONGEST = 300  # Characters of a quoted message or of a file's contents.


def find(path: str, usual: str, how: str) -> pathlib.Path:
  """The file at `path`, or the one called `usual` in the folder `path`.

  Args:
    path: A file or a folder; '~' is the home folder.
    usual: The file's customary name; '' if it has none.
    how: One sentence on where to get the file or put it.

  Raises:
    FileNotFoundError: if it is missing or no ordinary file; the message ends
      with `how`.
  """
  if not path:
    raise FileNotFoundError(f'No path to {usual or "a file"} given. {how}')
  place = at(path)
  if usual and place.is_dir():
    place = place / usual
  ordinary(place, how)
  return place


def bare(path: str) -> str:
  """Names without their folders: 'bank.csv;telecom.csv', of several files."""
  return ';'.join(
      os.path.basename(os.path.normpath(one)) for one in parted(path)
  )


def parted(path: str) -> list[str]:
  """The files of a path: those between ';', unless a file has such a name."""
  if os.path.isfile(os.path.expanduser(path)):
    return [path]
  return [one.strip() for one in path.split(';') if one.strip()]


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
    FileNotFoundError: if there is no such user, or no file can have that name.
  """
  parts = os.fsencode(path.replace(os.sep, '/')).split(b'/')
  if '\0' in path or max(map(len, parts)) > 255 or len(path) > 4000:
    raise FileNotFoundError(f'No file can have the name {brief(path)}.')
  try:
    return pathlib.Path(path).expanduser()
  except RuntimeError as error:
    raise FileNotFoundError(f'{brief(path)}: {one_line(error)}') from error


def ordinary(place: pathlib.Path, how: str) -> None:
  """Checks that there is an ordinary file, without opening it.

  Raises:
    FileNotFoundError: if there is none; the message ends with `how`.
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
  """Turns any error of another library's reader into one line.

  Args:
    file: The file that the block reads.
    fault: What the message says about it: 'cannot be read as CSV'.

  Raises:
    ValueError: (one line) in place of any error in the block.
  """
  try:
    yield
  except BaseException as error:
    # A panic in a Rust library is a BaseException, but no `Exception`.
    panic = type(error).__name__ == 'PanicException'
    if not panic and not isinstance(error, Exception):
      raise
    raise ValueError(f'{file} {fault}: {one_line(error)}') from error


def lines(
    file: pathlib.Path, encoding: str = 'utf-8', how: str = SAVE
) -> Iterator[tuple[int, str]]:
  """(number from 1, text without its end) of every line of a text file.

  Args:
    file: The file to read.
    encoding: A name that Python knows, of an encoding that contains ASCII.
    how: What to do if the file has another encoding, for the message.

  Raises:
    ValueError: (one line) for an unsuitable encoding, UTF-16, or a line that is
      not in the encoding.
  """
  own = codec(encoding)
  utf8 = own == 'utf-8'
  with file.open('rb') as raw:
    for number, line in enumerate(raw, start=1):
      wide = line[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
      if number == 1 and wide and (utf8 or b'\0' in line):
        raise ValueError(f'{file} is UTF-16; {SAVE}')
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
    ascii_alike: Whether it must contain ASCII, so that lines end as in ASCII.

  Raises:
    ValueError: (one line) if Python does not know it, or it does not contain
      ASCII but must.
  """
  try:
    same = '\t\n01aZ'.encode(encoding) == b'\t\n01aZ'
    found = codecs.lookup(encoding).name
  except (LookupError, ValueError):
    same, found = False, ''
  if not (same if ascii_alike else found):
    rest = ' and contains ASCII' if ascii_alike else ''
    raise ValueError(
        f'encoding must be one that Python knows{rest}, such as utf-8, latin-1'
        f' or cp1252; got {brief(encoding)}.'
    )
  return found


def fits(size: int, what: str) -> None:
  """Checks that `size` bytes fit into this machine's memory.

  Args:
    size: Number of bytes.
    what: What needs them, as the message's subject.

  Raises:
    ValueError: (one line) if they do not fit.
  """
  most = memory()
  if size > most:
    raise ValueError(
        f'{what} would take {size / 2**30:.3g} GiB; this machine has '
        f'{most / 2**30:.3g} GiB of memory.'
    )


def memory() -> int:
  """Bytes of memory of this machine or container; 2^62 if unknown.

  A container may have less than its machine, and Linux ends a process that
  takes more.
  """
  try:
    most = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
  except (AttributeError, ValueError, OSError):
    most = 1 << 62
  for place in LIMITS:
    try:
      most = min(most, int(pathlib.Path(place).read_text('ascii')))
    except (OSError, ValueError):  # There is no limit, or it is 'max'.
      pass
  return most


def one_line(error: BaseException) -> str:
  """The first line of an error's message, for use inside another message."""
  first = (str(error).strip().splitlines() or [type(error).__name__])[0]
  return first if len(first) <= LONGEST else f'{first[:LONGEST]}...'


def brief(value: Any, most: int = 60) -> str:
  """`repr(value)`, cut off after `most` characters."""
  try:
    text = repr(value)
  except ValueError:  # Python does not print integers of 5000 digits.
    text = f'a huge {type(value).__name__}'
  return text if len(text) <= most else f'{text[:most]}...'
