"""Checkpoints of a unit in progress: Orbax arrays under a list of digests.

Orbax writes the arrays; a list of the SHA-256 digests of all its files is
written beside them and the whole directory is renamed into place, so that a
checkpoint is there entirely or not at all, and any later damage is found.
A pytree is stored as the list of its leaves: what gives them structure is the
program, not the disk, and Orbax need not know it.
"""
import errno
import hashlib
import itertools
import json
import math
import os
import shutil
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

from vfljax.runner import disk
from vfljax.runner.errors import UserError

_LEAVES, _DIGESTS = 'leaves', 'digests.json'


def save(folder: Path, step: int, tree: Any) -> None:
  """Saves `tree` as folder/step and removes every other checkpoint there.

  Args:
    step: >= 0.
    tree: A pytree of arrays, numbers and typed PRNG keys.

  Raises:
    OSError: if the disk does not take it; the earlier checkpoint stays.
  """
  temporary, final = folder / f'{step}.tmp', folder / str(step)
  shutil.rmtree(temporary, ignore_errors=True)
  temporary.mkdir(parents=True)
  try:
    _write(temporary.absolute() / _LEAVES, _leaves(tree))
    content = {'leaves': _described(tree), 'files': _digests(temporary)}
    (temporary / _DIGESTS).write_text(json.dumps(content, indent=1))
    for place in [temporary / _DIGESTS, temporary]:
      disk.sync(place)
    shutil.rmtree(final, ignore_errors=True)
    os.rename(temporary, final)
  finally:
    shutil.rmtree(temporary, ignore_errors=True)
  disk.sync(folder)
  for other in folder.iterdir():
    if other != final:
      shutil.rmtree(other, ignore_errors=True)


def load(folder: Path, like: Any) -> tuple[int, Any] | None:
  """The newest checkpoint in `folder` as (step, tree); None if there is none.

  Args:
    like: As `tree` in `save`; leaves may be `jax.ShapeDtypeStruct`.

  Raises:
    UserError: if it is damaged or does not fit `like`.
  """
  names = [p.name for p in folder.iterdir()] if folder.is_dir() else []
  steps = [int(name) for name in names if name.isdigit()]
  if not steps:
    return None
  place = folder / str(max(steps))
  _check(folder, place, _described(like))
  try:
    wanted = _leaves(like)
    found = _read(place.absolute() / _LEAVES, wanted) if wanted else {}
  except Exception as e:  # Orbax and TensorStore raise many kinds.
    raise _unusable(folder, _first_line(e)) from e
  leaves, structure = jax.tree.flatten(like)
  leaves = [_restored(found.get(str(i)), x) for i, x in enumerate(leaves)]
  return max(steps), jax.tree.unflatten(structure, leaves)


def _write(place: Path, leaves: dict) -> None:
  if not leaves:
    return
  saver = ocp.Checkpointer(ocp.StandardCheckpointHandler())
  try:
    saver.save(place, args=ocp.args.StandardSave(leaves))
  except OSError:
    raise
  except Exception as e:  # A full disk is a ValueError of TensorStore's.
    raise OSError(errno.EIO, _first_line(e), str(place)) from e
  finally:
    saver.close()


def _read(place: Path, like: dict) -> dict:
  saver = ocp.Checkpointer(ocp.StandardCheckpointHandler())
  try:
    return saver.restore(place, args=ocp.args.StandardRestore(like))
  finally:
    saver.close()


def _leaves(tree: Any) -> dict:
  """What Orbax stores, by position: no keys, no scalars, nothing empty."""
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
  """A leaf of `like`'s kind; `found` is None for one without elements."""
  if found is None:
    return jnp.zeros(like.shape, like.dtype)
  if _is_key(like):
    return jax.random.wrap_key_data(found, impl=_impl(like))
  return found


def _is_key(x: Any) -> bool:
  return jnp.issubdtype(getattr(x, 'dtype', np.void), jax.dtypes.prng_key)


def _impl(like: Any) -> Any:
  """The generator of a typed key; an abstract one tells only while traced."""
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


def _digests(place: Path) -> dict[str, str]:
  """SHA-256 of every file below `place`, each of which is synced first."""
  digests = {}
  for file in sorted(place.rglob('*')):
    if file.is_file():
      disk.sync(file)
      with file.open('rb') as f:
        digest = hashlib.file_digest(f, 'sha256').hexdigest()
      digests[file.relative_to(place).as_posix()] = digest
  return digests


def _check(folder: Path, place: Path, wanted: list[str]) -> None:
  """Raises a UserError unless all files are whole and the leaves as wanted."""
  try:
    content = json.loads((place / _DIGESTS).read_text())
    leaves, files = content['leaves'], content['files']
    found = _digests(place)
  except (OSError, ValueError, KeyError, TypeError) as e:
    raise _unusable(folder, f'{_DIGESTS} cannot be read') from e
  damaged = [name for name in files if found.get(name) != files[name]]
  if damaged:
    raise _unusable(folder, f'{place.name}/{damaged[0]} is damaged')
  for old, new in itertools.zip_longest(leaves, wanted, fillvalue='nothing'):
    if old != new:
      raise _unusable(folder, f'it holds {old} where {new} is expected')


def _unusable(folder: Path, why: str) -> UserError:
  return UserError(
      f'The checkpoint in {folder} cannot be used: {why}.\n'
      f'Delete {folder} to start that unit again; finished units stay.'
  )


def _first_line(e: Exception) -> str:
  return (str(e).splitlines() or [type(e).__name__])[0]
