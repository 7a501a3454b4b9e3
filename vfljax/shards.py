"""What loops begin with in `jax.shard_map`, where a shard has a key of its own.

There a loop refuses to begin with what all shards share, a score of 0 or a
weight that nobody drew, where it goes on with what each has of its own.
"""
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp

from vfljax.types import Array, Key


def scalar(key: Key, value: float, dtype: Any = jnp.float32) -> Array:
  """The value, which each shard has of its own if the key is its own."""
  return lax.full_like(jax.random.key_data(key), value, dtype, ())


def own(key: Key, tree: Any) -> Any:
  """The same arrays; each shard's own, all of them, if the key is its own."""
  zero = scalar(key, 0, jnp.int32)
  if jax.typeof(zero) == jax.typeof(jnp.zeros((), jnp.int32)):
    return tree
  return jax.tree.map(lambda x: jnp.where(zero == 0, x, x), tree)
