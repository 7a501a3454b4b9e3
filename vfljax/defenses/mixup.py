"""MixUp (Zhang et al. 2018; Kang et al. 2022, Eq. 20).

The federation trains on convex combinations of 2, 3 or 4 samples and not on
single ones. Parties share randomness, not data: the rows to mix and their
weights are drawn from a common key, and each party mixes its own part.
Inference is on samples as they are.

Eq. 20 mixes two samples with gamma in (0, 1), whose distribution the paper does
not give; nor does it say how three or four are mixed. Here weights are
Dirichlet: uniform on the simplex by default, which for two samples makes gamma
uniform; Zhang et al.'s Beta(a, a) for two is `concentration=a`.
"""
import jax
import jax.numpy as jnp
from jax.core import Tracer

from vfljax import check, crossing
from vfljax.defense import Defense
from vfljax.numerics import common_type
from vfljax.types import Array, Batch, Key

LIMIT = 4  # The most samples that a traced number can stand for.


def mixup(samples, concentration=1.0) -> Defense:
  """Replaces every sample of a batch by a mixture of `samples` of them.

  Args:
    samples: 2 or more, whole; may be traced, then at most `LIMIT`.
    concentration: Of the Dirichlet distribution of the weights, above 0: near 0
      one sample has nearly all the weight, 1 is uniform on the simplex, and
      large values weigh all alike. May be traced.

  Raises:
    ValueError: if `samples` is below 2 or not whole, or `concentration` not
      above 0; when a batch has fewer rows than `samples`.
  """
  check.whole('mixup: samples', samples, 2)
  check.above('mixup: concentration', concentration, 0)
  traced = isinstance(samples, Tracer)
  most = LIMIT if traced else int(samples)

  def batch(key: Key, batch: Batch) -> Batch:
    count = len(batch.labels)
    if not traced and count < most:
      raise ValueError(f'mixup: a batch of {count} cannot mix {most} samples.')
    # In a round as its samples came in: here another hook may have mixed them.
    real = crossing.of_round()
    valid = (crossing.rows(batch.labels) if real is None else real) > 0
    rows, weights = coins(key, valid, samples, most, concentration)
    mix = lambda x: mixture(x, rows, weights)
    features = jax.tree.map(mix, batch.features)
    return Batch(features, mix(batch.labels))

  return Defense(batch=batch)


def coins(
    key: Key, valid: Array, samples: Array | int, most: int,
    concentration: Array | float = 1.0,
) -> tuple[Array, Array]:
  """Which rows make up each mixture, and how much of each.

  Args:
    key: Shared by the parties.
    valid: [batch] True for a sample, False for padding, which is not mixed.
    samples: How many are mixed, 2..most; may be traced.
    most: The number of rows computed for each mixture; static.
    concentration: Of the weights' Dirichlet distribution, above 0.

  Returns:
    rows [most, batch], of which rows[0] is the row itself, all different if the
    batch has `most` samples; weights [most, batch] that sum to 1 over the first
    axis, above 0 for the first `samples`.
  """
  k_order, k_weights = jax.random.split(key)
  # A random cycle through the samples: a row's partners are those after it.
  lot = jax.random.uniform(k_order, valid.shape, jnp.float32)
  order = jnp.argsort(jnp.where(valid, lot, 2.0))
  place = jnp.argsort(order)
  steps = jnp.arange(most)[:, None]
  after = (place[None] + steps) % jnp.maximum(valid.sum(), 1)
  alone = jnp.arange(len(valid))[None]
  rows = jnp.where(valid[None], order[after], alone)
  # Normalised gamma variables are Dirichlet; as logarithms, none underflows.
  shares = _log_gamma(k_weights, concentration, rows.shape)
  counted = steps.astype(common_type(steps, samples)) < samples
  shares = jnp.where(counted, shares, -jnp.inf)
  return rows, jax.nn.softmax(shares, axis=0)


def _log_gamma(key: Key, shape_parameter, shape: tuple[int, ...]) -> Array:
  """Log of gamma variables; for 1, exponential ones, ten times as fast."""
  if isinstance(shape_parameter, (int, float)) and shape_parameter == 1:
    return jnp.log(jax.random.exponential(key, shape, jnp.float32))
  alpha = jnp.asarray(shape_parameter, jnp.float32)
  return jax.random.loggamma(key, alpha, shape, jnp.float32)


def mixture(x: Array, rows: Array, weights: Array) -> Array:
  """Weighted sums of the rows of x [batch, ...]; integers become float32."""
  x = jnp.asarray(x)  # Traced numbers index no NumPy.
  kind = common_type(x, jnp.float32)
  parts = x[rows].astype(kind)
  weights = weights.reshape(*weights.shape, *[1] * (x.ndim - 1))
  return (weights.astype(kind) * parts).sum(0)
