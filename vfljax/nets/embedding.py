"""Embeddings and two linear layers: Kang et al. (2022), Table 9, for Criteo.

Every column is a category number with a vocabulary of its own; its embedding
stands beside the others'. The paper gives no sizes.
"""
import jax
import jax.numpy as jnp

from vfljax import check
from vfljax.nets import base
from vfljax.nets.wide_deep import check_columns, rows
from vfljax.types import Net


def embedding(
    width: int = 32, buckets: int = 1000, size: int = 8,
    hidden: tuple[int, ...] = (64,), activation: str = 'relu',
) -> Net:
  """Columns of category numbers, [batch, columns], to [batch, width].

  Args:
    width: Of the last linear layer.
    buckets: Size of every column's vocabulary, 1 or more. Numbers are rounded
      down; those outside 0..buckets-1 count as the nearest that is inside.
    size: Of a category's embedding, 1 or more; drawn from a normal of
      deviation 1 / sqrt(size).
    hidden: Widths of the linear layers before the last.
    activation: Between linear layers: a name of `base.ACTIVATIONS`.

  Raises:
    ValueError: if a size is below 1, or for an unknown activation.
  """
  check.sizes('embedding', buckets=buckets, size=size)
  dense = base.mlp(*hidden, width, activation=activation)

  def init(key, x):
    check_columns('embedding', x)
    k_table, k_dense = jax.random.split(key)
    shape = (buckets * x.shape[1], size)
    table = jax.random.normal(k_table, shape, jnp.float32) / size**0.5
    blank = jnp.zeros((1, x.shape[1] * size), jnp.float32)
    return dict(embedding=table, dense=dense.init(k_dense, blank))

  def apply(params, x):
    found = params['embedding'][rows(x, buckets)]
    return dense.apply(params['dense'], found.reshape(len(x), -1))

  return Net(init, apply)
