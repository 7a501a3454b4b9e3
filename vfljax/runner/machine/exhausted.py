"""How the end of memory is told, by whoever comes to it."""
from collections.abc import Iterator
import contextlib

import jax

from vfljax.runner.errors import UserError

# By XLA's allocators, by what it calls in turn (a CPU's products, as INTERNAL),
# and by Python.
OUT_OF_MEMORY = (
    'resource_exhausted', 'out of memory', 'allocate', 'memoryerror',
    'ynnpack operation failed',
)


def is_memory(error: BaseException) -> bool:
  """Whether that is what an error says."""
  said = f'{type(error).__name__} {error}'.lower()
  return any(sign in said for sign in OUT_OF_MEMORY)


@contextlib.contextmanager
def explained() -> Iterator[None]:
  """Turns the end of a device's memory into advice."""
  try:
    yield
  except (jax.errors.JaxRuntimeError, MemoryError) as error:
    if not is_memory(error):
      raise
    raise UserError(
        'The device has too little memory for all trainings at once.\nTrain '
        'fewer at a time: --config.seeds_per_chunk=1, or 2, ..., or '
        '--config.strengths_per_chunk=1. If samples are what is too large: '
        '--config.data.stream=100 rounds at a time. Either needs a new '
        '--workdir.'
    ) from None
