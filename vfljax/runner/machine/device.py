"""What the command line does before JAX starts: devices and a compile cache.

Only the command line does this: importing vfljax changes no global setting.
"""
import os
from pathlib import Path
import sys

import jax

from vfljax.runner.errors import UserError
from vfljax.runner.machine import libtpu, threefry, tuning

# Read as SciPy's OpenBLAS is loaded, which JAX does at its first decomposition.
_LAPACK = 'OPENBLAS_NUM_THREADS'
_QUOTA = '/sys/fs/cgroup/cpu.max'
_A_CORE = 64  # Devices of a core: each has its threads and its memory.


def check(devices: int) -> None:
  """Refuses more devices than a machine can start.

  Raises:
    UserError: naming how many it can.
  """
  most = _A_CORE * cores()
  if not 0 <= devices <= most:
    raise UserError(
        f'--devices must be 0, one of every core, to {most} on this machine, '
        f'{_A_CORE} a core; got {devices}.'
    )


def set_up(devices: int, cache: str) -> None:
  """Makes one device of every core of a CPU, and keeps compiled programs.

  Small matrices do not fill several cores: two trainings side by side finish
  before one training spread over two cores (see
  experiments/bench/README.md).
  Accelerators are not affected, but that a TPU's compiler gets room (`libtpu`).
  Random bits are drawn in one kernel; LLVM leaves loops as they are (`tuning`).
  LAPACK has one thread a device where every core has one.

  Args:
    devices: How many devices to make; 0 makes one of every core.
    cache: Folder for compiled programs; '' keeps none.

  Raises:
    UserError: for more devices than the machine can start, and for others than
      there are where JAX has started already.
  """
  check(devices)
  libtpu.set_up(os.environ)
  tuning.set_up(os.environ)
  wanted = devices or cores()
  if wanted >= cores():
    # Each device decomposes matrices by itself. LAPACK's threads, as many again
    # for each, wait for one another where cores are busy. With one, no digit
    # hangs on how many cores there are.
    os.environ.setdefault(_LAPACK, '1')
  threefry.in_one_kernel()
  # Else programs say of each operation where in the code it stands: for nobody,
  # and 3 % of what a first start computes.
  jax.config.update('jax_traceback_in_locations_limit', 0)
  _make(wanted, chosen=bool(devices))
  if not cache:
    return
  try:
    folder = Path(cache).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
  except (OSError, RuntimeError, ValueError) as error:  # No such ~user, ...
    print(f'Compiled programs are not kept: {error}', file=sys.stderr)
    return
  jax.config.update('jax_compilation_cache_dir', str(folder))
  jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.1)


def _make(wanted: int, chosen: bool) -> None:
  """Where JAX has started, as in a notebook, its devices stay as they are."""
  try:
    jax.config.update('jax_num_cpu_devices', wanted)
  except RuntimeError as error:
    if chosen:
      has = jax.local_device_count()
      raise UserError(
          f'--devices={wanted} comes too late: JAX has started in this '
          f'process, with {has}. Leave it out, or start a process of its own.'
      ) from error


def name() -> str:
  """'2 x cpu', '1 x NVIDIA H100 80GB HBM3': what this process computes on."""
  kind = jax.local_devices()[0].device_kind
  return f'{jax.local_device_count()} x {kind}'


def cores() -> int:
  """The cores that this process may use, of a container's its share."""
  if hasattr(os, 'sched_getaffinity'):  # Not on a Mac.
    there = len(os.sched_getaffinity(0))
  else:
    there = os.cpu_count() or 1
  return min(there, _share(there))


def _share(otherwise: int) -> int:
  """How many cores' time a container is given, rounded up.

  Docker and Kubernetes let a process see all cores of a machine, and stop it
  when it has used the time of so many (Linux, cgroups 2, whose file has that
  time and of which period it is, in microseconds).
  """
  try:
    quota, period = map(int, Path(_QUOTA).read_text('utf-8').split())
    return max(1, -(-quota // period))
  except (OSError, ValueError, ZeroDivisionError):  # No container; 'max'.
    return otherwise
