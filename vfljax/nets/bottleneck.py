"""A variational bottleneck: an encoder to mean and deviation, and a decoder.

The network of VFLAIR, the authors' public code of MID (Zou et al. 2023), shared
by the defense that trains it and attacks that know its structure.
"""
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from vfljax.nets import base
from vfljax.types import Array, Net, Params


class Bottleneck(NamedTuple):
  """A bottleneck's weights."""

  decoder: Params
  encoder: Params


def bottleneck(
    width: int, scale: int = 1, hidden: int = 5, reference: bool = False
) -> tuple[Net, Net]:
  """Encoder [n, width] -> [n, 2 latent] and decoder [n, latent] -> [n, width].

  The latent width is scale * width.

  Args:
    width: The embedding's, flattened.
    scale, hidden, reference: As in `defenses.mid.mid`.
  """
  latent = scale * width
  final = 'relu' if reference else None
  between = (hidden * latent,) if hidden else ()
  return (
      base.mlp(2 * latent, final=final), base.mlp(*between, width, final=final)
  )


def is_linear(own: Any) -> bool:
  """Whether these are a bottleneck's weights, its decoder a linear layer's."""
  return isinstance(own, Bottleneck) and len(jax.tree.leaves(own.decoder)) == 2


def of_linear(own: Bottleneck, width: int) -> tuple[Net, Net]:
  """Encoder and decoder of weights that are `is_linear`.

  Args:
    own: The weights. They do not tell VFLAIR's further ReLUs (`reference`),
      without which these networks are.
    width: The embedding's, flattened.
  """
  latent = max(jax.tree.leaves(own.decoder), key=jnp.ndim).shape[0]
  return bottleneck(width, latent // width, hidden=0)


def encode(
    encoder: Net, params: Params, u: Array, shift: float
) -> tuple[Array, Array]:
  """Mean and logarithm of the deviation of T, [n, latent] each."""
  mean, s = jnp.split(encoder.apply(params, u), 2, axis=-1)
  return mean, log_softplus(s - shift)


def log_softplus(x: Array) -> Array:
  """log(log(1 + e^x)), also where softplus itself is 0 in 32 bits."""
  low = x < -15  # There softplus(x) equals e^x in 32 bits.
  return jnp.where(low, x, jnp.log(jax.nn.softplus(jnp.where(low, 0, x))))
