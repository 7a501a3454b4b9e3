"""Draws random samples of each class, for attackers who know a few labels."""
import jax
from jax import lax
import jax.numpy as jnp

from vfljax import check, samples
from vfljax.numerics import floating
from vfljax.types import Array, Key


def per_class(
    key: Key, labels: Array, count: int, low: float = 0.0
) -> tuple[Array, Array]:
  """`count` random samples of each class, or all of a class that has fewer.

  Args:
    key: Draws the samples.
    labels: [n, classes] one-hot; a row of zeros is of no class. Integers are
      returned as float32.
    count: 1 or more; more than n counts as n.
    low: Lower bound of the samples' random ranks, in [0, 1). With 0 a sample
      may draw a rank of 0 (one in 2^23), and is then left out.

  Returns:
    Their rows, [classes * count], and their labels, [classes * count, classes]:
    rows of zeros where a class has fewer.

  Raises:
    ValueError: if `count` is no integer of 1 or more.
  """
  check.count('Samples of each class', count)
  kind = samples.reals(labels).dtype
  labels = floating(labels)  # In half precision many would draw one rank, or 0.
  count = min(count, len(labels))
  lot = jax.random.uniform(key, (len(labels), 1), labels.dtype, low)
  ranked = jnp.where(labels > 0.5, lot, -1.0)  # [n, classes]
  score, rows = lax.top_k(ranked.T, count)  # [classes, count]
  rows, there = rows.ravel(), score.ravel() > 0
  known = labels[rows] * there[:, None].astype(labels.dtype)
  return rows, known.astype(kind)
