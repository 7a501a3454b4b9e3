"""For which kind of device a program is traced, where that makes a difference.

A program is the same function everywhere; how it is best written down is not:
a convolution as one product of patches or as XLA's own, a loop of known length
or one that ends early. That is decided while tracing, for the devices that JAX
has here, unless `tracing_for` names another kind, as who exports a program or
compiles it for a machine elsewhere does.
"""
from collections.abc import Iterator
import contextlib
import contextvars

import jax

# What JAX exports for, by the name that devices have.
KINDS = dict(cpu='cpu', gpu='gpu', cuda='gpu', rocm='gpu', tpu='tpu')
_NAMED = contextvars.ContextVar('vfljax_target', default='')


def kind() -> str:
  """'cpu', 'gpu' or 'tpu'."""
  return named() or jax.default_backend()


def named() -> str:
  """What `tracing_for` has named; '' outside of it."""
  return _NAMED.get()


@contextlib.contextmanager
def tracing_for(platform: str) -> Iterator[None]:
  """What is traced inside is meant for another kind of device.

  JAX keeps what it has traced: a function under `jit` that was traced for the
  devices here before is not traced again. Give it a new one.

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
