"""Many trainings in one compiled program: seeds x strengths, over all devices.

A *cell* is one training: a key and a strength. Cells are independent, so they
are sharded over the local devices. On an accelerator those of one device are
vmapped. On a CPU they are looped over, which is faster there (one core per
device, small matrices that stay in its cache) and gives every cell the same
numbers as alone.
"""
from collections.abc import Callable, Sequence
import math
from typing import Any, cast
import weakref

import jax
from jax import lax
from jax.core import Tracer
import jax.numpy as jnp
from jax.sharding import (
    Mesh, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding,
)
import numpy as np

from vfljax import check, samples
from vfljax.types import Array, Batch

Run = Callable[[Any, Any], Any]
Numbers = Array | np.ndarray | Sequence[Any]

_AXIS = 'cells'
_SPREAD, _COPIED = PartitionSpec(_AXIS), PartitionSpec()


def over_cells(
    fn: Run, *, loop: bool | None = None, devices: Sequence | None = None
) -> Run:
  """Maps `fn(cell, shared) -> out` over the leading axis of `cells`.

  Args:
    fn: One cell's computation.
    loop: Loop over a device's cells (True) or vmap them (False). By default
      they are looped over on a CPU and vmapped elsewhere.
    devices: By default all local devices.

  Returns:
    A function (cells, shared) -> outs, for `jit`. Every leaf of `cells` and of
    `outs` has a leading axis over cells, whose number must be a multiple of the
    number of devices: see `pad`.
  """
  def on_device(cells, shared):
    if _loops(loop, devices):
      return lax.map(lambda cell: fn(cell, shared), cells)
    return jax.vmap(fn, (0, None))(cells, shared)

  return _spread(on_device, (_SPREAD, _COPIED), devices)


def over_runs(
    fn: Callable[[Any, Any, Any], Any], *, loop: bool | None = None,
    devices: Sequence | None = None,
) -> Callable[[Any, Any, Any], Any]:
  """Maps `fn(run, cell, shared) -> (run, out)` over trainings in progress.

  As `over_cells`, but where trainings are looped over, each run is updated in
  place, which takes half the memory and half the loop's operands.

  Returns:
    A function (runs, cells, shared) -> (runs, outs), for `jit`.
  """

  def on_device(runs, cells, shared):
    if not _loops(loop, devices):
      return jax.vmap(fn, (0, 0, None))(runs, cells, shared)

    def one(runs, place):
      i, cell = place
      own = jax.tree.map(
          lambda x: lax.dynamic_index_in_dim(x, i, keepdims=False), runs
      )
      moved, out = fn(own, cell, shared)
      put = lambda x, new: lax.dynamic_update_index_in_dim(x, new, i, 0)
      return jax.tree.map(put, runs, moved), out

    count = len(jax.tree.leaves(runs)[0])
    return lax.scan(one, runs, (jnp.arange(count), cells))

  return _spread(on_device, (_SPREAD, _SPREAD, _COPIED), devices)


def _loops(loop: bool | None, devices: Sequence | None) -> bool:
  """Whether a device's trainings are looped over."""
  if loop is not None:
    return loop
  return (devices or jax.local_devices())[0].platform == 'cpu'


def _spread(
    on_device: Callable, arguments: tuple[PartitionSpec, ...],
    devices: Sequence | None,
) -> Callable:
  """Lifts a function of one device's part to all devices; outputs sharded."""
  devices = list(devices or jax.local_devices())
  if len(devices) == 1:
    return on_device
  return jax.shard_map(
      on_device, mesh=Mesh(devices, (_AXIS,)), in_specs=arguments,
      out_specs=_SPREAD, check_vma=False,
  )


def pad(cells: Any, multiple: int) -> Any:
  """Repeats the last cell until their number is a multiple of `multiple`."""
  count = len(jax.tree.leaves(cells)[0])
  index = jnp.minimum(jnp.arange(-(-count // multiple) * multiple), count - 1)
  return jax.tree.map(lambda x: x[index], cells)


def place(cells: Any, shared: Any, devices: Sequence | None = None):
  """Puts `cells` (sharded) and `shared` (replicated) on the devices."""
  spread, copied = shardings(devices)
  return jax.device_put(cells, spread), jax.device_put(shared, copied)


def shardings(devices: Sequence | None = None) -> tuple[Sharding, Sharding]:
  """The shardings of cells and of what they share, (sharded, replicated)."""
  devices = list(devices or jax.local_devices())
  if len(devices) == 1:
    here = SingleDeviceSharding(devices[0])
    return here, here
  mesh = Mesh(devices, (_AXIS,))
  return NamedSharding(mesh, _SPREAD), NamedSharding(mesh, _COPIED)


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
      none in float32, or a negative number of cells in a chunk; if `data` is a
      `Batch` that `train.start` refuses; inside a caller's `jax.set_mesh`.
  """
  check.count('cells_per_chunk', cells_per_chunk, 0)
  devices = tuple(devices or jax.local_devices())
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
  own = Mesh(devices, (_AXIS,)).abstract_mesh
  alone = given.size == own.size == 1
  if not (given.empty or alone or given == own):
    raise ValueError(
        'sweep spreads trainings over a mesh of its own, and another one is '
        f'set, of {", ".join(given.axis_names)}: call it outside of '
        'jax.set_mesh, or map over that mesh as docs/pages/use/devices.md does.'
    )


def _check(count: int, strengths: Numbers, data: Any) -> None:
  if not np.ndim(strengths):
    raise ValueError(f'strengths are a list, such as [{strengths}].')
  if count < 1 or not len(strengths):
    raise ValueError(
        'A sweep needs a seed and a strength, or more; got '
        f'{count} seeds and {len(strengths)} strengths.'
    )
  traced = isinstance(strengths, Tracer)
  if not traced and _lost(np.asarray(strengths, np.float64)).any():
    raise ValueError(f'strengths are numbers of float32; got {strengths}.')
  if isinstance(data, Batch):
    samples.check(data)
    samples.check_numbers(data)


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
