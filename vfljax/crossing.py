"""Marks what crosses between parties in a round's trace, for `audit`.

A mark is the identity function with a name: it is in a traced program and gone
in the compiled one. `protocol` marks messages; defenses and networks use
`rows`, `counted` and `mask`, which tell which rows are padding.
"""
from collections.abc import Iterator
import contextlib
from contextvars import ContextVar
from typing import Any

from jax.ad_checkpoint import checkpoint_name
import jax.numpy as jnp

from vfljax import check, fusing
from vfljax.numerics import common_type, floating
from vfljax.types import Array, Embeddings

ROWS = 'vfljax: which rows are samples'
_IN_ROUND: ContextVar[Array | None] = ContextVar('rows', default=None)


def name(direction: str, k: int) -> str:
  """The mark on passive party k's message 'up' or 'down'.

  Raises:
    ValueError: for another direction, or another party: no audit would know
      the mark.
  """
  check.one_of('direction', direction, ('up', 'down'))
  check.count('k', k)
  return f'message {direction}, party {k}'


def sent(direction: str, messages: Embeddings) -> Any:
  """The same messages, marked, of passive parties 1, 2, ..."""
  return tuple(
      checkpoint_name(m, name(direction, k))
      for k, m in enumerate(messages, start=1)
  )


def rows(labels: Array) -> Array:
  """[batch]: 1 for a sample, 0 for padding, which all parties know.

  Args:
    labels: [batch, classes] the batch's own labels. `audit` accepts the mark
      for nothing else, since another sum over classes may reveal the class.

  Raises:
    ValueError: for an array of another rank, whose sums are of no rows.
  """
  if jnp.ndim(labels) != 2:
    raise ValueError(
        f'labels must be [batch, classes]; got the shape {jnp.shape(labels)}.'
    )
  # Summed in float32, half precision would be converted again before the mark,
  # which `audit` wants on the sum.
  sums = checkpoint_name(fusing.row_sums(floating(labels)), ROWS)
  return sums.astype(labels.dtype)


def of_round() -> Array | None:
  """What `counted` and `mask` use: a round's `rows`; `None` outside of one."""
  return _IN_ROUND.get()


@contextlib.contextmanager
def in_round(real: Array | None) -> Iterator[None]:
  """A context in which `counted` and `mask` use these `rows`, [batch]."""
  token = _IN_ROUND.set(real)
  try:
    yield
  finally:
    _IN_ROUND.reset(token)


def counted(u: Array) -> Array:
  """[batch]: 1 for each row of a passive party's `u`, 0 if it is padding.

  For sums over a round's rows, such as a penalty or a statistic. Outside of a
  round there is no padding. The dtype is u's, or float32 if that is larger.
  """
  real, dtype = of_round(), common_type(u.dtype, jnp.float32)
  if real is None or len(real) != len(u):
    return jnp.ones(len(u), dtype)
  return (real > 0).astype(dtype)


def mask(u: Array) -> Array | None:
  """bool [batch] of the rows that are `counted`, for `where=` of a mean.

  `None` where no row can be padding. If all rows are padding, all are true: a
  mean over no rows would be NaN, and this one has no effect.
  """
  real = of_round()
  if real is None or len(real) != len(u):
    return None
  real = real > 0
  return real | ~real.any()
