"""Many trainings in one compiled program: seeds x strengths, over all devices.

`vfljax.cells` maps over them; what it has can be imported from here, too.
"""
from collections.abc import Callable, Sequence
import math
from typing import Any, cast
import weakref

import jax
from jax.core import Tracer
import jax.numpy as jnp
from jax.sharding import Mesh
import numpy as np

from vfljax import check, samples
from vfljax.cells import (
    AXIS, Run, over_cells, over_runs, pad, place, shardings, used,
)
from vfljax.types import Array, Batch

__all__ = [
    'Run', 'over_cells', 'over_runs', 'pad', 'place', 'shardings', 'sweep',
]

Numbers = Array | np.ndarray | Sequence[Any]


def sweep(
    run: Callable[..., Any], seeds: int | Numbers, strengths: Numbers,
    data: Any = None, *, cells_per_chunk: int = 0, loop: bool | None = None,
    devices: Sequence | None = None,
) -> Any:
  """Runs `run` for every seed and strength, in one compiled program.

  Another call with the same function and cells of the same number and shapes is
  not compiled again. As with `jax.jit`, values that the function closes over
  are those at the time of tracing. `self.run` is a new function each time.

  Args:
    run: (key, strength) -> metrics, or (key, strength, data) -> metrics if
      `data` is given; traced with the strength in float32.
    seeds: Their number n, for seeds 0 to n - 1; a list of seeds, whole numbers
      below 2^31; or keys, an array [seeds] or a list.
    strengths: One number or more; or rows of numbers, such as pairs
      (lambda, p), each of which `run` gets as one array.
    data: A pytree that every cell reads. Large arrays belong here: those in
      `run`'s closure would be compiled into the program as constants.
    cells_per_chunk: Trainings at a time, where memory is short; 0 is all.
    loop, devices: As in `over_cells`.

  Returns:
    The metrics, [strengths, seeds, ...].

  Raises:
    ValueError: without a seed or a strength, for an untraced strength that is
      none in float32, a negative number of cells in a chunk, or devices that
      are no list of them; if `data` is a `Batch` that `train.start` refuses;
      inside a caller's `jax.set_mesh`.
  """
  check.count('cells_per_chunk', cells_per_chunk, 0)
  devices = tuple(used(devices))
  _check_mesh(devices)
  if any(isinstance(x, Tracer) for x in jax.tree.leaves(strengths)):
    strengths = jnp.asarray(strengths)  # NumPy cannot measure traced ones.
  with samples.guarded(data):
    keys = _keys(seeds)
    _check(len(keys), strengths, data)
    return _sweep(run, keys, strengths, data, cells_per_chunk, loop, devices)


def _keys(seeds: int | Numbers) -> Array:
  """Keys of seeds, or of their number; keys stay as they are."""
  given: Any = seeds
  if isinstance(given, int | np.integer):
    given = np.arange(max(given, 0))
  elif isinstance(given, Sequence) and given and _is_key(given[0]):
    given = jnp.stack(given)
  if _is_one_key(given):
    raise ValueError(
        'seeds is one key: jax.random.split(key, 10) makes ten of it. (Seeds '
        'in uint32 may look like a key of the old kind: list them.)'
    )
  if not np.ndim(given):
    raise ValueError(
        'seeds must be their number, an int, or a list of seeds or keys; got '
        f'{given!r}.'
    )
  if _is_key(given) or np.ndim(given) > 1:  # Or raw keys, [seeds, 2].
    return jnp.asarray(given)
  values = np.asarray(given)
  check.whole('seeds', values, 0, 2**31 - 1, many=True)
  return jax.vmap(jax.random.key)(values.astype(np.int32))


def _is_key(x: Any) -> bool:
  dtype = getattr(x, 'dtype', None)
  return dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)


def _is_one_key(x: Any) -> bool:
  """Whether it is a single key, also one of the old kind: raw numbers."""
  if _is_key(x):
    return not np.ndim(x)
  raw = isinstance(x, jax.Array) and x.dtype == np.uint32
  return raw and x.shape == jax.random.key_data(jax.random.key(0)).shape


def _sweep(
    run: Callable[..., Any], keys: Array, strengths: Numbers,
    data: Any, cells_per_chunk: int, loop: bool | None, devices: tuple,
) -> Any:
  values = jnp.asarray(strengths, jnp.float32)
  if not isinstance(keys, Tracer):
    # To one device: JAX does not gather from arrays that are sharded over a
    # mesh of explicit axes, as a caller's may be.
    keys, values = jax.device_put((keys, values), shardings(devices[:1])[0])
  shape = (len(values), len(keys))
  grid = jnp.meshgrid(jnp.arange(shape[0]), jnp.arange(shape[1]), indexing='ij')
  cells = (keys[grid[1].ravel()], values[grid[0].ravel()])
  compiled = _program(run, loop, devices)
  count = math.prod(shape)
  chunk = _round_up(min(cells_per_chunk or count, count), len(devices))
  padded = pad(cells, chunk)
  outs = [
      compiled(*place(_rows(padded, slice(i, i + chunk)), data, devices))
      for i in range(0, count, chunk)
  ]
  whole = jax.tree.map(lambda *xs: jnp.concatenate(xs)[:count], *outs)
  return jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), whole)


def _program(
    run: Callable[..., Any], loop: bool | None, devices: tuple
) -> Callable[[Any, Any], Any]:
  """The program of all cells, cached as long as the function `run` lives."""
  try:
    # A strong reference would keep `run`, the cache's weak key, alive for ever.
    own, called = _PROGRAMS.setdefault(run, {}), weakref.ref(run)
  except TypeError:  # No hash, or no weak reference to it: not cached.
    own, called = {}, lambda: run

  def cell(cell, data):
    held = cast(Callable[..., Any], called())  # Alive: the caller holds it.
    return held(*cell) if data is None else held(*cell, data)

  if (loop, devices) not in own:
    own[loop, devices] = jax.jit(over_cells(cell, loop=loop, devices=devices))
  return own[loop, devices]


_PROGRAMS: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def _check_mesh(devices: tuple) -> None:
  """Raises ValueError inside another mesh, which the program would use."""
  given = jax.sharding.get_abstract_mesh()
  own = Mesh(devices, (AXIS,)).abstract_mesh
  alone = given.size == own.size == 1
  if not (given.empty or alone or given == own):
    raise ValueError(
        'sweep spreads trainings over a mesh of its own, and another one is '
        f'set, of {", ".join(given.axis_names)}: call it outside of '
        'jax.set_mesh, or map over that mesh as docs/pages/use/devices.md does.'
    )


def _check(count: int, strengths: Numbers, data: Any) -> None:
  traced = isinstance(strengths, Tracer)
  if not traced and not _are_numbers(strengths):
    raise ValueError(
        'strengths are numbers of float32, or rows of as many numbers each; '
        f'got {strengths}.'
    )
  if not np.ndim(strengths):
    raise ValueError(f'strengths are a list, such as [{strengths}].')
  if count < 1 or not len(strengths):
    raise ValueError(
        'A sweep needs a seed and a strength, or more; got '
        f'{count} seeds and {len(strengths)} strengths.'
    )
  if isinstance(data, Batch):
    samples.check(data)
    samples.check_numbers(data)


def _are_numbers(strengths: Numbers) -> bool:
  """Whether they are numbers of float32, alone or in rows of one length."""
  try:
    found = np.asarray(strengths)
    if found.dtype.kind in 'USMmc':  # Words, times, complex numbers.
      return False
    return not _lost(found.astype(np.float64)).any()
  except (TypeError, ValueError, OverflowError):  # Also rows of two lengths.
    return False


def _lost(values: np.ndarray) -> np.ndarray:
  """Which are NaN, or 0 or infinite in float32 alone."""
  with np.errstate(all='ignore'):
    short = values.astype(np.float32)
  far = (abs(short) < 2**-126) != (values == 0)  # Less is flushed to 0.
  return np.isnan(values) | far | (np.isinf(short) != np.isinf(values))


def _rows(cells: Any, rows: slice) -> Any:
  return jax.tree.map(lambda x: x[rows], cells)


def _round_up(count: int, multiple: int) -> int:
  return -(-count // multiple) * multiple
