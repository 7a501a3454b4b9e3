"""What a value is: the file that it is in, its numbers, whether it is plain."""
import contextlib
import inspect
import itertools
from pathlib import Path
import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


_PLAIN = int, float, str, bool, type(None), np.float64, np.str_


def file_of(value: Any) -> Path | None:
  """The file that a module, function or class is in."""
  if isinstance(value, type) and value.__module__ == '__main__':
    own = (
        f for f in vars(value).values()
        if inspect.isfunction(f) and f.__module__ == value.__module__
    )  # `Enum` writes others into a class; Flax and dataclasses wrap them.
    return next(filter(None, map(file_of, map(inspect.unwrap, own))), None)
  if not isinstance(value, (types.ModuleType, types.FunctionType, type)):
    return None
  try:
    file = Path(inspect.getfile(value))
  except (TypeError, ValueError, OSError):
    return None
  return file if file.is_file() else None


def binds(function: Any) -> bool:
  """Whether a lambda, or a function in another, has an argument's default.

  As in `lambda power, step=step: ...`, which a loop may make with other steps.
  """
  inner = '<' in getattr(getattr(function, '__code__', ''), 'co_qualname', '')
  return inner and bool(function.__defaults__ or function.__kwdefaults__)


def array_of(value: Any) -> np.ndarray | None:
  """The numbers of an array, a scalar of NumPy's or a data frame."""
  if not hasattr(type(value), '__array__'):
    return None
  with contextlib.suppress(Exception):  # Whatever a package raises.
    if isinstance(value, jax.Array) and jnp.issubdtype(
        value.dtype, jax.dtypes.prng_key
    ):
      value = jax.random.key_data(value)
    return np.ascontiguousarray(value)
  return None


def is_plain(value: Any) -> bool:
  """Whether it is of Python's own types: others may have functions."""
  if type(value) in (list, tuple):
    return all(map(is_plain, value))
  if type(value) is dict:
    return all(map(is_plain, itertools.chain.from_iterable(value.items())))
  return type(value) in _PLAIN
