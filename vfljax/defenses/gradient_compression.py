"""Gradient compression: only the largest elements are sent (Kang et al. 2022).

Eq. 18 keeps the elements above t, the smallest of the top share pi of all
batch x width elements. It can be read in three ways. As printed, it compares
signed values: all negative elements are dropped first (`signed=True`). The
public code of Fu et al. (2022) compares magnitudes, as is usual in compression:
our default. Both compare strictly and so drop t and all elements that tie with
it, which turns a constant gradient into zeros; "retaining the top pi" says
otherwise, so that here exactly ceil(pi * elements) stay, the first of any ties.

Gradient sparsification (Aji and Heafield 2017), which Zou et al. (2023) compare
with, drops a share 1 - pi and adds the dropped elements to the next gradient:
`residual=True`. Cut-layer gradients belong to samples, and the next round has
others: as in VFLAIR, the residual of a row is added to the next round's sample
in that row. To that sample it is noise; it does not make up for what was
dropped, as it does where gradients of weights are compressed.
"""
import jax
import jax.numpy as jnp
from jax import lax

from vfljax import check
from vfljax.defense import Defense, each, slots
from vfljax.numerics import as_integers, common_type, floating
from vfljax.samples import reals
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

  Raises:
    ValueError: if `keep` is outside (0, 1], or `signed` is not True or False.
  """
  check.inside('keep', keep, 0, 1, open_low=True)
  check.one_of('signed', signed, (True, False))
  rank = d if signed else jnp.abs(d)
  count = jnp.asarray(d.size, jnp.float32)
  if weights is not None:
    rank = jnp.where(weights[:, None] > 0, rank, -jnp.inf)
    weights = floating(weights)  # No half precision counts to 257, or 2049.
    count = weights.sum().astype(jnp.float32) * d.shape[-1]
  flat = as_integers(rank.astype(common_type(d.dtype, jnp.float32)))
  flat = flat.ravel()
  kept = _ceil_share(keep, count)
  t = lax.sort(flat, is_stable=False)[flat.size - kept]
  above, tied = flat > t, flat == t
  spare = kept - above.sum(dtype=jnp.int32)
  stays = above | (tied & (jnp.cumsum(tied, dtype=jnp.int32) <= spare))
  return jnp.where(stays.reshape(d.shape), d, jnp.zeros_like(d))


def gradient_compression(
    keep, signed: bool = False, residual: bool = False
) -> Defense:
  """Compresses each party's gradient on its own.

  Args:
    keep: Eq. 18's pi, in (0, 1]; may be traced.
    signed: See `compress`.
    residual: Adds the elements that the last round dropped, row by row, before
      compressing; all rounds must then have equally many samples.

  Raises:
    ValueError: if `keep` is outside (0, 1], or `signed` or `residual` is not
      True or False.
  """
  check.inside('keep', keep, 0, 1, open_low=True)
  check.one_of('signed', signed, (True, False))
  check.one_of('residual', residual, (True, False))

  def perturb(key, d, labels):
    del key
    return compress(d, keep, signed, labels.sum(-1))

  if not residual:
    return Defense(gradient=each(perturb))

  def init(key, spec):
    del key
    return slots(spec, state=tuple(
        jnp.zeros(u.shape, u.dtype) for u in spec.embeddings
    ))

  def gradient(state, key, cut, labels):
    cut = tuple(map(reals, cut))
    _same_size(state, cut)
    whole = jax.tree.map(lambda r, d: (r + d).astype(d.dtype), state, cut)
    sent, _ = each(perturb)((), key, whole, labels)
    return sent, jax.tree.map(jnp.subtract, whole, sent)

  return Defense(init=init, gradient=gradient)


def _same_size(state, cut) -> None:
  """Raises ValueError if a round's size differs from the first round's."""
  if len(state[0]) != len(cut[0]):
    raise ValueError(
        'gradient_compression: with a residual all rounds need the same number '
        f'of samples; there were {len(state[0])} and now {len(cut[0])}. Use '
        "remainder='drop' or 'pad'."
    )


def _ceil_share(share, count: Array) -> Array:
  """ceil(share * count) in [1, count], despite 32-bit rounding upwards."""
  exact = jnp.asarray(share, jnp.float32) * count
  whole = jnp.ceil(exact * (1 - 1e-6)).astype(jnp.int32)
  return jnp.clip(whole, 1, jnp.maximum(count, 1).astype(jnp.int32))
