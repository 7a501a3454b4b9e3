"""Checks of arguments that may be numbers, arrays or traced values.

A strength is a factory argument that a sweep may trace, and a traced value has
no number to look at: it passes, and whoever made the sweep checks the numbers
that go into it.
"""
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

_REAL = (np.integer, np.floating)


def at_least(name: str, value: Any, low: float) -> None:
  """Passes if `value`, or every entry of it, is finite and `low` or more.

  Raises:
    ValueError: if not.
  """
  inside(name, value, low, np.inf, open_high=True)


def above(name: str, value: Any, low: float) -> None:
  """Passes if `value`, or every entry of it, is finite and more than `low`.

  Raises:
    ValueError: if not.
  """
  inside(name, value, low, np.inf, open_low=True, open_high=True)


def inside(
    name: str, value: Any, low: float, high: float, *,
    open_low: bool = False, open_high: bool = False,
) -> None:
  """Passes if `value`, or every entry of it, is between `low` and `high`.

  Args:
    name: What the caller calls the argument.
    value: A number, an array or a traced value; the last always passes.
    low: The smallest value allowed, or the bound below it if `open_low`.
    high: The largest value allowed, or the bound above it if `open_high`.

  Raises:
    ValueError: if `value` is not a number, NaN or outside.
  """
  if isinstance(value, Tracer):
    return
  above = np.greater if open_low else np.greater_equal
  below = np.less if open_high else np.less_equal
  number = _number(value)
  if number is None or not np.all(above(number, low) & below(number, high)):
    raise ValueError(
        f'{name} must be {_range(low, high, open_low, open_high)};'
        f' got {value!r}.'
    )


def one_of(name: str, value: Any, options: tuple) -> None:
  """Passes if `value` is one of `options`.

  Raises:
    ValueError: if not.
  """
  if value not in options:
    allowed = ', '.join(repr(option) for option in options)
    raise ValueError(f'{name} must be one of {allowed}; got {value!r}.')


def _number(value: Any) -> np.ndarray | None:
  """`value` as an array of real numbers; `None` if it is something else."""
  array = np.asarray(value)
  real = any(jnp.issubdtype(array.dtype, kind) for kind in _REAL)
  return array if real else None


def _range(low: float, high: float, open_low: bool, open_high: bool) -> str:
  if high == np.inf:
    return f'a number {"above" if open_low else "of at least"} {low:g}'
  left, right = '(' if open_low else '[', ')' if open_high else ']'
  return f'a number in {left}{low:g}, {high:g}{right}'
