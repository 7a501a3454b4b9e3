"""Trees of trainings, [cells, ...], cut into pieces and put together again."""
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np


def split(tree: Any, cells: int) -> list[Any]:
  """A tree of so many cells an entry, from one of all."""
  count = len(jax.tree.leaves(tree)[0])
  return [
      jax.tree.map(lambda x, i=i: x[i : i + cells], tree)
      for i in range(0, count, cells)
  ]


def joined(pieces: Sequence[Any]) -> Any:
  """The trees' leaves one after the other; of several on the host."""
  if len(pieces) == 1:
    return pieces[0]
  return jax.tree.map(_joined, *pieces)


def _joined(*leaves: Any) -> Any:
  if not jax.numpy.issubdtype(leaves[0].dtype, jax.dtypes.prng_key):
    return np.concatenate(leaves)
  data: Any = np.concatenate([jax.random.key_data(x) for x in leaves])
  impl = jax.random.key_impl(leaves[0])
  return jax.random.wrap_key_data(jax.numpy.asarray(data), impl=impl)
