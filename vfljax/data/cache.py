"""Data sets as arrays on disk after the first read.

Each data set is a folder: one .npy file per array, memory-mapped when it is
read again, and table.json with the rest, a checksum of each array and one of
its own. The folder's name depends on the loader, its code and arguments, and
every file that it read, by `stamps`. A damaged folder is written anew.
"""
from collections.abc import Callable, Iterator
import functools
import hashlib
import itertools
import json
import os
import pathlib
import shutil
import stat
import sys
import tempfile
import time
from typing import Any
import zlib

import numpy as np

from vfljax.data.files import at
from vfljax.data.table import Table

OLD = 86_400.0  # Seconds after which an unfinished write has been abandoned.
VERSION = 2  # Of the layout; another one is not read.
ARRAYS = ('features', 'labels', 'test')
SMALL = 1 << 26  # Bytes of files that are read to see whether they changed.
MOST = 1_000_000  # Files; a folder with more was given by mistake.
_BLOCK = 1 << 24
_WORK = '.vfljax-cache-', '.tmp'  # Around the name of an unfinished write.


def cached(
    load: Callable[..., Table], folder: str, name: str, path: str,
    options: dict[str, Any],
) -> Table:
  """`load(path, **options)`, from the cache in `folder` if it is there, whole.

  Args:
    load: Reads the data set. If its code is in no file, as in a notebook, it is
      called every time, since a change of it would not be noticed.
    folder: The folder of all cached data sets, made if needed. If it cannot be
      written, nothing is cached, without a message.
    name: The data set's name.
    path: The file or folder that it reads. A folder of very many files, such as
      '/', is not cached.
    options: Its other arguments.

  Returns:
    The table; from the cache its features are a read-only map of the file.
  """
  code = code_of(load)
  own = None if code is None else key(name, path, options, code)
  if own is None:
    return load(path, **options)
  place = at(folder) / own
  table = read(place)
  if table is None:
    table = load(path, **options)
    if not isinstance(table, Table):  # The caller refuses it.
      return table
    try:
      # If a file was written to meanwhile, parts of both may have been read.
      if own == key(name, path, options, code or 0):
        write(place, table)
    except OSError:  # A full or read-only disk costs time, not the experiment.
      pass
  return table


def key(
    name: str, path: str, options: dict[str, Any], code: int = 0
) -> str | None:
  """The folder's name: the data set's, and a digest of what would be read.

  `None` if there are too many files to check.
  """
  about = VERSION, code, sorted(options.items())
  digest = hashlib.sha256(repr(about).encode())
  # An encoder's tokenizer is read too.
  paths = [path, *(v for v in options.values() if isinstance(v, str))]
  for text in filter(None, paths):
    try:
      found = stamps(at(text))
    except FileNotFoundError:  # A long text that is no path.
      continue
    if found is None:
      return None
    digest.update(found)
  return f'{name}-{digest.hexdigest()[:20]}'


def stamps(place: pathlib.Path) -> bytes | None:
  """A digest that changes if a file at or below `place` has changed.

  It holds path, size, inode and the times of the last change of content
  (mtime) and of anything (ctime) of every file. Of files that are at most
  `SMALL` bytes together it holds the content, too: these changes are always
  seen. In larger ones a change is not seen if it leaves size and all times as
  they were. On Unix ctime cannot be set, so that this takes a change within the
  clock's step (some milliseconds) of the change before, or a network's file
  system that keeps no ctime; on Windows it takes mtime set back.

  `None` if there are more than `MOST` files.
  """
  found = sorted(itertools.islice(_files(place), MOST + 1))
  if len(found) > MOST:
    return None
  digest = hashlib.sha256(repr(found).encode())
  if sum(size for _, size, *_ in found) <= SMALL:
    for file, size, *_ in found:
      try:
        if size:  # Pipes and devices have none.
          digest.update(hashlib.sha256(pathlib.Path(file).read_bytes()).digest())
      except OSError:  # A file that cannot be read.
        digest.update(b'\0')
  return digest.digest()


def read(place: pathlib.Path) -> Table | None:
  """The table in a folder; `None` if it is not there or not whole."""
  try:
    own = json.loads((place / 'table.json').read_text('utf-8'))
    about = own['table']
    if own['version'] != VERSION or own['checksum'] != _sum_of(about):
      return None
    arrays: dict[str, Any] = dict.fromkeys(ARRAYS)
    for name, sum_ in about['checksums'].items():
      file = place / f'{name}.npy'
      if checksum(file) != sum_:
        return None
      arrays[name] = np.load(file, mmap_mode='r', allow_pickle=False)
    return Table(
        arrays['features'], arrays['labels'], tuple(about['names']),
        tuple(about['classes']), tuple(about['groups']), arrays['test'],
    )
  except (
      OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError
  ):
    return None


def write(place: pathlib.Path, table: Table) -> None:
  """Puts a table into a folder, whole or not at all.

  What a process that was stopped here has left beside it a day ago goes.

  Raises:
    OSError: if the disk does not let it.
  """
  place.parent.mkdir(parents=True, exist_ok=True)
  _sweep(place.parent)
  with tempfile.TemporaryDirectory(_WORK[1], _WORK[0], place.parent) as work:
    made = pathlib.Path(work) / 'made'
    made.mkdir()
    sums = {}
    for name in ARRAYS:
      array = getattr(table, name)
      if array is not None:
        np.save(made / f'{name}.npy', np.ascontiguousarray(array))
        sums[name] = checksum(made / f'{name}.npy')
    about = dict(
        checksums=sums, names=table.names, classes=table.classes,
        groups=[int(g) for g in table.groups],
    )
    own = dict(version=VERSION, checksum=_sum_of(about), table=about)
    (made / 'table.json').write_text(json.dumps(own), 'utf-8')
    if place.exists():  # Damaged: out of the way, into what is deleted.
      os.replace(place, pathlib.Path(work) / 'damaged')
    os.replace(made, place)


def _sweep(folder: pathlib.Path) -> None:
  """Removes unfinished writes that are old; what cannot be removed stays."""
  start, end = _WORK
  for work in folder.glob(f'{start}*{end}'):
    try:
      found = work.lstat()
    except OSError:  # Another process was quicker.
      continue
    if stat.S_ISDIR(found.st_mode) and time.time() - found.st_mtime > OLD:
      shutil.rmtree(work, ignore_errors=True)


def checksum(file: pathlib.Path) -> int:
  """CRC-32 of a file: against damage, not against forgery."""
  total = 0
  with file.open('rb') as raw:
    while block := raw.read(_BLOCK):
      total = zlib.crc32(block, total)
  return total


def _sum_of(about: Any) -> int:
  """CRC-32 of what table.json says, however it is written."""
  return zlib.crc32(json.dumps(about, sort_keys=True).encode())


def code_of(load: Callable[..., Table]) -> int | None:
  """Changes when a loader does; `None` if its code is in no file."""
  while isinstance(load, functools.partial):
    load = load.func
  module = sys.modules.get(getattr(load, '__module__', ''))
  own = getattr(module, '__file__', None)
  return None if own is None else _checksum_of_code(own)


@functools.cache
def _checksum_of_code(own: str) -> int:
  """Of the loaders here, on which those of others may build, and one more."""
  here = pathlib.Path(__file__).parent
  files = sorted({*here.glob('*.py'), pathlib.Path(own)})
  return zlib.crc32(b''.join(file.read_bytes() for file in files))


def _files(place: pathlib.Path) -> Iterator[tuple[str, int, int, int, int]]:
  """(path, size, mtime, ctime, inode) of a file, or of all below a folder."""
  if place.is_file():
    yield _stamp(str(place.resolve()))
    return
  for above, _, names in os.walk(place):
    for name in names:
      yield _stamp(os.path.abspath(os.path.join(above, name)))


def _stamp(file: str) -> tuple[str, int, int, int, int]:
  """Of a link that leads nowhere, and of what is no file, nothing but that."""
  try:
    found = os.stat(file)
  except OSError:
    return file, 0, 0, 0, 0
  if not stat.S_ISREG(found.st_mode):
    return file, 0, 0, 0, 0
  return (
      file, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino
  )
