"""Cells, which are trainings, in one program: sharded, vmapped or looped over.

A *cell* is one training: a key and a strength. Cells are independent, so they
are sharded over the local devices. On an accelerator those of one device are
vmapped. On a CPU they are looped over, which is faster there (one core per
device, small matrices that stay in its cache) and gives every cell the same
numbers as alone.
"""
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp
from jax.sharding import (
    Mesh, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding,
)

Run = Callable[[Any, Any], Any]

AXIS = 'cells'
_SPREAD, _COPIED = PartitionSpec(AXIS), PartitionSpec()


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
  return used(devices)[0].platform == 'cpu'


def _spread(
    on_device: Callable, arguments: tuple[PartitionSpec, ...],
    devices: Sequence | None,
) -> Callable:
  """Lifts a function of one device's part to all devices; outputs sharded."""
  devices = used(devices)
  if len(devices) == 1:
    return on_device
  return jax.shard_map(
      on_device, mesh=Mesh(devices, (AXIS,)), in_specs=arguments,
      out_specs=_SPREAD, check_vma=False,
  )


def used(devices: Sequence | None) -> list[Any]:
  """These devices, or all local ones.

  Raises:
    ValueError: for what is no list of devices, such as their number.
  """
  if devices is None:
    return jax.local_devices()
  try:
    found = [*devices]
  except TypeError:  # Such as their number.
    found = []
  if not found or not all(hasattr(one, 'platform') for one in found):
    raise ValueError(
        "devices must be a list of JAX's, as jax.local_devices()[:2]; got "
        f'{devices!r}.'
    )
  return found


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
  devices = used(devices)
  if len(devices) == 1:
    here = SingleDeviceSharding(devices[0])
    return here, here
  mesh = Mesh(devices, (AXIS,))
  return NamedSharding(mesh, _SPREAD), NamedSharding(mesh, _COPIED)
