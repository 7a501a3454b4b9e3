"""Sets up devices and a compile cache before JAX starts.

Only a run does this: importing vfljax changes no global setting.
"""
from collections.abc import Iterator
import contextlib
import os
from pathlib import Path
import sys
import threading
from typing import Any

import jax
from jax.experimental.compilation_cache import compilation_cache

from vfljax.runner.errors import UserError, brief
from vfljax.runner.machine import libtpu, threefry, tuning

# OpenBLAS reads it when JAX first decomposes a matrix, which loads SciPy.
_LAPACK = 'OPENBLAS_NUM_THREADS'
_QUOTA = '/sys/fs/cgroup/cpu.max'
# Folders that `set_up` was given, with that of the calling program before.
_before: dict[str | None, str | None] = {}
# The three that JAX_TRANSFER_GUARD sets.
_GUARDS = tuple(
    f'jax_transfer_guard_{way}'
    for way in ('host_to_device', 'device_to_device', 'device_to_host')
)
_FOLDER = 'jax_compilation_cache_dir'
# What `set_up` changes and can be changed back.
_SETTINGS = (
    'jax_traceback_in_locations_limit', _FOLDER,
    'jax_persistent_cache_min_compile_time_secs',
    'jax_numpy_rank_promotion', 'jax_debug_key_reuse', *_GUARDS,
)
_LOCK = threading.Lock()
# What runs in progress have found. The first's is taken out last.
_inside: list[dict[str, Any]] = []
# The processes in which `set_up` has been: this one, or what it is a fork of.
_begun: set[int] = set()
_A_CORE = 64  # Most devices for each core: each has its own threads and memory.


def check(devices: int) -> None:
  """Refuses more devices than the machine can start.

  Raises:
    UserError: says how many it can start.
  """
  most = _A_CORE * cores()
  if not 0 <= devices <= most:
    raise UserError(
        f'--devices must be 0 (one for each core) or 1 to {most} on this '
        f'machine, {_A_CORE} for each core; got {devices}.'
    )


def set_up(devices: int, cache: str) -> None:
  """Divides a CPU into one device for each core, and sets up a compile cache.

  Small matrices do not fill several cores: two trainings side by side finish
  before one training spread over two cores (see experiments/bench/README.md).

  It also draws random bits in one kernel (`threefry`), stops LLVM from
  unrolling loops (`tuning`), gives LAPACK one thread if each core has a device,
  and gives a TPU's compiler more stack (`libtpu`). Nothing else changes for
  accelerators.

  Args:
    devices: Number of devices; 0 for one for each core.
    cache: Folder for compiled programs; '' keeps none, unless JAX did before.

  Raises:
    UserError: for more devices than the machine can start, or if `devices` is
      given but JAX has already started with another number, or if JAX_PLATFORMS
      asks for what is not here, or if JAX may not compile, or in a fork of a
      process that was set up.
  """
  check(devices)
  _check_compiles()
  _check_process()
  wanted = devices or cores()
  if _make(wanted, chosen=bool(devices)):
    # An XLA that has started reads no options. If the environment had them,
    # programs would be kept as made with them.
    libtpu.set_up(os.environ)
    tuning.set_up(os.environ)
  if wanted >= cores():
    # Each device calls LAPACK itself. More LAPACK threads would wait for each
    # other on busy cores, and digits would depend on the number of cores.
    os.environ.setdefault(_LAPACK, '1')
  threefry.in_one_kernel()
  # Programs would contain the code location of each operation. Nobody reads it,
  # and it takes 3 % of a first start.
  jax.config.update('jax_traceback_in_locations_limit', 0)
  # What helps to write code is not for ours: samples less a mean are of two
  # ranks, draws that are made together look like a key that is used again, and
  # a run's samples are NumPy's.
  jax.config.update('jax_numpy_rank_promotion', 'allow')
  jax.config.update('jax_debug_key_reuse', False)
  for guard in _GUARDS:
    jax.config.update(guard, 'allow')
  _check_platforms()
  _begun.add(os.getpid())
  if not cache:
    _keep_in(None)
    return
  try:
    folder = Path(cache).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
  except (OSError, RuntimeError, ValueError) as error:  # No such ~user, ...
    print(f'Compiled programs are not kept: {error}', file=sys.stderr)
    return
  _keep_in(str(folder))
  jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.1)


@contextlib.contextmanager
def restored() -> Iterator[None]:
  """A context after which the calling program's settings are its own again.

  Of runs side by side, in threads, the last puts back what the first has found.
  What JAX cannot change once it has started stays: its devices and XLA's flags.
  So do the random bits' kernels, whose bits are the same.
  """
  with _LOCK:
    _inside.append(_found())
  try:
    # The caller's thread may have settings of its own, by such contexts.
    with (
        jax.numpy_rank_promotion('allow'), jax.debug_key_reuse(False),
        jax.transfer_guard('allow'),
    ):
      yield
  finally:
    with _LOCK:
      before = _inside.pop()
      if not _inside:
        _put_back(dict(before))


def _found() -> dict[str, Any]:
  """Settings as they are now, read where no context changes them."""
  found: dict[str, Any] = {_LAPACK: os.environ.get(_LAPACK)}
  thread = threading.Thread(target=lambda: found.update(
      (name, getattr(jax.config, name)) for name in _SETTINGS
  ))
  thread.start()
  thread.join()
  return found


def _put_back(before: dict[str, Any]) -> None:
  threads = before.pop(_LAPACK)
  if threads is None:
    os.environ.pop(_LAPACK, None)
  else:
    os.environ[_LAPACK] = threads
  again = before[_FOLDER] != getattr(jax.config, _FOLDER)
  for name, value in before.items():
    jax.config.update(name, value)
  if again:
    compilation_cache.reset_cache()  # Else the run's folder stays in use.


def _keep_in(folder: str | None) -> None:
  """Keeps programs in a folder; `None`: where they were kept before."""
  now = getattr(jax.config, _FOLDER, None)
  before = _before.get(now, now)
  wanted = folder or before
  if wanted != now:
    jax.config.update(_FOLDER, wanted)
    compilation_cache.reset_cache()  # Else the first folder stays in use.
  if folder:
    _before[folder] = before


def _make(wanted: int, chosen: bool) -> bool:
  """Sets the number of CPU devices, unless JAX has started, as in a notebook.

  Args:
    wanted: The number.
    chosen: Whether the user typed it; then it is an error if JAX has started.

  Returns:
    Whether this process has that number of CPU devices.
  """
  try:
    jax.config.update('jax_num_cpu_devices', wanted)
    return True
  except RuntimeError as error:
    if chosen:
      has = jax.local_device_count()
      raise UserError(
          f'--devices={wanted} comes too late: JAX has started in this '
          f'process, with {has}. Leave it out, or start a new process.'
      ) from error
    return False


def _check_compiles() -> None:
  """Refuses JAX's mode without compiling: a run is compiled programs.

  Raises:
    UserError: if that mode is on.
  """
  if jax.config.jax_disable_jit:  # pyright: ignore
    raise UserError(
        'JAX_DISABLE_JIT is set, but a run consists of compiled programs.\n'
        'Unset it. To step through a round, call vfljax.protocol yourself.'
    )


def _check_process() -> None:
  """Refuses a fork of a process that was set up: it has none of XLA's threads.

  The first program would wait for them for ever, without a word.

  Raises:
    UserError: says how workers are started instead.
  """
  if _begun - {os.getpid()}:
    raise UserError(
        'This process is a fork of one in which JAX had started; here JAX '
        'would wait for ever.\nStart workers otherwise: ProcessPoolExecutor('
        "mp_context=multiprocessing.get_context('spawn'))."
    )


def _check_platforms() -> None:
  """Starts JAX on the platforms that it was asked for, if it was for any.

  Raises:
    UserError: if they are not here, as 'cuda' without JAX's CUDA plugin.
  """
  asked = jax.config.jax_platforms  # pyright: ignore
  if not asked:
    return
  try:
    jax.local_devices()
  except (RuntimeError, AssertionError) as error:
    # Of a known platform without its plugin JAX says nothing: it asserts.
    why = brief(str(error)).partition('\n')[0] or 'its plugin is not installed'
    raise UserError(
        f'JAX cannot start with JAX_PLATFORMS={asked}: {why}.\nUnset it to use '
        'what is here; README says how JAX for GPUs is installed.'
    ) from None


def name() -> str:
  """This process's devices: '2 x cpu', '1 x NVIDIA H100 80GB HBM3'."""
  kind = jax.local_devices()[0].device_kind
  return f'{jax.local_device_count()} x {kind}'


def cores() -> int:
  """The number of cores that this process may use, also in a container."""
  if hasattr(os, 'sched_getaffinity'):  # Not on a Mac.
    there = len(os.sched_getaffinity(0))
  else:
    there = os.cpu_count() or 1
  return min(there, _share(there))


def _share(otherwise: int) -> int:
  """The number of cores whose time a container gets, rounded up.

  Docker and Kubernetes show a process all cores of the machine, but limit its
  computing time. On Linux with cgroups 2 a file has that time and the period it
  is for, both in microseconds.

  Args:
    otherwise: What to return without such a limit.
  """
  try:
    quota, period = map(int, Path(_QUOTA).read_text('utf-8').split())
    return max(1, -(-quota // period))
  except (OSError, ValueError, ZeroDivisionError):  # No container; 'max'.
    return otherwise
