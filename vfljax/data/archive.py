"""Reads NumPy archives (.npz) whose headers and sizes may be wrong."""
from collections.abc import Sequence
import math
import pathlib
import zipfile

import numpy as np

from vfljax.data.files import fits, one_line

_OBJECTS = (
    'has Python objects; plain arrays have numbers by x.astype(float), and '
    'words by x.astype(str).'
)


def arrays(file: pathlib.Path, names: Sequence[str]) -> dict[str, np.ndarray]:
  """Name -> array of a NumPy archive; empty for others than `names`.

  Raises:
    ValueError: if it is damaged, has Python objects, or does not fit into
      memory.
  """
  try:
    with zipfile.ZipFile(file) as archive:
      members = [one for one in archive.infolist() if not one.is_dir()]
      found = [one.filename.removesuffix('.npy') for one in members]
      if len(set(found)) < len(found):
        raise ValueError('two arrays have one name')
      fits(2 * sum(one.file_size for one in members), f'What {file} holds')
      return {
          name: _array(archive, one) if name in names else np.empty(0)
          for name, one in zip(found, members)
      }
  except Exception as error:  # Archives, compression and headers each raise
    # their own errors, mostly about zip headers; only the system's are quoted.
    why = f' ({one_line(error)})' if isinstance(error, OSError) else ''
    if any(own in str(error) for own in (' GiB', _OBJECTS)):
      raise
    raise ValueError(
        f'{file} is not a whole .npz archive of plain arrays{why}; get or write'
        ' it again.'
    ) from error


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
  """Reads one array, which must fill its part of the archive.

  Raises:
    ValueError: if it does not. The checksum at the end of a longer part would
      not be read.
  """
  with archive.open(member) as raw:
    # numpy.load would allocate whatever size a damaged header claims.
    shape, _, dtype = _header(raw)
    if dtype.hasobject:
      raise ValueError(f'{member.filename} {_OBJECTS}')
    if math.prod(shape) * dtype.itemsize > member.file_size:
      raise ValueError('an array is larger than its part of the archive')
  with archive.open(member) as raw:
    found = np.lib.format.read_array(raw, allow_pickle=False)
    if raw.read(1):
      raise ValueError('an array is smaller than its part of the archive')
  return found


def _header(raw) -> tuple:
  """(shape, Fortran order, dtype) from an array's header."""
  version = np.lib.format.read_magic(raw)
  if version == (1, 0):
    return np.lib.format.read_array_header_1_0(raw)
  # Version 3.0 differs from 2.0 only for structured arrays.
  return np.lib.format.read_array_header_2_0(raw)
