"""A finished unit's files: rows and timing as JSON, curves as arrays.

  parts/U.npz   curves over the epochs, written first
  parts/U.json  rows, timing and two digests; it exists if and only if U is done

The SHA-256 digests are of the curves' file, and of the JSON's own bytes with
zeros in place of the digest. So damage to either file is found before it is
used. Version 0.1 wrote no digests; its parts are accepted if their contents
have the right form.
"""
from collections.abc import Mapping, Sequence
import contextlib
import hashlib
import io
import json
import math
from pathlib import Path
import re
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from vfljax.runner.machine import disk

FIELDS = (
    'experiment', 'dataset', 'algorithm', 'defense', 'strength', 'attack',
    'seed', 'metric', 'split', 'value',
)
_TEXT, _NUMBER, _NOTHING = (str,), (int, float), (type(None),)
# Types in the order of `FIELDS`; a bool is none of them.
_TYPES = (
    _TEXT, _TEXT, _TEXT, _TEXT, _NUMBER + _NOTHING, _TEXT + _NOTHING, (int,),
    _TEXT, _TEXT + _NOTHING, _NUMBER + _NOTHING,
)
_BLANK = 64 * '0'
# On Windows these are devices, also with a suffix: 'aux.json'.
_DEVICES = re.compile(r'(con|prn|aux|nul|com\d|lpt\d)(\.|$)', re.IGNORECASE)
_STRICT: dict[str, Any] = dict(ensure_ascii=False, allow_nan=False)
_LINE = json.JSONEncoder(**_STRICT)  # json.dumps would make one for each line.


class Damaged(Exception):
  """A file cannot be used; the message says why."""


class Finished(NamedTuple):
  """A finished unit's results, as in `store.Workdir.save`."""

  unit: str
  rows: Sequence[Mapping]
  timing: Mapping
  curves: Mapping | None = None


def write(
    place: Path, unit: str, rows: Sequence[Mapping], timing: Mapping,
    curves: Mapping | None,
) -> None:
  """Saves a unit in the work directory `place`, see `store.Workdir.save`.

  Raises:
    OSError: if it cannot be written; the unit is then not done.
    ValueError: if a row's keys are not `FIELDS`.
  """
  part = dict(unit=unit, rows=[_row(r) for r in rows], timing=plain(timing))
  digest = None
  if curves:
    arrays: dict[str, Any] = {
        k: np.asarray(v, np.float32) for k, v in curves.items()
    }
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    digest = _sha256(buffer.getvalue())
    disk.replace(file(place, unit, '.npz'), buffer.getvalue())
  text = sealed(dict(curves=digest) | part)  # Indenting would take much longer.
  disk.replace(file(place, unit, '.json'), text)


def read(place: Path, unit: str) -> dict:
  """A finished unit's 'rows' and 'timing'.

  Raises:
    Damaged: if they are not what was written.
    UserError: if the file cannot be read now.
  """
  part = opened(file(place, unit, '.json'))
  known = {'sha256', 'curves'} if 'sha256' in part else set()
  if set(part) != {'unit', 'rows', 'timing'} | known:
    raise Damaged(f'it has the fields {", ".join(map(str, part))}')
  if part['unit'] != unit:
    raise Damaged(f'it is of the unit {part["unit"]!r}')
  if not known:  # Version 0.1 wrote no digest, so the form is checked.
    rows, timing = part['rows'], part['timing']
    if not (isinstance(rows, list) and all(map(is_row, rows))):
      raise Damaged('its rows do not have the right form')
    if not isinstance(timing, dict):
      raise Damaged('it has no timing')
  return part


def curves(place: Path, unit: str) -> dict[str, np.ndarray]:
  """A finished unit's curves; {} if it has none.

  Raises:
    Damaged: if they, or the file with their digest, are damaged.
    UserError: if a file cannot be read now.
  """
  part, kept = read(place, unit), file(place, unit, '.npz')
  digested = 'sha256' in part
  if part['curves'] is None if digested else not kept.exists():
    return {}
  try:
    content = _content(kept)
  except Damaged as why:
    raise Damaged(f'{kept.name}: {why}') from None
  if digested and _sha256(content) != part['curves']:
    raise Damaged(f'{kept.name} is not what was written')
  try:
    with np.load(io.BytesIO(content)) as arrays:
      # A damaged header might claim more numbers than fit into memory.
      if not digested and arrays.zip.testzip():
        raise ValueError('a checksum is wrong')
      return dict(arrays)
  except Exception as e:  # A broken archive may raise many kinds of errors.
    # A file with the right digest is whole, so this error is something else.
    if digested or isinstance(e, MemoryError):
      raise
    raise Damaged(f'{kept.name} is no archive of arrays') from e


def sealed(content: Mapping, **options) -> str:
  """`content` as JSON that contains the digest of its own bytes."""
  text = dumps({'sha256': _BLANK} | dict(content), **options)
  return text.replace(_BLANK, _sha256(text.encode()), 1)


def opened(place: Path) -> dict:
  """Reads a file that `sealed` made, or a JSON object without a digest.

  Raises:
    Damaged: if it is neither.
    UserError: if the file cannot be read now.
  """
  raw = _content(place)
  try:
    content = json.loads(raw)
  except (ValueError, RecursionError):
    raise Damaged('not JSON') from None
  if not isinstance(content, dict):
    raise Damaged('no object')
  seal = content.get('sha256', '')
  if not isinstance(seal, str):
    raise Damaged('its digest is none')
  if 'sha256' in content:
    blank = raw.replace(seal.encode(), _BLANK.encode(), 1)
    if not seal or _sha256(blank) != seal:
      raise Damaged('it is not what was written')
  return content


def done(place: Path, unit: str) -> bool:
  """Whether a unit's results are saved."""
  return disk.exists(file(place, unit, '.json'))


def strays(place: Path, units: Sequence[str]) -> list[str]:
  """Finished units in `place` that are not among `units`.

  A file that this module did not write does not count.
  """
  known, found = {file_name(unit) for unit in units}, []
  for there in sorted((place / 'parts').glob('*.json')):
    if there.stem in known:
      continue
    with contextlib.suppress(Damaged):
      unit = opened(there).get('unit')
      if isinstance(unit, str) and file_name(unit) == there.stem:
        found.append(unit)
  return found


def file(place: Path, unit: str, suffix: str) -> Path:
  """A unit's file in the work directory `place`."""
  return place / 'parts' / (file_name(unit) + suffix)


def file_name(unit: str) -> str:
  """A unique file name for a unit, without folders and without a first dot."""
  name = quote(unit, safe=' /,+=').replace('/', '@')
  # Dots are fine in '0.1', but not in '..' or in a name of unfinished files.
  name = name.replace('.tmp', '%2Etmp')
  if name.startswith('.') or _DEVICES.match(name):
    name = f'%{ord(name[0]):02X}{name[1:]}'
  return name


def plain(x: Any) -> Any:
  """`x` for JSON: floats with 7 significant digits, None for NaN, infinity."""
  if isinstance(x, Mapping):
    return {str(k): plain(v) for k, v in x.items()}
  if isinstance(x, (list, tuple)):
    return [plain(v) for v in x]
  if hasattr(x, 'tolist'):  # Arrays and scalars of NumPy and JAX.
    return plain(x.tolist())
  if isinstance(x, float):
    # Adding zero turns -0.0 into 0.0.
    return float(f'{x:.7g}') + 0.0 if math.isfinite(x) else None
  return x


def dumps(x: Any, **options) -> str:
  """JSON in one line, or in several with `indent`, with a newline at the end.
  """
  if options:
    return json.JSONEncoder(**_STRICT, **options).encode(x) + '\n'
  return _LINE.encode(x) + '\n'


def lines(text: str) -> list[Any]:
  """The values in a text of lines that `dumps` made.

  They are parsed all at once, which is faster.

  Raises:
    ValueError: if they are not JSON, or a line is not one value.
  """
  # Not `splitlines`: it also splits at characters that a file name may have.
  each = [line for line in text.split('\n') if line]
  found = json.loads(f'[{",".join(each)}]')
  if len(found) != len(each):
    raise ValueError('A line is not one value.')
  return found


def _row(row: Mapping) -> dict:
  if set(row) != set(FIELDS):
    wrong = sorted(set(row) ^ set(FIELDS))
    raise ValueError(f'A row has these fields too many, or lacks them: {wrong}')
  return {field: plain(row[field]) for field in FIELDS}


def is_row(row: Any) -> bool:
  """Whether it has the right fields in order, with values of right types."""
  if not (isinstance(row, dict) and tuple(row) == FIELDS):
    return False
  for value, types in zip(row.values(), _TYPES):
    kind = type(value)
    if kind not in types or kind is float and not math.isfinite(value):
      return False
  return True


def _content(place: Path) -> bytes:
  """A file's bytes; raises `Damaged` only if they are lost for good."""
  try:
    return place.read_bytes()
  except OSError as e:
    if disk.is_lost(e):
      raise Damaged(e.strerror or str(e)) from e
    raise disk.unreadable(place, e) from e


def _sha256(content: bytes) -> str:
  return hashlib.sha256(content).hexdigest()
