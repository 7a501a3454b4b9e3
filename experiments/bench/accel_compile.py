"""Programs compiled for a TPU v5e or an H100 on a machine that has neither.

XLA compiles for a described device as for one that is there: its compilers come
with JAX's wheels for TPUs and for CUDA. What a wheel is not installed for is
not there to compile for, see `there_is`. Nothing is autotuned, and nothing run.
"""
from collections.abc import Callable, Sequence
import os
from typing import Any

import jax
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding, Sharding

from vfljax import target
from vfljax.runner.machine import libtpu

# Without these libtpu asks a cloud's server which TPU this is.
ALONE = dict(
    TPU_SKIP_MDS_QUERY='1', TPU_ACCELERATOR_TYPE='v5litepod-1',
    TPU_WORKER_HOSTNAMES='localhost', TPU_WORKER_ID='0',
    ALLOW_MULTIPLE_LIBTPU_LOAD='1',
)
# As XLA writes down what it knows of a GPU, from NVIDIA's data sheet.
H100 = """
gpu_device_info {
  cuda_compute_capability { major: 9 feature_extension: ACCELERATED_FEATURES }
  threads_per_block_limit: 1024 threads_per_warp: 32 core_count: 132
  threads_per_core_limit: 2048 fpus_per_core: 128 clock_rate_ghz: 1.98
  shared_memory_per_block: 49152 shared_memory_per_block_optin: 232448
  shared_memory_per_core: 233472 l2_cache_size: 52428800
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  thread_dim_limit_x: 1024 thread_dim_limit_y: 1024 thread_dim_limit_z: 64
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: 3352320000000 device_memory_size: 84942979072
  device_vendor: "NVIDIA Corporation" name: "NVIDIA H100 80GB HBM3"
  driver_version: "13.0.0" runtime_version: "12.8.0"
  compile_time_toolkit_version: "12.8.0" dnn_version: "9.10.0"
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 10 patch: 0 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""
_DESCRIBED: dict[str, tuple[str, dict[str, Any]]] = dict(
    v5e=('tpu', dict(
        topology_name='v5e:1x1', chips_per_host_bounds=(1, 1, 1)
    )),
    h100=('cuda', dict(
        topology_name='', topology='1x1x1', target_config=H100
    )),
)
MACHINES = tuple(_DESCRIBED)


def place(machine: str) -> Sharding:
  """The described device of that name, one of `MACHINES`."""
  os.environ.update(ALONE)
  libtpu.set_up(os.environ)
  platform, described = _DESCRIBED[machine]
  found = topologies.get_topology_desc(platform=platform, **described)
  return SingleDeviceSharding(found.devices[0])


def there_is(machine: str) -> bool:
  """Whether the wheels are installed that compile for it."""
  try:
    place(machine)
  except Exception:  # Whatever a plugin says that is not there.
    return False
  return True


def compiled(
    fn: Callable, arguments: Sequence[Any], machine: str,
    donate: tuple[int, ...] = (), wide: bool = False,
) -> jax.stages.Compiled:
  """`fn` compiled for a machine, traced as for one of its kind.

  Args:
    fn: A new function: what JAX has traced before it does not trace again.
    arguments: Arrays or their shapes.
    machine: One of `MACHINES`.
    donate: Arguments whose memory it may use.
    wide: Whether it has 64-bit types.
  """
  where = place(machine)
  shapes = jax.tree.map(
      lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=where),
      tuple(arguments),
  )
  platform, _ = _DESCRIBED[machine]
  with target.tracing_for(platform), jax.enable_x64(wide):
    jitted = jax.jit(fn, donate_argnums=donate)
    return jitted.lower(*shapes).compile()
