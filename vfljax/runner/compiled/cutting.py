"""Cuts trees of trainings, [cells, ...], into pieces and joins them again."""
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np


def split(tree: Any, cells: int) -> list[Any]:
  """Cuts a tree into trees of `cells` trainings each."""
  count = len(jax.tree.leaves(tree)[0])
  return [
      jax.tree.map(lambda x, i=i: x[i : i + cells], tree)
      for i in range(0, count, cells)
  ]


def joined(pieces: Sequence[Any]) -> Any:
  """Concatenates the trees' leaves; several trees end on the host."""
  if len(pieces) == 1:
    return pieces[0]
  return jax.tree.map(_joined, *pieces)


def _joined(*leaves: Any) -> Any:
  if not jax.numpy.issubdtype(leaves[0].dtype, jax.dtypes.prng_key):
    return np.concatenate(leaves)
  data: Any = np.concatenate([jax.random.key_data(x) for x in leaves])
  impl = jax.random.key_impl(leaves[0])
  return jax.random.wrap_key_data(jax.numpy.asarray(data), impl=impl)
