"""The kind of device for which a program is traced.

A program computes the same function everywhere, but its fastest form differs: a
convolution as one product of patches or as XLA's own, a loop of known length or
one that ends early. The form is chosen while tracing, for the devices that JAX
has here. To export a program, or to compile it for another machine, name
another kind with `tracing_for`.
"""
from collections.abc import Iterator
import contextlib
import contextvars

import jax

# Platforms that JAX exports for, with the name of their devices' kind.
KINDS = dict(cpu='cpu', gpu='gpu', cuda='gpu', rocm='gpu', tpu='tpu')
_NAMED = contextvars.ContextVar('vfljax_target', default='')


def kind() -> str:
  """The kind of device to trace for: 'cpu', 'gpu' or 'tpu'."""
  return named() or jax.default_backend()


def named() -> str:
  """The kind that `tracing_for` has set; '' outside of it."""
  return _NAMED.get()


@contextlib.contextmanager
def tracing_for(platform: str) -> Iterator[None]:
  """A context in which programs are traced for another kind of device.

  JAX caches traces: a function under `jit` that was traced before, for the
  devices here, is not traced again. Use a new function.

  Args:
    platform: One of `KINDS`.

  Raises:
    ValueError: for another.
  """
  if platform not in KINDS:
    raise ValueError(
        f'platform must be one of {", ".join(KINDS)}; got {platform!r}.'
    )
  token = _NAMED.set(KINDS[platform])
  try:
    yield
  finally:
    _NAMED.reset(token)
