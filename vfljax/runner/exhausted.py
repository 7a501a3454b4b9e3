"""How the end of memory is told, by whoever comes to it."""

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
