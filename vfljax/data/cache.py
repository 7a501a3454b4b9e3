"""Keeps data sets as arrays on disk after the first read.

Each data set is a folder: one .npy file for each array, memory-mapped when it
is read again, and table.json with the rest, the arrays' checksums and a
checksum of its own. The folder's name depends on the loader, its code and
arguments, and on every file that it read (`stamps`). A damaged folder is
written again.
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

from vfljax import importing
from vfljax.data.files import at
from vfljax.data.table import Table

OLD = 86_400.0  # Seconds after which an unfinished folder counts as abandoned.
VERSION = 2  # Version of the layout; folders of other versions are not read.
ARRAYS = ('features', 'labels', 'test')
SMALL = 1 << 26  # Up to so many bytes, files are compared by their contents.
MOST = 1_000_000  # Files; a folder with more was given by mistake.
_BLOCK = 1 << 24
_WORK = '.vfljax-cache-', '.tmp'  # Prefix and suffix of unfinished folders.


def cached(
    load: Callable[..., Table], folder: str, name: str, path: str,
    options: dict[str, Any], whose: Callable[..., Table] | None = None,
) -> Table:
  """`load(path, **options)`, read from the cache in `folder` if possible.

  Args:
    load: Reads the data set. If its code is not in a file, as in a notebook, it
      is called every time, because changes of it would not be noticed.
    folder: The folder of all cached data sets, made if needed. If it cannot be
      written, nothing is cached, without a message.
    name: The data set's name.
    path: The file or folder that it reads. A folder of very many files, such as
      '/', is not cached.
    options: Its other arguments.
    whose: The loader whose code counts, if `load` only calls that.

  Returns:
    The table. From the cache, its arrays are read-only maps of the files.
  """
  code = code_of(whose or load)
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
      # If a file changed meanwhile, old and new parts may have been read.
      if own == key(name, path, options, code or 0):
        write(place, table)
    except OSError:  # A full or read-only disk costs time, not the experiment.
      pass
  return table


def key(
    name: str, path: str, options: dict[str, Any], code: int = 0
) -> str | None:
  """The folder's name: the data set's name and a digest of all that is read.

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

  It covers every file's path, size, inode, and the times of the last change of
  its content (mtime) and of anything (ctime). If the files have at most `SMALL`
  bytes together it also covers their contents, so every change is noticed. In
  larger files a change is missed if size and all times stay the same. On Unix
  ctime cannot be set, so that happens only if two changes are within one step
  of the clock (some milliseconds), or on a network file system without ctime.
  On Windows it happens if mtime is set back.

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
  """The table in a folder; `None` if it is missing or damaged."""
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
        tuple(about['holders']) if about.get('holders') else None,
    )
  except (
      OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError
  ):
    return None


def write(place: pathlib.Path, table: Table) -> None:
  """Writes a table into a folder, whole or not at all.

  Unfinished folders that a killed process left more than a day ago are removed.

  Raises:
    OSError: if it cannot be written.
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
        holders=[int(k) for k in table.holders or ()],
    )
    own = dict(version=VERSION, checksum=_sum_of(about), table=about)
    (made / 'table.json').write_text(json.dumps(own), 'utf-8')
    if place.exists():  # It is damaged: move it into the folder to be deleted.
      os.replace(place, pathlib.Path(work) / 'damaged')
    os.replace(made, place)


def _sweep(folder: pathlib.Path) -> None:
  """Removes old unfinished folders, as far as they can be removed."""
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
  """CRC-32 of the contents of table.json, however they are formatted."""
  return zlib.crc32(json.dumps(about, sort_keys=True).encode())


def code_of(load: Callable[..., Table]) -> int | None:
  """A checksum of a loader's code; `None` if its code is in no file."""
  while isinstance(load, functools.partial):
    load = load.func
  # Not `__module__`: `functools.wraps` copies that of what it wraps.
  name = getattr(load, '__globals__', {}).get('__name__')
  module = sys.modules.get(name or getattr(load, '__module__', ''))
  own = getattr(module, '__file__', None)
  return None if own is None else _checksum_of_code(own)


@functools.cache
def _checksum_of_code(own: str) -> int:
  """A checksum of one file, of all modules here, which it may import, and of
  the user's own files that it imports.
  """
  here, theirs = pathlib.Path(__file__).parent, set[pathlib.Path]()
  if own.endswith('.py'):
    importing.collect(pathlib.Path(own), theirs)
  files = sorted({*here.glob('*.py'), pathlib.Path(own), *theirs})
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
  """(path, size, mtime, ctime, inode); zeros for what is no readable file."""
  try:
    found = os.stat(file)
  except OSError:
    return file, 0, 0, 0, 0
  if not stat.S_ISREG(found.st_mode):
    return file, 0, 0, 0, 0
  return (
      file, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino
  )
