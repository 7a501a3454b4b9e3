"""Measures which of several functions is the fastest on a device."""
from collections.abc import Callable, Mapping
import logging
import time
from typing import Any

import jax
import numpy as np

from vfljax.mpc import x64

_LOG = logging.getLogger(__name__)
_TURNS = 7


def compiled(
    platform: str, fn: Callable[..., Any], *arguments: Any
) -> Callable[[], Any]:
  """Compiles `fn` for concrete arguments, also while a caller is being traced.

  With the options of whole 64-bit programs (`x64.jit`).

  Returns:
    A function without arguments that waits for the results: NumPy arrays.
  """
  device = jax.devices(platform)[0]
  options = x64.WIDE if platform == 'cpu' else None
  with jax.enable_x64(True), jax.default_device(device):
    shapes = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), arguments
    )
    run = jax.jit(fn).lower(*shapes).compile(compiler_options=options)

  def call():
    with jax.enable_x64(True), jax.default_device(device):
      return jax.tree.map(np.asarray, run(*arguments))

  return call


def order(
    platform: str, rivals: Mapping[str, Callable[..., Any]], *arguments: Any
) -> tuple[str, ...]:
  """The names of functions of the same arguments, the fastest first."""
  seconds = {
      name: _least(compiled(platform, fn, *arguments))
      for name, fn in rivals.items()
  }
  _LOG.info('mpc: on %s %s', platform, {
      name: f'{least:.2e} s' for name, least in seconds.items()
  })
  return tuple(sorted(seconds, key=lambda name: seconds[name]))


def _least(call: Callable[[], Any]) -> float:
  """Seconds of the fastest call, the first left out."""
  call()
  times = []
  for _ in range(_TURNS):
    began = time.perf_counter()
    call()
    times.append(time.perf_counter() - began)
  return min(times)
