"""Gradient compression: only the largest elements are sent (Kang et al. 2022).

Eq. 18 keeps the elements above t, the smallest of the top share pi of all
batch x width elements. Three readings meet here. Printed, it compares signed
values: all negative elements go first (`signed=True`). The public code of Fu et
al. (2022) compares magnitudes, as compression is commonly meant: our default.
And both compare strictly, so that t itself and all that tie with it go, which
turns a constant gradient into zeros; "retaining the top pi" says otherwise, so
that here exactly ceil(pi * elements) stay, the first ones where some tie.
"""
import jax.numpy as jnp
from jax import lax

from vfljax import check
from vfljax.defense import Defense, each
from vfljax.ordering import as_integers
from vfljax.types import Array


def compress(
    d: Array, keep, signed: bool = False, weights: Array | None = None
) -> Array:
  """Zeroes all but the top share `keep` of the elements of the whole tensor.

  Args:
    d: [batch, width] gradients.
    keep: Eq. 18's pi, in (0, 1]; may be traced.
    signed: Ranks by value, as Eq. 18 is printed, instead of by magnitude.
    weights: [batch] of 0 and 1; rows at 0 (padding) are not counted and become
      zeros.

  Returns:
    [batch, width], with ceil(keep * elements) elements of `d` in place.
  """
  rank = d if signed else jnp.abs(d)
  count = jnp.asarray(d.size, jnp.float32)
  if weights is not None:
    rank = jnp.where(weights[:, None] > 0, rank, -jnp.inf)
    count = weights.sum().astype(jnp.float32) * d.shape[-1]
  flat = as_integers(rank.astype(jnp.promote_types(d.dtype, jnp.float32)))
  flat = flat.ravel()
  kept = _ceil_share(keep, count)
  t = lax.sort(flat, is_stable=False)[flat.size - kept]
  above, tied = flat > t, flat == t
  spare = kept - above.sum(dtype=jnp.int32)
  stays = above | (tied & (jnp.cumsum(tied, dtype=jnp.int32) <= spare))
  return jnp.where(stays.reshape(d.shape), d, jnp.zeros_like(d))


def gradient_compression(keep, signed: bool = False) -> Defense:
  """Compresses each party's gradient on its own.

  Args:
    keep: Eq. 18's pi, in (0, 1]; may be traced.
    signed: See `compress`.

  Raises:
    ValueError: if `keep` is outside (0, 1].
  """
  check.inside('keep', keep, 0, 1, open_low=True)

  def perturb(key, d, labels):
    del key
    return compress(d, keep, signed, labels.sum(-1))

  return Defense(gradient=each(perturb))


def _ceil_share(share, count: Array) -> Array:
  """ceil(share * count) in [1, count], safe from 32-bit rounding upwards."""
  exact = jnp.asarray(share, jnp.float32) * count
  whole = jnp.ceil(exact * (1 - 1e-6)).astype(jnp.int32)
  return jnp.clip(whole, 1, jnp.maximum(count, 1).astype(jnp.int32))
