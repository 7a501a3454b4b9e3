"""How tests compile: quickly, for they run a program once or twice."""
from importlib import metadata
import itertools
import os
import pathlib

import jax

try:
  from jax._src.interpreters import mlir
  from jax._src.lru_cache import LRUCache
except ImportError:  # JAX's own affair, which may be elsewhere one day.
  mlir = LRUCache = None

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
  jax.config.update('jax_compilation_cache_dir', str(folder))
  # Small programs too: they are most of what a second run would compile.
  jax.config.update('jax_persistent_cache_min_compile_time_secs', 0)
  # XLA's caches for GPUs would put the folder's name into every entry's.
  jax.config.update('jax_persistent_cache_enable_xla_caches', 'none')


def _put(cache: LRUCache, key: str, value: bytes) -> None:
  entry = pathlib.Path(str(cache.path), f'{key}-cache')
  if not entry.exists():
    own = entry.with_name(f'{key}.{os.getpid()}')
    own.write_bytes(value)
    own.replace(entry)
