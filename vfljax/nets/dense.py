"""Linear layers, and the initialization of weights.

Weights and biases start uniform in +-1/sqrt(fan_in), PyTorch's default and so
the papers'; on tables with few columns it decides how fast networks learn.
"""
from collections.abc import Callable
import math
from typing import Any

from flax import linen as nn
import jax
import jax.numpy as jnp

from vfljax import fusing
from vfljax.nets import product
from vfljax.nets.once import is_intercepted
from vfljax.types import Array


def fan_in_uniform(fan_in: int) -> Callable[..., Array]:
  """An initializer: uniform in +-1/sqrt(fan_in)."""
  bound = 1 / math.sqrt(max(fan_in, 1))

  def draw(key, shape, dtype=jnp.float32):
    return jax.random.uniform(key, shape, dtype, -bound, bound)

  return draw


class Read:
  """A mixin for layers: existing weights are read without their initializer.

  Flax traces a weight's initializer whenever the weight is used, to compare
  shapes, which is half of the time to trace a network. Here shapes are compared
  directly.
  """

  @nn.nowrap
  def param(self, name: str, start: Callable, shape: Any, *rest, **options):
    """As `nn.Module.param`."""
    layer: Any = self
    if layer.has_variable('params', name):
      weight = layer.get_variable('params', name)
      if getattr(weight, 'shape', None) == tuple(shape):
        return weight
    return super().param(name, start, shape, *rest, **options)  # pyright: ignore


class _Linear(Read, nn.Dense):
  pass


class Dense(nn.Module):
  """A linear layer with the initialization that the papers used."""

  width: int
  dtype: Any = None  # Of the arithmetic; by default the weights' and x's.

  @nn.compact
  def __call__(self, x):
    start = fan_in_uniform(x.shape[-1])
    layer = _Linear(
        self.width, dtype=self.dtype, kernel_init=start, bias_init=start,
        dot_general=product.dot_general, name='Dense_0',
    )
    y = layer(x)
    # Code that intercepts layers compares their output with the network's, so
    # then nothing may follow.
    return y if is_intercepted() else fusing.joined_back(y)
