"""Networks are traced once: who traces one again is given its equations.

A start traces every network three times and a round differentiates it, in each
program anew, and Flax takes most of that time. `jax.jit` knows what it has
traced, and with `inline` its equations stand in a program as if they had been
traced there: it is the same, but that a function that it calls, an activation
say, may be in it twice.
"""
from collections.abc import Callable
import functools
from typing import Any

from flax import linen as nn
import jax
from jax.core import Tracer

from vfljax import target


def once(fn: Callable[..., Any]) -> Callable[..., Any]:
  """`fn(module, *arrays)`, traced once a module, kind of device and shapes."""

  def traced(kind, module, *arrays):
    del kind  # Which `fn` may ask for.
    return fn(module, *arrays)

  traced.__name__ = fn.__name__
  shared = jax.jit(traced, static_argnums=(0, 1), inline=True)

  @functools.wraps(fn)
  def called(module, *arrays):
    tracing = any(isinstance(x, Tracer) for x in jax.tree.leaves(arrays))
    if tracing and _is_its_own(module):
      return shared(target.kind(), module, *arrays)
    return fn(module, *arrays)

  return called


def is_intercepted() -> bool:
  """Whether somebody looks into networks' layers, or swaps their arithmetic.

  Flax does not say it in public: where we cannot know it, somebody does.
  """
  return bool(len(getattr(nn.module, '_global_interceptor_stack', [None])))


def _is_its_own(module: nn.Module) -> bool:
  """Whether a module is known by its fields, and nobody intercepts it."""
  try:
    hash(module)
  except TypeError:  # A field is an array, or somebody's own class.
    return False
  return not is_intercepted()
