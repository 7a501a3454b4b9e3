"""Many trainings in one compiled program: seeds x strengths, over all devices.

A *cell* is one training: a key and a strength. Cells are independent, so they
are sharded over the local devices; within a device they are vmapped on an
accelerator and looped over on a CPU, where that is faster (one core a device,
small matrices that stay in its cache) and gives every cell the numbers it would
have alone.
"""
from collections.abc import Callable, Sequence
import math
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp
from jax.sharding import (
    Mesh, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding,
)

from vfljax import samples
from vfljax.types import Array, Batch

Run = Callable[[Any, Any], Any]


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
    A function (cells, shared) -> outs, for `jit`. The number of cells must be a
    multiple of the number of devices: see `pad`. With `outs` as with `cells`,
    each leaf has the leading axis.
  """
  devices = list(devices or jax.local_devices())
  loop = devices[0].platform == 'cpu' if loop is None else loop

  def on_device(cells, shared):
    if loop:
      return lax.map(lambda cell: fn(cell, shared), cells)
    return jax.vmap(fn, (0, None))(cells, shared)

  if len(devices) == 1:
    return on_device
  mesh = Mesh(devices, ('cells',))
  along = PartitionSpec('cells')
  return jax.shard_map(
      on_device, mesh=mesh, in_specs=(along, PartitionSpec()), out_specs=along,
      check_vma=False,
  )


def pad(cells: Any, multiple: int) -> Any:
  """Repeats the last cell until their number divides by `multiple`."""
  count = len(jax.tree.leaves(cells)[0])
  index = jnp.minimum(jnp.arange(-(-count // multiple) * multiple), count - 1)
  return jax.tree.map(lambda x: x[index], cells)


def place(cells: Any, shared: Any, devices: Sequence | None = None):
  """Puts cells (spread) and what they share (copied) on the devices."""
  spread, copied = shardings(devices)
  return jax.device_put(cells, spread), jax.device_put(shared, copied)


def shardings(devices: Sequence | None = None) -> tuple[Sharding, Sharding]:
  """Where cells are, and what they share."""
  devices = list(devices or jax.local_devices())
  if len(devices) == 1:
    here = SingleDeviceSharding(devices[0])
    return here, here
  mesh = Mesh(devices, ('cells',))
  return (
      NamedSharding(mesh, PartitionSpec('cells')),
      NamedSharding(mesh, PartitionSpec()),
  )


def sweep(
    run: Callable[..., Any], seeds: int | Array, strengths: Sequence[Any],
    data: Any = None, *, cells_per_chunk: int = 0, loop: bool | None = None,
    devices: Sequence | None = None,
) -> Any:
  """Runs `run` for every seed and strength, compiled once.

  Args:
    run: (key, strength) -> metrics, or (key, strength, data) -> metrics if
      `data` is given; traced with the strength in float32.
    seeds: How many, or an array of keys [seeds].
    strengths: Numbers, at least one; or as many rows of numbers, such as pairs
      (lambda, p), each of which `run` gets as one array.
    data: A pytree that every cell reads; what is large belongs here and not in
      `run`'s closure, where it would be compiled into the program.
    cells_per_chunk: Trainings at a time, where memory is short; 0 is all.
    loop, devices: As in `over_cells`.

  Returns:
    The metrics with leading axes [strengths, seeds].

  Raises:
    ValueError: without a seed or a strength; if `data` is a `Batch` whose parts
      do not fit together or that has NaN in it, as in `train.start`.
  """
  _check(seeds, strengths, data)
  with samples.guarded(data):
    return _sweep(
        run, seeds, strengths, data, cells_per_chunk, loop, devices
    )


def _sweep(
    run: Callable[..., Any], seeds: int | Array, strengths: Sequence[Any],
    data: Any, cells_per_chunk: int, loop: bool | None,
    devices: Sequence | None,
) -> Any:
  if isinstance(seeds, int):
    seeds = jax.vmap(jax.random.key)(jnp.arange(seeds))
  values = jnp.asarray(strengths, jnp.float32)
  shape = (len(values), len(seeds))
  grid = jnp.meshgrid(jnp.arange(shape[0]), jnp.arange(shape[1]), indexing='ij')
  cells = (seeds[grid[1].ravel()], values[grid[0].ravel()])
  devices = list(devices or jax.local_devices())

  def cell(cell, data):
    return run(*cell) if data is None else run(*cell, data)

  compiled = jax.jit(over_cells(cell, loop=loop, devices=devices))
  count = math.prod(shape)
  chunk = _round_up(min(cells_per_chunk or count, count), len(devices))
  padded = pad(cells, chunk)
  outs = [
      compiled(*place(_rows(padded, slice(i, i + chunk)), data, devices))
      for i in range(0, count, chunk)
  ]
  whole = jax.tree.map(lambda *xs: jnp.concatenate(xs)[:count], *outs)
  return jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), whole)


def _check(seeds: int | Array, strengths: Sequence[Any], data: Any) -> None:
  count = seeds if isinstance(seeds, int) else len(seeds)
  if count < 1 or not len(strengths):
    raise ValueError(
        'A sweep needs a seed and a strength, or more; got '
        f'{count} seeds and {len(strengths)} strengths.'
    )
  if isinstance(data, Batch):
    samples.check(data)
    samples.check_numbers(data)


def _rows(cells: Any, rows: slice) -> Any:
  return jax.tree.map(lambda x: x[rows], cells)


def _round_up(count: int, multiple: int) -> int:
  return -(-count // multiple) * multiple
