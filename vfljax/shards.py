"""Initial values of loops inside `jax.shard_map`, with a key for each shard.

There a loop must not start from a value that all shards share (a score of 0, or
a weight that was not drawn) if later values vary over shards.
"""
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp

from vfljax.types import Array, Key


def scalar(key: Key, value: float, dtype: Any = jnp.float32) -> Array:
  """A scalar that varies over shards if the key does."""
  return lax.full_like(jax.random.key_data(key), value, dtype, ())


def own(key: Key, tree: Any) -> Any:
  """The same arrays, which all vary over shards if the key does."""
  zero = scalar(key, 0, jnp.int32)
  if jax.typeof(zero) == jax.typeof(jnp.zeros((), jnp.int32)):
    return tree
  return jax.tree.map(lambda x: jnp.where(zero == 0, x, x), tree)
