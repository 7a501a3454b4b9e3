"""How tests compile: quickly, for they run a program once or twice."""
from importlib import metadata
import itertools
import os

import jax

try:
  from jax._src.interpreters import mlir
except ImportError:  # JAX's own affair, which may be elsewhere one day.
  mlir = None

# The first jaxlib of which it is not known that it takes the flags below: XLA
# ends the process at one that it does not know.
_UNKNOWN = (0, 13)


def _flags() -> str:
  version = metadata.version('jaxlib').split('.')
  if tuple(map(int, version[:2])) >= _UNKNOWN:
    return ''
  return (
      '--xla_cpu_use_fusion_emitters=false '
      # One piece a program: cutting it up costs more than it gives back.
      '--xla_cpu_parallel_codegen_split_count=1'
  )


QUICK_FLAGS = _flags()


def compile_quickly() -> None:
  """Of this process alone: command lines under test inherit no flag."""
  jax.config.update('jax_disable_most_optimizations', True)
  before = os.environ.get('XLA_FLAGS')
  os.environ['XLA_FLAGS'] = f'{before or ""} {QUICK_FLAGS}'
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
