"""Helps XLA to make fewer kernels on a GPU, where each launch costs time.

XLA fuses two independent computations of one shape into one kernel only if both
read the same array (JAX 0.10.2). So `joined` lets all of them read one. And a
value that several kernels read may be computed again in each of them: `apart`
has it computed once. Neither changes a number, nor has an effect on other
devices. `joined_back` and `apart_back` act on gradients alone. `cross_entropy`
and `mean_over` are written so that fewer kernels compute them there, with other
last digits.
"""
from collections.abc import Callable
from functools import reduce
import operator
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp
import optax

from vfljax import target
from vfljax.numerics import common_type, floating
from vfljax.types import Array

_FEW = 16


def apart(tree: Any) -> Any:
  """The same values; on a GPU they are computed once, apart from their readers.
  """
  if target.kind() != 'gpu':
    return tree
  return jax.tree.map(lax.optimization_barrier, tree)


def joined(tree: Any) -> Any:
  """The same values; on a GPU their readers may be fused into one kernel.

  Fused are readers of `joined` values of one shape, none of which depends on
  another. Each number is multiplied by a 1 from an array whose content XLA does
  not know, so that all readers read that array.
  """
  return jax.tree.map(_times_one, tree) if target.kind() == 'gpu' else tree


def row_sums(x: Array) -> Array:
  """`x.sum(-1)`; on a GPU few columns are added by the kernels that read it."""
  if target.kind() != 'gpu' or not 0 < x.shape[-1] <= _FEW:
    return x.sum(-1)
  return reduce(operator.add, (x[..., i] for i in range(x.shape[-1])))


def cross_entropy(logits: Array, labels: Array) -> Array:
  """Optax's `softmax_cross_entropy` over the last axis.

  On a GPU that of two classes is written as a function of the logits'
  difference, whose gradient is `apart`: XLA may make a kernel of each sum over
  a row of two.
  """
  if target.kind() != 'gpu' or logits.shape[-1] != 2:
    return optax.softmax_cross_entropy(logits, labels)
  margin = apart_back(logits[..., 1] - logits[..., 0])
  # Not as softplus(margin) - labels * margin: its slope for class 1 would be a
  # difference of two numbers that are nearly the same.
  ways = jax.nn.softplus(margin), jax.nn.softplus(-margin)
  return labels[..., 0] * ways[0] + labels[..., 1] * ways[1]


def mean_over(real: Array, fn: Callable[..., Array], *given: Array) -> Array:
  """The mean of fn(*given) [batch] over rows where `real` is 1; 0 without any.

  On a GPU it is the sum whose tangents are divided by the number of rows. So
  gradients are divided where they are read: otherwise they would wait for the
  kernel that counts the rows.

  Args:
    real: [batch] of a floating type.
    fn: May close over what is differentiated, too.
  """
  # In half precision there is no number for a count of 257, or of 2049.
  real = floating(real)
  count = real.sum()
  count = jnp.where(count > 0, count, 1)
  if target.kind() != 'gpu':
    return (real * floating(fn(*given))).sum() / count
  pure, held = jax.closure_convert(fn, *given)
  total = lambda real, *given: (real * floating(pure(*given))).sum()
  return _divided(total)(count, real, *given, *held)


def apart_back(x: Array) -> Array:
  """`x`, whose gradient is `apart`."""
  return _apart_back(x) if target.kind() == 'gpu' else x


def joined_back(x: Array) -> Array:
  """`x`, whose gradient is `joined`."""
  return _joined_back(x) if target.kind() == 'gpu' else x


@jax.custom_jvp
def _apart_back(x):
  return x


@_apart_back.defjvp
def _(primals, tangents):
  return primals[0], lax.optimization_barrier(tangents[0])


@jax.custom_jvp
def _joined_back(x):
  return x


@_joined_back.defjvp
def _(primals, tangents):
  return primals[0], _times_one(tangents[0])


def _divided(total: Callable[..., Array]) -> Callable[..., Array]:
  """(count, *given) -> total(*given) / count, see `mean_over`."""

  @jax.custom_jvp
  def mean(count, *given):
    return total(*given) / count

  @mean.defjvp
  def _(primals, tangents):
    (count, *given), (counted, *ways) = primals, tangents
    shares = [_over(t, count) for t in ways]
    value, slope = jax.jvp(total, tuple(given), tuple(shares))
    found = value / count
    return found, (slope - found * counted / count).astype(found.dtype)

  return mean


def _over(tangent: Array, count: Array) -> Array:
  """tangent / count in the tangent's type; integers have none."""
  if tangent.dtype == jax.dtypes.float0:
    return tangent
  wide = common_type(tangent, count)
  return (tangent.astype(wide) / count.astype(wide)).astype(tangent.dtype)


def _times_one(x: Any) -> Any:
  dtype = jnp.result_type(x)
  if not jnp.issubdtype(dtype, jnp.number):  # Keys and booleans.
    return x
  # An array of two numbers, as XLA fuses nothing because of a shared scalar.
  return x * lax.optimization_barrier(jnp.array([1, 2], dtype))[0]
