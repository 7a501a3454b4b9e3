"""A round's samples, taken out of all samples by their numbers.

Each party's features and the labels are gathered as they are, but on a TPU. It
pads the last axis of an array to 128 numbers, so that two columns of labels
take 64 times their memory: there they are laid side by side before the first
round, flat, in one table for each type of number. (On a GPU, which pads
nothing, taking the table apart again costs three kernels more than it saves.)
"""
from collections.abc import Callable
import math
from typing import Any

import jax
import jax.numpy as jnp

from vfljax import target
from vfljax.types import Array


def taker(data: Any, padded: bool) -> Callable[[Array], Any]:
  """What takes rows out of every array of a pytree.

  Args:
    data: Arrays [n, ...].
    padded: Whether an index may be past the end: such a row is zeros.

  Returns:
    indices [m] -> the pytree with [m, ...].
  """
  if target.kind() != 'tpu':
    return lambda i: jax.tree.map(lambda x: _take(x, i, padded), data)
  leaves, structure = jax.tree.flatten(data)
  kinds = {x.dtype for x in leaves}
  tables = {
      kind: jnp.concatenate([
          x.reshape(len(x), -1) for x in leaves if x.dtype == kind
      ], axis=1)
      for kind in sorted(kinds, key=str)
  }

  def take(i):
    found, used = [], dict.fromkeys(tables, 0)
    rows = {kind: _take(x, i, padded) for kind, x in tables.items()}
    for x in leaves:
      first, width = used[x.dtype], math.prod(x.shape[1:])
      used[x.dtype] += width
      own = rows[x.dtype][:, first : first + width]
      found.append(own.reshape(len(i), *x.shape[1:]))
    return jax.tree.unflatten(structure, found)

  return take


def _take(x: Array, i: Array, padded: bool) -> Array:
  if padded:
    return x.at[i].get(mode='fill', fill_value=0)
  return x.at[i].get(mode='promise_in_bounds')
