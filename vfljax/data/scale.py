"""Standardisation and min-max scaling, fitted on training rows only.

These are pure functions that run inside `jit` after a seed's split is drawn.
Both compute (x - shift) * factor. A column that is constant in the training
rows has factor 0, so it becomes 0 everywhere, never NaN.
"""
from collections.abc import Sequence
import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from vfljax.types import Array


class Stats(NamedTuple):
  """The shift to subtract and the factor to multiply by; both [columns...]."""

  shift: Array
  factor: Array


def fit(x: Array, rows: Array) -> Stats:
  """Mean and 1 / standard deviation (of the population) of the training rows.

  Args:
    x: [n, ...]; statistics are over the first axis. Integers become float32.
    rows: The training rows: bool [n], or indices [m]. At least one.
  """
  x, low, _, weight = _train(x, rows)
  # Around the minimum: a large offset costs no digits, and a constant column
  # has a variance of exactly 0.
  mean = low + ((x - low) * weight).sum(0) / weight.sum(0)
  variance = (jnp.square(x - mean) * weight).sum(0) / weight.sum(0)
  return Stats(mean, _inverse(jnp.sqrt(variance)))


def fit_min_max(x: Array, rows: Array) -> Stats:
  """Minimum and 1 / range of the training rows, which then lie in 0..1.

  Other rows may lie outside. Arguments as in `fit`.
  """
  _, low, high, _ = _train(x, rows)
  return Stats(low, _inverse(high - low))


class Moments(NamedTuple):
  """Moments of features in float64: [columns], or single numbers."""

  mean: np.ndarray
  std: np.ndarray
  low: np.ndarray
  high: np.ndarray


def moments(
    x: np.ndarray, rows: np.ndarray, whole: bool = False, block: int = 1 << 22
) -> Moments:
  """Mean, deviation, minimum and maximum of some rows, computed on the host.

  For features that do not fit on a device or are memory-mapped: they are read
  in blocks.

  Args:
    x: Features, [n, ...].
    rows: Indices [m], at least one.
    whole: Whether to compute them over all numbers together instead of for each
      column.
    block: How many numbers to read at a time.
  """
  axis = None if whole else 0
  # Around the first row: a constant column deviates by exactly 0.
  shift = np.zeros(()) if whole else np.asarray(x[rows[0]], np.float64)
  low, high, total, square, count = np.inf, -np.inf, 0.0, 0.0, 0
  size = max(1, block // max(math.prod(x.shape[1:]), 1))
  for i in range(0, len(rows), size):
    part = np.asarray(x[np.sort(rows[i : i + size])], np.float64) - shift
    low = np.minimum(low, part.min(axis))
    high = np.maximum(high, part.max(axis))
    total = total + part.sum(axis)
    square = square + np.square(part).sum(axis)
    count += part.size if whole else len(part)
  mean = total / count
  std = np.sqrt(np.maximum(square / count - np.square(mean), 0))
  return Moments(
      mean + shift, np.where(high > low, std, 0), low + shift, high + shift
  )


def transform(x: Array, stats: Stats) -> Array:
  """(x - shift) * factor, in the statistics' dtype."""
  return (_floating(x) - stats.shift) * stats.factor


def images(
    x: Array, mean: Sequence[float] | float = 0.0,
    std: Sequence[float] | float = 1.0,
) -> Array:
  """uint8 images as float32: (x / 255 - mean) / std.

  Args:
    x: uint8 [..., channels], which is divided by 255, or floats in 0..1, which
      are not.
    mean: In units of 0..1: one number, or one for each channel.
    std: Like `mean`; above 0.
  """
  x = jnp.asarray(x)
  x = x.astype(jnp.float32) / 255 if x.dtype == jnp.uint8 else x
  return (x - jnp.asarray(mean, x.dtype)) / jnp.asarray(std, x.dtype)


def _train(x: Array, rows: Array) -> tuple[Array, Array, Array, Array]:
  """(rows, their minimum, their maximum, weight [n, 1...] of 0 or 1)."""
  x, rows = _floating(x), jnp.asarray(rows)
  if rows.dtype != jnp.bool_:
    x, rows = x[rows], jnp.ones(rows.shape, bool)
  inside = rows.reshape(-1, *[1] * (x.ndim - 1))
  low = jnp.where(inside, x, jnp.inf).min(0)
  high = jnp.where(inside, x, -jnp.inf).max(0)
  return x, low, high, inside.astype(x.dtype)


def _floating(x: Array) -> Array:
  x = jnp.asarray(x)
  floating = jnp.issubdtype(x.dtype, jnp.floating)
  return x if floating else x.astype(jnp.float32)


def _inverse(spread: Array) -> Array:
  varies = spread > 0
  return jnp.where(varies, 1 / jnp.where(varies, spread, 1), 0)
