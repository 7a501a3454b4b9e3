"""What a user's function has given, in a message's words: shapes and types."""
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

FLOATS = (jnp.floating,)
REAL = (jnp.floating, jnp.integer, jnp.bool_)
LISTED = 32  # Entries of a row, at most, that a message lists.


def is_real(x: Any, kinds: Sequence[Any] = REAL) -> bool:
  """Whether it is an array of real numbers, or of these kinds alone."""
  dtype = getattr(x, 'dtype', None)
  return dtype is not None and any(jnp.issubdtype(dtype, k) for k in kinds)


def told(found: Any) -> str:
  """Arrays by their shapes and types: '(32, 8) float32, (32, 4) float32'.

  A row of one array is not the array: '((32, 8) float32,)'. Long ones, as the
  labels of a batch in a list, are told by their kind.
  """
  if isinstance(found, (tuple, list)) and len(found) <= LISTED:
    inner = [
        f'({told(x)})' if isinstance(x, (tuple, list)) and len(x) > 1
        else told(x) for x in found
    ]
    return f'({inner[0]},)' if len(inner) == 1 else ', '.join(inner) or '()'
  shape, dtype = getattr(found, 'shape', None), getattr(found, 'dtype', None)
  if shape is not None and dtype is not None:
    return f'{tuple(shape)} {dtype}'
  return type(found).__name__
