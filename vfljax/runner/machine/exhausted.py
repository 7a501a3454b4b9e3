"""Recognises that memory has run out, or will, and says what to do."""
from collections.abc import Iterator
import contextlib

import jax

from vfljax import target
from vfljax.data.files import memory
from vfljax.runner.errors import UserError

# Words in the errors of XLA's allocators, of libraries that XLA calls (products
# on a CPU, as INTERNAL), and of Python.
OUT_OF_MEMORY = (
    'resource_exhausted', 'out of memory', 'allocate', 'memoryerror',
    'ynnpack operation failed',
)


def is_memory(error: BaseException) -> bool:
  """Whether an error says that memory has run out."""
  said = f'{type(error).__name__} {error}'.lower()
  return any(sign in said for sign in OUT_OF_MEMORY)


def warning(program: jax.stages.Compiled) -> str:
  """What to say of a program that takes more memory than a CPU's machine has.

  Linux would end the process without a word. '' for a program that fits, and
  for devices with memory of their own, whose errors `explained` meets.
  """
  found = program.memory_analysis() if target.kind() == 'cpu' else None
  if found is None:
    return ''
  one = (
      found.argument_size_in_bytes + found.output_size_in_bytes
      - found.alias_size_in_bytes + found.temp_size_in_bytes
  )
  devices, there = jax.local_device_count(), memory()
  if devices * one <= there:
    return ''
  gib = lambda size: f'{size / 2**30:.3g} GiB'
  several = devices > 1
  few = f'--devices=1 (at least {gib(one)}), or ' if several else ''
  return (
      f'Memory: a program takes about {gib(devices * one)}, of {gib(there)}. '
      'The system may end this process. To take less, type '
      f'{few}--config.data.limit=10000 for fewer rows, of images also '
      '--config.data.test_limit=1000, or a smaller --config.train.batch_size, '
      '--config.attack.replay_rounds, --config.seeds_per_chunk or network. '
      f'All {"but --devices " if several else ""}need a new --workdir.'
  )


@contextlib.contextmanager
def explained() -> Iterator[None]:
  """Turns out-of-memory errors in the block into `UserError` with advice."""
  try:
    yield
  except (jax.errors.JaxRuntimeError, MemoryError) as error:
    if not is_memory(error):
      raise
    if target.kind() == 'cpu':  # Which trains one by one.
      one = '--devices=1, as each device has a copy of the samples; or '
      raise UserError(
          'There is too little memory for these samples and trainings.\nType '
          f'{one if jax.local_device_count() > 1 else ""}'
          '--config.data.limit=10000 for fewer rows, or leave columns out. '
          'Large networks take less with --config.seeds_per_chunk=1. All but '
          '--devices need a new --workdir.'
      ) from None
    raise UserError(
        'The device has too little memory for all trainings at once.\nTrain '
        'fewer at a time, with --config.seeds_per_chunk=1 (or 2, ...) or '
        '--config.strengths_per_chunk=1. If the samples are too large, type '
        '--config.data.stream=100 (rounds at a time). Either needs a new '
        '--workdir.'
    ) from None
