"""Wide & Deep (Cheng et al., 2016): a linear model beside a deep one.

Every column is a category number with its own vocabulary. The wide part adds up
a weight for each category; the deep part is an MLP on their embeddings. GAFM's
network for Criteo (appendix E.2): embeddings of 16, an MLP 16-16, one output.
"""
from typing import Any

import jax
import jax.numpy as jnp

from vfljax import check
from vfljax.nets import base
from vfljax.types import Array, Net


def wide_and_deep(
    buckets: int, *widths: int, embedding: int = 16, activation: str = 'relu',
    final: str = 'linear',
) -> Net:
  """Columns of category numbers, [batch, columns], to [batch, widths[-1]].

  Args:
    buckets: Size of every column's vocabulary, 1 or more. Numbers are rounded
      down; those outside 0..buckets-1 count as the nearest that is inside.
    widths: Of the deep part's layers, the output's last, which is the wide
      part's width too.
    embedding: Width of a category's embedding, 1 or more.
    activation: Between the deep part's layers.
    final: Of the sum of both parts.

  Raises:
    ValueError: if a size is below 1 or there are no widths.
  """
  check.sizes('wide_and_deep', buckets=buckets, embedding=embedding)
  deep = base.mlp(*widths, activation=activation)
  finish = base.ACTIVATIONS[final]

  def init(key, x):
    check_columns('wide_and_deep', x)
    k_wide, k_embedding, k_deep = jax.random.split(key, 3)
    rows = buckets * x.shape[1]
    table = _glorot(k_embedding, rows, embedding)
    zeros = lambda *shape: jnp.zeros(shape, jnp.float32)
    blank = zeros(1, x.shape[1] * embedding)
    return dict(
        wide=_glorot(k_wide, rows, widths[-1]), bias=zeros(widths[-1]),
        embedding=table, deep=deep.init(k_deep, blank),
    )

  def apply(params, x):
    row = rows(x, buckets)
    wide = params['wide'][row].sum(1) + params['bias'][None]
    embedded = params['embedding'][row].reshape(len(x), -1)
    return finish(wide + deep.apply(params['deep'], embedded))

  return Net(init, apply)


def wide_deep(
    width: int = 1, buckets: int = 1000, size: int = 16,
    hidden: tuple[int, ...] = (16, 16), activation: str = 'relu',
) -> Net:
  """Wide & Deep on columns of category numbers (GAFM, for Criteo)."""
  check.sizes('wide_deep', size=size)
  return wide_and_deep(
      buckets, *hidden, width, embedding=size, activation=activation
  )


def check_columns(name: str, x: Any) -> None:
  """Raises ValueError if `x` is not [batch, columns]."""
  if jnp.ndim(x) != 2:
    raise ValueError(
        f'{name} is for columns of category numbers, [batch, columns]; got '
        f'features of shape {jnp.shape(x)}. One column is x[:, None].'
    )


def rows(x: Array, buckets: int) -> Array:
  """Rows of the one table that holds all columns' vocabularies."""
  number = jnp.clip(jnp.floor(x).astype(jnp.int32), 0, buckets - 1)
  return number + buckets * jnp.arange(x.shape[1], dtype=jnp.int32)[None]


def _glorot(key, rows: int, width: int) -> Array:
  bound = (6 / (rows + width)) ** 0.5
  return jax.random.uniform(key, (rows, width), jnp.float32, -bound, bound)
