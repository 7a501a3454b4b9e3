"""How tests compile: quickly, for they run a program once or twice."""
import ctypes
from importlib import metadata
import itertools
import os
import pathlib
import types
from typing import Any
import zlib

import jax
from jax import lax
from jax.extend.core.primitives import threefry2x32_p
import jax.interpreters.mlir
import numpy as np

try:
  from jax._src import compilation_cache
  from jax._src.interpreters import mlir
  from jax._src.lru_cache import LRUCache
except ImportError:  # JAX's own affair, which may be elsewhere one day.
  compilation_cache = mlir = LRUCache = None

# Each with the first jaxlib that does not know it, or of which nobody has seen
# that it does: XLA ends the process at a flag that it does not know.
_FLAGS = {
    # Since 0.11.2 there is no older way to fuse: compiling takes twice as long.
    '--xla_cpu_use_fusion_emitters=false': (0, 11),
    # One piece a program: cutting it up costs more than it gives back.
    '--xla_cpu_parallel_codegen_split_count=1': (0, 13),
    # Loops stay loops: each that is hoisted is compiled by itself. That costs
    # time the older way alone; the newer way it saves a twentieth.
    '--xla_disable_hlo_passes=small-while-loop-hoisting': (0, 11),
}


def _flags() -> str:
  numbers = metadata.version('jaxlib').split('.')
  version = tuple(map(int, numbers[:2]))
  return ' '.join(flag for flag, bound in _FLAGS.items() if version < bound)


QUICK_FLAGS = _flags()


def compile_quickly() -> None:
  """Of this process alone: command lines under test inherit no flag."""
  jax.config.update('jax_disable_most_optimizations', True)
  # Where in the code an operation stands is written into programs: a tenth of
  # lowering, for messages of compilers that nobody reads here.
  jax.config.update('jax_traceback_in_locations_limit', 0)
  before = os.environ.get('XLA_FLAGS')
  # A space alone would be the name of a file with flags.
  os.environ['XLA_FLAGS'] = f'{before or ""} {QUICK_FLAGS}'.strip()
  jax.devices()  # Here XLA reads them, once and for all.
  del os.environ['XLA_FLAGS']
  if before is not None:
    os.environ['XLA_FLAGS'] = before


def keep_memory() -> None:
  """What a compiler has freed stays with the process, for the next program.

  Giving it back and being given pages of zeros again took 3 % of the time.
  """
  adjust = getattr(ctypes.CDLL(None), 'mallopt', None)  # The GNU library's.
  for parameter, size in _MALLOC.items() if adjust else ():
    adjust(parameter, size)


# M_MMAP_THRESHOLD (no more than 32 MB), M_TRIM_THRESHOLD, M_TOP_PAD.
_MALLOC = {-3: 1 << 25, -1: 1 << 30, -2: 1 << 26}
_ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)


@jax.jit
def threefry(k1, k2, x1, x2):
  """Threefry 2x32 as JAX has it on CPUs, a loop of five times four rounds."""
  def step(carried):
    i, a, b, keys, (these, others) = carried
    for at in range(4):
      by = lax.squeeze(lax.slice_in_dim(these, at, at + 1), (0,))
      a = a + b
      b = a ^ (b << by | b >> np.uint32(32) - by)
    i = i + np.uint32(1)
    first, second, third = keys
    return (
        i, a + first, b + second + i, (second, third, first), (others, these)
    )

  keys = k1, k2, k1 ^ k2 ^ np.uint32(0x1BD11BDA)
  rotations = tuple(np.array(r, np.uint32) for r in _ROTATIONS)
  begun = np.uint32(0), x1 + k1, x2 + k2, (*keys[1:], k1), rotations
  return lax.while_loop(lambda carried: carried[0] < 5, step, begun)[1:3]


def trace_threefry_once() -> None:
  """Of each shape: JAX traces its loop for every draw of every program.

  For accelerators that are not here, too: of programs that are lowered for them
  and never run, writing out all rounds of each draw took a third of the time.
  """
  rule = jax.interpreters.mlir.lower_fun(threefry, multiple_results=True)
  others = ('cuda', 'rocm', 'tpu') if jax.default_backend() == 'cpu' else ()
  for platform in ('cpu', *others):
    jax.interpreters.mlir.register_lowering(
        threefry2x32_p, rule, platform=platform, inline=False
    )


def share_contexts(programs: int = 200) -> None:
  """So many programs after each other are lowered in one MLIR context.

  JAX makes each its own, which takes 7 ms and a megabyte that stays: a third of
  the time of an operation outside of `jit`. The programs are the same.
  """
  make = getattr(mlir, 'make_ir_context', None)
  if make is None:
    return
  numbers, latest = itertools.count(), {}

  def shared():
    if _is_lowering():  # What is computed meanwhile would be put into it.
      return make()
    if next(numbers) % programs == 0:
      latest['context'] = make()
    return latest['context']

  mlir.make_ir_context = shared


def _is_lowering() -> bool:
  try:
    return mlir.ir.Context.current is not None
  except ValueError:
    return False


def share_programs(folder: pathlib.Path, worker: str) -> None:
  """What a worker has compiled, all others and later runs find in `folder`.

  JAX writes an entry in place, where another worker could read half of it:
  here it appears when it is whole. Without JAX's class for that each worker
  has a folder of its own.
  """
  if hasattr(LRUCache, 'put'):
    LRUCache.put = _put
  else:
    folder = folder / worker
  if hasattr(compilation_cache, 'zlib'):
    # Four times as quick, for a fifth more on the disk.
    compilation_cache.zlib = types.SimpleNamespace(
        compress=lambda entry: zlib.compress(entry, 1),
        decompress=zlib.decompress,
    )
  _KEPT.update(
      jax_compilation_cache_dir=str(folder),
      # Small ones too: they are most of what a second run would compile.
      jax_persistent_cache_min_compile_time_secs=0,
  )
  keep_programs()
  # XLA's caches for GPUs would put the folder's name into every entry's.
  jax.config.update('jax_persistent_cache_enable_xla_caches', 'none')


def keep_programs() -> None:
  """As `share_programs` has it, also after a command line under test."""
  for name, value in _KEPT.items():
    if jax.config.values[name] != value:
      jax.config.update(name, value)


_KEPT: dict[str, Any] = {}


def _put(cache: LRUCache, key: str, value: bytes) -> None:
  entry = pathlib.Path(str(cache.path), f'{key}-cache')
  if not entry.exists():
    own = entry.with_name(f'{key}.{os.getpid()}')
    own.write_bytes(value)
    own.replace(entry)
