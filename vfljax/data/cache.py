"""Data sets as arrays on disk after the first read.

A folder a data set: one .npy file an array, mapped into memory when it is read
again, and table.json with the rest and a checksum of each array. What names the
folder is the loader, its code and arguments, and the size and time of every
file that it read from: a changed file is another data set. A folder that is
damaged is written anew.
"""
from collections.abc import Callable
import functools
import hashlib
import json
import os
import pathlib
import sys
import tempfile
from typing import Any
import zlib

import numpy as np

from vfljax.data.table import Table

VERSION = 1  # Of the layout; another one is not read.
ARRAYS = ('features', 'labels', 'test')
_BLOCK = 1 << 24


def cached(
    load: Callable[..., Table], folder: str, name: str, path: str,
    options: dict[str, Any],
) -> Table:
  """`load(path, **options)`, from the cache in `folder` if it is there, whole.

  Args:
    load: Reads the data set. One whose code is in no file, as in a notebook, is
      called every time: nobody could tell that it has changed.
    folder: Of all cached data sets; made if need be. A cache that cannot be
      written is not kept, and nobody is told.
    name: Of the data set.
    path: Of the file or folder that it reads.
    options: Its other arguments.

  Returns:
    The table; from the cache its features are a read-only map of the file.
  """
  code = code_of(load)
  if code is None:
    return load(path, **options)
  place = pathlib.Path(folder).expanduser() / key(name, path, options, code)
  table = read(place)
  if table is None:
    table = load(path, **options)
    try:
      write(place, table)
    except OSError:  # A full or read-only disk costs time, not the experiment.
      pass
  return table


def key(name: str, path: str, options: dict[str, Any], code: int = 0) -> str:
  """The folder's name: the data set's, and a digest of what would be read."""
  about = VERSION, code, sorted(options.items())
  digest = hashlib.sha256(repr(about).encode())
  # An encoder's tokenizer is read too.
  paths = [path, *(v for v in options.values() if isinstance(v, str))]
  for place in (pathlib.Path(p).expanduser() for p in paths if p):
    for file, size, time in _files(place):
      digest.update(f'{file}\0{size}\0{time}\0'.encode())
  return f'{name}-{digest.hexdigest()[:20]}'


def read(place: pathlib.Path) -> Table | None:
  """The table in a folder; `None` if it is not there or not whole."""
  try:
    about = json.loads((place / 'table.json').read_text('utf-8'))
    if about['version'] != VERSION:
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
  except (OSError, ValueError, KeyError, TypeError, AttributeError):
    return None


def write(place: pathlib.Path, table: Table) -> None:
  """Puts a table into a folder, whole or not at all.

  Raises:
    OSError: if the disk does not let it.
  """
  place.parent.mkdir(parents=True, exist_ok=True)
  with tempfile.TemporaryDirectory(dir=place.parent) as work:
    made = pathlib.Path(work) / 'made'
    made.mkdir()
    sums = {}
    for name in ARRAYS:
      array = getattr(table, name)
      if array is not None:
        np.save(made / f'{name}.npy', np.ascontiguousarray(array))
        sums[name] = checksum(made / f'{name}.npy')
    about = dict(
        version=VERSION, checksums=sums, names=table.names,
        classes=table.classes, groups=[int(g) for g in table.groups],
    )
    (made / 'table.json').write_text(json.dumps(about), 'utf-8')
    if place.exists():  # Damaged: out of the way, into what is deleted.
      os.replace(place, pathlib.Path(work) / 'damaged')
    os.replace(made, place)


def checksum(file: pathlib.Path) -> int:
  """CRC-32 of a file: against damage, not against forgery."""
  total = 0
  with file.open('rb') as raw:
    while block := raw.read(_BLOCK):
      total = zlib.crc32(block, total)
  return total


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


def _files(place: pathlib.Path) -> list[tuple[str, int, int]]:
  """(path, size, time of change) of a file, or of all below a folder."""
  if place.is_file():
    stat = place.stat()
    return [(str(place.resolve()), stat.st_size, stat.st_mtime_ns)]
  found = []
  for above, _, names in os.walk(place):
    for name in names:
      file = os.path.join(above, name)
      stat = os.stat(file)
      found.append((os.path.abspath(file), stat.st_size, stat.st_mtime_ns))
  return sorted(found)
