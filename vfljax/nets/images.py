"""Shared by networks on images: types, inference in blocks, checks."""
from typing import Any

import jax
import jax.numpy as jnp

from vfljax import target
from vfljax.nets.base import NORMS
from vfljax.nets.convolution import METHODS
from vfljax.nets.once import is_intercepted
from vfljax.numerics import common_type, in_blocks
from vfljax.types import Array, Net

WHOLE = 256  # Up to so many samples are one block; more are cut into such,
ON_CPU = 64  # on a CPU into these, which `bench.predicting` found faster.


def check_options(norm: str, how: str) -> None:
  """Raises ValueError for an unknown norm or way to compute convolutions."""
  if norm not in NORMS or how not in METHODS:
    raise ValueError(
        f'norm must be one of {NORMS}, how one of {METHODS}; got {norm!r} and '
        f'{how!r}.'
    )


def dtype_of(name: str) -> Any:
  """The dtype that a network computes in; for '' `None`, that of its weights.

  Raises:
    ValueError: unless it is '' or the name of a floating-point type, or if
      JAX would compute in another one: in float32 for float64.
  """
  known = ('', 'float32', 'bfloat16', 'float16', 'float64')
  if name not in known:
    raise ValueError(f'dtype must be one of {known}; got {name!r}.')
  if name == 'float64' and not jax.config.jax_enable_x64:  # pyright: ignore
    raise ValueError(
        'dtype=float64 would be float32: JAX has no 64 bits unless '
        'JAX_ENABLE_X64=1 is set in the environment. Set it, or leave dtype '
        'out.'
    )
  return jnp.dtype(name) if name else None


def finish(x: Array) -> Array:
  """Embeddings as float32 at least, whatever they were computed in."""
  return jnp.asarray(x, common_type(x.dtype, jnp.float32))


def blockwise(net: Net, size: int = 0) -> Net:
  """`net`, whose inference runs on blocks of samples, one after the other.

  For a whole test set, a convolution's intermediate arrays may not fit into
  memory, in a large network, or into a CPU's cache, which makes a small one
  slow. Training is not changed. Nor are blocks made where layers are
  intercepted: such code expects each layer once, with all rows.

  Args:
    net: A network on images.
    size: Samples a block; with as many or fewer there is one block. 0: up to
      `WHOLE` samples are one block, more are cut into blocks of `WHOLE`, or of
      `ON_CPU` on a CPU.
  """

  def apply(params, x):
    if len(x) <= (size or WHOLE) or is_intercepted():
      return net.apply(params, x)
    block = size or (ON_CPU if target.kind() == 'cpu' else WHOLE)
    return in_blocks(lambda part: net.apply(params, part), x, block)

  return net._replace(
      apply=apply,
      train=net.train or (lambda params, key, x: (net.apply(params, x), ())),
  )


def flatten(x: Array) -> Array:
  """[batch, ...] to [batch, features]."""
  return jnp.reshape(x, (len(x), -1))


def check_images(name: str, x: Any) -> None:
  """Raises ValueError if `x` is not [batch, height, width, channels]."""
  if jnp.ndim(x) != 4:
    raise ValueError(
        f'{name} is for images, [batch, height, width, channels]; got features '
        f'of shape {jnp.shape(x)}. Use mlp3 for a table.'
    )
