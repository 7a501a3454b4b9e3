"""What parties may know of each other, marked in a round's trace for `audit`.

A mark is the identity: it has a name in a traced program and is gone when that
is compiled. Whoever is not `protocol` needs `rows` only.
"""
from collections.abc import Iterator
import contextlib
from contextvars import ContextVar
from typing import Any

from jax.ad_checkpoint import checkpoint_name
import jax.numpy as jnp

from vfljax import fusing
from vfljax.numerics import common_type
from vfljax.types import Array, Embeddings

ROWS = 'vfljax: which rows are samples'
_IN_ROUND: ContextVar[Array | None] = ContextVar('rows', default=None)


def name(direction: str, k: int) -> str:
  """The mark on passive party k's message 'up' or 'down'."""
  return f'message {direction}, party {k}'


def sent(direction: str, messages: Embeddings) -> Any:
  """The same messages, marked; those of passive parties 1, 2, ..."""
  return tuple(
      checkpoint_name(m, name(direction, k))
      for k, m in enumerate(messages, start=1)
  )


def rows(labels: Array) -> Array:
  """[batch]: 1 for a sample, 0 for padding, which all parties know.

  Args:
    labels: [batch, classes] the batch's as they are, since a sum over classes
      of anything else may tell a class: there `audit` does not take the mark.
  """
  return checkpoint_name(fusing.row_sums(labels), ROWS)


@contextlib.contextmanager
def in_round(real: Array) -> Iterator[None]:
  """A round with these `rows`, for `counted` in all that is traced in it."""
  token = _IN_ROUND.set(real)
  try:
    yield
  finally:
    _IN_ROUND.reset(token)


def counted(u: Array) -> Array:
  """[batch]: 1 for each row of a passive party's `u`, 0 if it is padding.

  What a party adds up over a round's rows, a penalty or a statistic, counts
  samples alone. Outside of a round there is no padding. Of u's type, but
  float32 at least.
  """
  real, dtype = _IN_ROUND.get(), common_type(u.dtype, jnp.float32)
  if real is None or len(real) != len(u):
    return jnp.ones(len(u), dtype)
  return (real > 0).astype(dtype)


def mask(u: Array) -> Array | None:
  """bool [batch] of the rows that are `counted`, for `where=` of a mean.

  `None` where no row can be padding. Where all are, all are taken: there is no
  mean of no rows, and nothing comes of that one.
  """
  real = _IN_ROUND.get()
  if real is None or len(real) != len(u):
    return None
  real = real > 0
  return real | ~real.any()
