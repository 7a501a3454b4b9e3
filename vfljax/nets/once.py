"""Traces a network once and reuses its equations.

Every program traces each network three times at its start and differentiates it
in a round, and so does the audit of what crosses between parties. Flax takes
most of the tracing time. `jax.jit` caches traces, and their derivatives, and
with `inline` a cached trace's equations are inserted as if traced there. The
program is the same, except that a function called by the network, such as an
activation, may be in it twice.
"""
from collections.abc import Callable
import functools
from typing import Any

from flax import linen as nn
import jax
from jax.core import Tracer

from vfljax import crossing, target

Interceptor = Callable[..., Any]  # As `nn.intercept_methods` takes.


def once(
    fn: Callable[..., Any], despite: Interceptor | None = None
) -> Callable[..., Any]:
  """`fn(module, *arrays)`, traced once per module, device kind and shapes.

  Where layers are intercepted, it is traced at each call.

  Args:
    fn: A function of a Linen module and pytrees of arrays.
    despite: An interceptor that does not matter, as all it reads is among the
      arrays.
  """

  def traced(kind, module, rows, *arrays):
    del kind  # A part of the cache's key, as `fn` may call `target.kind`.
    with crossing.in_round(rows):  # The module may ask which rows count.
      return fn(module, *arrays)

  traced.__name__ = fn.__name__
  shared = jax.jit(traced, static_argnums=(0, 1), inline=True)

  @functools.wraps(fn)
  def called(module, *arrays):
    tracing = any(isinstance(x, Tracer) for x in jax.tree.leaves(arrays))
    if tracing and _is_its_own(module) and not is_intercepted(despite):
      return shared(target.kind(), module, crossing.of_round(), *arrays)
    return fn(module, *arrays)

  return called


def is_intercepted(despite: Interceptor | None = None) -> bool:
  """Whether networks' layers are intercepted (`nn.intercept_methods`).

  Flax has no public way to ask; if its private one is missing, assumes yes.

  Args:
    despite: An interceptor that does not count.
  """
  stack = getattr(nn.module, '_global_interceptor_stack', [object()])
  return any(interceptor is not despite for interceptor in stack)


def _is_its_own(module: nn.Module) -> bool:
  """Whether a module can be a cache's key."""
  try:
    hash(module)
  except TypeError:  # A field is an array, or somebody's own class.
    return False
  return True
