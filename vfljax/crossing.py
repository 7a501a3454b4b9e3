"""What parties may know of each other, marked in a round's trace for `audit`.

A mark is the identity: it has a name in a traced program and is gone when that
is compiled. Whoever is not `protocol` needs `rows` only.
"""
from typing import Any

from jax.ad_checkpoint import checkpoint_name

from vfljax import fusing
from vfljax.types import Array, Embeddings

ROWS = 'vfljax: which rows are samples'
TRAINED = 'vfljax: which rows are trained on'


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


def trained(labels: Array) -> Array:
  """`rows` of the labels that `Defense.batch` made, which are distributions.

  `protocol` marks them so, once a round.
  """
  return checkpoint_name(fusing.row_sums(labels), TRAINED)
