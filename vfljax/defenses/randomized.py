"""GAFM's randomized response, its cross-entropy, and the norms of gradients."""
from collections.abc import Callable, Sequence
from functools import partial

import jax
from jax import lax
import jax.numpy as jnp

from vfljax import target
from vfljax.numerics import row_norms
from vfljax.types import Array

NORMS = ('batch', 'sample', 'none')
LINKS = ('identity', 'sigmoid', 'printed')
EDGE = 1e-4  # Probabilities are kept this far from 0 and 1 (ours).


def randomized_response(y: Array, u: Array) -> Array:
  """Eq. 4: 0.5 + u for a positive sample and 0.5 - u for a negative one.

  Args:
    y: [batch] of 0 and 1; values in between are interpolated.
    u: [batch] in [0, delta].
  """
  return 0.5 + (2 * y - 1) * u


def cross_entropy(f: Array, target: Array, link: str = 'identity') -> Array:
  """Eq. 5 for each sample, [batch].

  Args:
    f: [batch, d].
    target: [batch], the randomized response.
    link: See `gafm.Reading`.
  """
  p = probability(f, link)
  other = 1 - p
  if link == 'printed':
    other = jax.nn.sigmoid(1 - f).mean(-1)
  return -(target * jnp.log(p) + (1 - target) * jnp.log(other))


def probability(f: Array, link: str = 'identity') -> Array:
  """P(positive) [batch], in [EDGE, 1 - EDGE], of embeddings f [batch, d]."""
  p = f if link == 'identity' else jax.nn.sigmoid(f)
  # Clipped in value only: outside, the gradient is the edge's and not 0.
  p = p + jax.lax.stop_gradient(jnp.clip(p, EDGE, 1 - EDGE) - p)
  return p.mean(-1)


def normalise(g: Array, norm: str = 'batch') -> Array:
  """g / ||g|| of gradients g [batch, d]; 0 where the norm is 0.

  Args:
    norm: One norm over the 'batch', one a 'sample', or 'none'.
  """
  if norm == 'none':
    return g
  rows = g.reshape(1, -1) if norm == 'batch' else g
  norms = (_one_pass if target.kind() == 'gpu' else row_norms)(rows)[:, None]
  return (rows / jnp.where(norms > 0, norms, 1)).reshape(g.shape)


def _one_pass(rows: Array) -> Array:
  """`row_norms` without their largest entries, one kernel instead of two.

  It is the hypotenuse of two entries, of that and the next one, and so on,
  whose squares are of ratios and do not underflow either.
  """
  zero = jnp.zeros((), rows.dtype)
  found = lax.reduce(jnp.abs(rows), zero, _hypotenuse, (1,))
  return jnp.where(jnp.isinf(found), jnp.nan, found)  # As by `row_norms`.


def _hypotenuse(a: Array, b: Array) -> Array:
  """(a^2 + b^2)^(1/2) of a, b >= 0."""
  longer, shorter = jnp.maximum(a, b), jnp.minimum(a, b)
  ratio = shorter / jnp.where(longer > 0, longer, 1)
  return longer * jnp.sqrt(1 + ratio * ratio)


def scaled_gradients(f: Array, weights: Sequence, norm: str) -> list[Array]:
  """A copy of f per weight, whose gradient is weight * `normalise`(gradient).

  On a GPU all gradients are normalised in one batch.
  """
  weights = [jnp.asarray(w, f.dtype) for w in weights]
  if target.kind() != 'gpu':
    return [_scaled(f, w, partial(normalise, norm=norm)) for w in weights]
  all_of = jax.vmap(partial(normalise, norm=norm))
  copies = jnp.broadcast_to(f, (len(weights), *f.shape))
  scales = jnp.stack(weights).reshape(-1, *[1] * f.ndim)
  return list(_scaled(copies, scales, all_of))


def _scaled(f: Array, weight: Array, how: Callable[[Array], Array]) -> Array:
  """Returns f; its gradient becomes weight * how(gradient)."""

  @jax.custom_vjp
  def same(f, weight):
    del weight
    return f

  def forward(f, weight):
    return f, weight

  def backward(weight, g):
    return weight * how(g), jnp.zeros_like(weight)

  same.defvjp(forward, backward)
  return same(f, weight)


def hide(labels: Array, share: Array) -> Array:
  """Labels [batch, 2] that encode each sample's u / delta, for `reveal`.

  They stay distributions, with the larger entry, now 3/4 to 1, in its place.

  Args:
    labels: [batch, 2], 0 and 1.
    share: [batch] in [0, 1).
  """
  larger = 0.75 + share[:, None] / 4
  hidden = jnp.where(labels > 0.5, larger, 1 - larger)
  return hidden * labels.sum(-1, keepdims=True)  # Padding has no label.


def reveal(labels: Array) -> tuple[Array, Array]:
  """(y, share), both [batch], decoded from labels that `hide` returned."""
  q = labels[:, 1]
  return (q > 0.5).astype(q.dtype), 4 * jnp.maximum(q, 1 - q) - 3
