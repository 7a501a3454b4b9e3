"""Checkpoints of a unit in progress: arrays written by Orbax, with digests.

A list of the SHA-256 digests of all files is written beside Orbax's arrays, and
the whole directory is renamed into place. So a checkpoint is there whole or not
at all, and later damage is found. The last two checkpoints of a unit are kept,
in case one is damaged. A pytree is stored as the list of its leaves; the
program that loads it knows its structure.
"""
from collections.abc import Iterator
import contextlib
import errno
import hashlib
import itertools
import json
import math
from pathlib import Path
import re
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vfljax.runner.errors import UserError
from vfljax.runner.machine import disk
from vfljax.runner.machine.exhausted import is_memory
from vfljax.runner.workdir import parts
from vfljax.runner.workdir.parts import Damaged

KEPT = 2  # Checkpoints kept of a unit.
_LEAVES, _DIGESTS = 'leaves', 'digests.json'
_STEP = re.compile('0|[1-9][0-9]*')


class Snapshot(NamedTuple):
  """A copy of a pytree on the host, ready to be written.

  Attributes:
    arrays: Position of the leaf -> array, without empty arrays.
    described: A line for each leaf: its path, shape and dtype.
  """

  arrays: dict[str, np.ndarray]
  described: list[str]


def snapshot(tree: Any) -> Snapshot:
  """Copies a pytree, so that it can be written while training goes on."""
  arrays = {i: np.array(x) for i, x in _leaves(tree).items()}
  return Snapshot(arrays, _described(tree))


def save(folder: Path, step: int, tree: Any) -> None:
  """Saves `tree` as folder/step.

  Of earlier checkpoints only the last stays. Checkpoints of later steps are
  removed: the run could not continue from them.

  Args:
    folder: The unit's folder, see `folder`.
    step: The number of the step, 0 or more.
    tree: A pytree of arrays, numbers and typed PRNG keys; or its `Snapshot`.

  Raises:
    OSError: if it cannot be written; earlier checkpoints stay.
  """
  taken = tree if isinstance(tree, Snapshot) else snapshot(tree)
  final = folder / str(step)
  unfinished = disk.temporary(final)
  disk.remove(unfinished)
  unfinished.mkdir(parents=True)
  try:
    _write(unfinished.absolute() / _LEAVES, taken.arrays)
    disk.fault(final)
    content = dict(leaves=taken.described, files=_digests(unfinished))
    (unfinished / _DIGESTS).write_text(json.dumps(content, indent=1), 'utf-8')
    for place in [unfinished / _DIGESTS, unfinished]:
      disk.sync(place)
    disk.fault(final)
    disk.remove(final)
    disk.move(unfinished, final)
  finally:
    disk.remove(unfinished)
  disk.sync(folder)
  disk.fault(final)
  found = steps(folder)
  earlier = [s for s in found if s < step]
  for other in set(found) - {step, *earlier[-KEPT + 1 :]}:
    disk.remove(folder / str(other))


def folder(place: Path, unit: str) -> Path:
  """The folder of a unit's checkpoints in the work directory `place`."""
  return place / 'checkpoints' / parts.file_name(unit)


def steps(folder: Path) -> list[int]:
  """The steps that have checkpoints, the newest last."""
  names = [p.name for p in folder.iterdir()] if folder.is_dir() else []
  return sorted(int(name) for name in names if _STEP.fullmatch(name))


def load(place: Path, like: Any) -> Any:
  """Loads the pytree of one checkpoint.

  Args:
    place: The checkpoint's folder.
    like: A pytree like the saved one; leaves may be `jax.ShapeDtypeStruct`.

  Raises:
    Damaged: if it is damaged or does not fit `like`. The message is the end of
      a sentence that begins with the checkpoint's name.
    UserError: if it cannot be read now, or memory runs out. Then, and if Orbax
      fails in any other way, the checkpoint is whole and stays.
  """
  with _telling(place):
    _check(place, _described(like))
    wanted = _leaves(like)
    found = _read(place.absolute() / _LEAVES, wanted) if wanted else {}
  leaves, structure = jax.tree.flatten(like)
  leaves = [_restored(found.get(str(i)), x) for i, x in enumerate(leaves)]
  return jax.tree.unflatten(structure, leaves)


def remove(folder: Path) -> None:
  """Removes a unit's checkpoints, and their folder if it is then empty."""
  remove_unfinished(folder)
  for step in steps(folder):
    disk.remove(folder / str(step))
  if folder.is_dir() and not any(folder.iterdir()):
    folder.rmdir()


def remove_unfinished(folder: Path) -> None:
  """Removes unfinished checkpoints of a unit that a killed run left."""
  disk.remove_unfinished(folder)
  for stray in folder.glob('*.tmp'):  # As version 0.1 called them.
    if _STEP.fullmatch(stray.stem) and stray.is_dir():
      disk.remove(stray)


def _write(place: Path, leaves: dict) -> None:
  if not leaves:
    return
  import orbax.checkpoint as ocp  # Takes half a second; few runs need it.
  saver = ocp.Checkpointer(ocp.StandardCheckpointHandler())
  try:
    saver.save(place, args=ocp.args.StandardSave(leaves))
  except OSError:
    raise
  except Exception as e:  # TensorStore raises ValueError on a full disk.
    raise OSError(errno.EIO, _first_line(e), str(place)) from e
  finally:
    saver.close()


def _read(place: Path, like: dict) -> dict:
  import orbax.checkpoint as ocp
  saver = ocp.Checkpointer(ocp.StandardCheckpointHandler())
  try:
    return saver.restore(place, args=ocp.args.StandardRestore(like))
  finally:
    saver.close()


def _leaves(tree: Any) -> dict:
  """Position -> array for Orbax: keys as their data, empty arrays left out."""
  leaves = {str(i): _raw(x) for i, x in enumerate(jax.tree.leaves(tree))}
  return {i: x for i, x in leaves.items() if math.prod(x.shape)}


def _raw(x: Any) -> Any:
  if _is_key(x):
    data = jax.random.key_data
    abstract = isinstance(x, jax.ShapeDtypeStruct)
    return jax.eval_shape(data, x) if abstract else data(x)
  if isinstance(x, (jax.Array, np.ndarray, jax.ShapeDtypeStruct)):
    return x
  return np.asarray(x, jnp.result_type(x))


def _restored(found: Any, like: Any) -> Any:
  """The loaded array as a leaf like `like`; `found` is None if it is empty."""
  if found is None:
    return jnp.zeros(like.shape, like.dtype)
  if _is_key(like):
    return jax.random.wrap_key_data(found, impl=_impl(like))
  return found


def _is_key(x: Any) -> bool:
  return jnp.issubdtype(getattr(x, 'dtype', np.void), jax.dtypes.prng_key)


def _impl(like: Any) -> Any:
  """The generator of a typed key; of an abstract key, only tracing tells it."""
  found = []
  jax.eval_shape(lambda x: found.append(jax.random.key_impl(x)), like)
  return found[0]


def _described(tree: Any) -> list[str]:
  """One line per leaf: its path, shape and dtype."""
  described = []
  for path, x in jax.tree_util.tree_leaves_with_path(tree):
    shape, dtype = jnp.shape(x), getattr(x, 'dtype', None)
    name = jax.tree_util.keystr(path)
    described.append(f'{name} {list(shape)} {dtype or jnp.result_type(x)}')
  return described


@contextlib.contextmanager
def _telling(place: Path) -> Iterator[None]:
  """Turns errors of reading a checkpoint into `Damaged` or `UserError`."""
  try:
    yield
  except Damaged:
    raise
  except OSError as e:
    if disk.is_lost(e):
      raise Damaged(f'is damaged: {e.strerror or e}') from e
    raise disk.unreadable(place, e) from e
  except Exception as e:  # Orbax and TensorStore raise many kinds.
    if not is_memory(e):
      raise
    raise UserError(
        f'There is too little memory to read {place}, which is left as it is.\n'
        'Free some, for example by ending other programs; the same command '
        'then continues.'
    ) from e


def _digests(place: Path) -> dict[str, str]:
  """SHA-256 of every file below `place`, each of which is synced first."""
  digests = {}
  for file in sorted(place.rglob('*')):
    if file.is_file():
      disk.sync(file)
      digests[file.relative_to(place).as_posix()] = _digest(file)
  return digests


def _digest(file: Path) -> str:
  with file.open('rb') as f:
    return hashlib.file_digest(f, 'sha256').hexdigest()


def _check(place: Path, wanted: list[str]) -> None:
  """Raises `Damaged` unless all files are whole and describe these leaves."""
  try:
    content = json.loads((place / _DIGESTS).read_text('utf-8'))
    leaves, files = list(content['leaves']), dict(content['files'])
    # Read one by one: a folder that cannot be listed may have all its files.
    broken = [name for name in files if _digest(place / name) != files[name]]
  except (ValueError, LookupError, TypeError, RecursionError) as e:
    raise Damaged(f'is damaged: {_DIGESTS} cannot be read') from e
  if broken:
    raise Damaged(f'is damaged: {broken[0]} is not what was written')
  for old, new in itertools.zip_longest(leaves, wanted, fillvalue='nothing'):
    if old != new:
      raise Damaged(
          f'does not fit this program: it holds {old} where {new} is expected'
      )


def _first_line(e: Exception) -> str:
  return (str(e).splitlines() or [type(e).__name__])[0]
