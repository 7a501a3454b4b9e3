"""Gathers a round's samples out of all samples by their indices.

Arrays are gathered as they are, except narrow ones on a TPU, which pads an
array's last axis to 128 numbers: two columns of labels take 64 times their
memory there, and most of a round's kernels would copy them. So each column
becomes an array of its own before the first round. (One table of all arrays
side by side was slower on both: on a TPU twice the kernels, on a GPU, where
nothing is padded, three more than it saved.)
"""
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from vfljax import target
from vfljax.types import Array

NARROW = 16  # Columns.


def taker(data: Any, padded: bool) -> Callable[[Array], Any]:
  """A function that gathers rows out of every array of a pytree.

  Args:
    data: Arrays [n, ...].
    padded: Whether an index may be past the end: such a row is zeros.

  Returns:
    indices [m] -> the pytree with [m, ...].
  """
  on_tpu = target.kind() == 'tpu'
  leaves, structure = jax.tree.flatten(jax.tree.map(jnp.asarray, data))
  parts = [
      [x[:, i] for i in range(x.shape[1])] if on_tpu and _is_narrow(x) else x
      for x in leaves
  ]

  def of(part, i):
    if isinstance(part, list):
      return jnp.stack([_take(x, i, padded) for x in part], axis=1)
    return _take(part, i, padded)

  return lambda i: jax.tree.unflatten(structure, [of(x, i) for x in parts])


def failed(found: Any, i: Array, like: Array, end: int) -> Any:
  """A round's outcome, with NaN for every float if it had a row that is not.

  A gather takes another sample in its place. A traced number cannot be refused,
  so that the round is to fail, and not to look as if it were right.

  Args:
    found: A pytree.
    i: [m] the indices that were gathered, of any integer type.
    like: Indices whose type is wide enough for `end`.
    end: Rows from 0 to end - 1 are there.
  """
  wide = max(like.dtype, i.dtype, key=lambda kind: kind.itemsize)
  i = i.astype(wide)
  right = ((i >= 0) & (i < end)).all()

  def marked(x):
    if not jnp.issubdtype(jnp.result_type(x), jnp.floating):
      return x
    return jnp.where(right, x, jnp.full_like(x, jnp.nan))

  return jax.tree.map(marked, found)


def _is_narrow(x: Array) -> bool:
  return x.ndim == 2 and 0 < x.shape[1] <= NARROW


def filled(x: Array, i: Array) -> Array:
  """Rows `i` [m], each 0 to 2^31 - 1, of `x`; zeros for one past its end.

  The gather's own way to fill would do, but checkify takes it for a mistake.
  """
  i = i.astype(jnp.int32)  # A narrower type may not hold the number of rows.
  found = x.at[jnp.minimum(i, len(x) - 1)].get(mode='promise_in_bounds')
  real = (i < len(x)).reshape(-1, *[1] * (x.ndim - 1))
  return jnp.where(real, found, jnp.zeros((), x.dtype))


def _take(x: Array, i: Array, padded: bool) -> Array:
  return filled(x, i) if padded else x.at[i].get(mode='promise_in_bounds')
