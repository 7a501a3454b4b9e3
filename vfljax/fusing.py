"""Helps XLA to make fewer kernels on a GPU, where each launch costs time.

XLA fuses two independent computations of one shape into one kernel only if both
read the same array (JAX 0.10.2). So `joined` lets all of them read one. And a
value that several kernels read may be computed again in each of them: `apart`
has it computed once. Neither changes a number, nor has an effect on other
devices. `joined_back` and `apart_back` act on gradients alone.
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
from vfljax.numerics import common_type
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
  return row_sums(labels) * jax.nn.softplus(margin) - labels[..., 1] * margin


def mean_over(real: Array, fn: Callable[..., Array], *given: Array) -> Array:
  """The mean of fn(*given) [batch] over rows where `real` is 1; 0 without any.

  On a GPU gradients are those of the sum, divided by the number of rows where
  they are read: otherwise they would wait for the kernel that counts them. This
  concerns what is `given`, so `fn` must close over nothing that has one.
  """
  count, late = real.sum(), target.kind() == 'gpu'
  some = lambda: jnp.where(count > 0, count, 1)
  if late:
    given = tuple(_divided_back(x, some()) for x in given)
  total = (real * fn(*given)).sum()
  return _divided(total, some()) if late else total / some()


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


@jax.custom_jvp
def _divided(x, count):
  """x / count, with the gradient of x."""
  return x / count


@_divided.defjvp
def _(primals, tangents):
  return _divided(*primals), tangents[0]


@jax.custom_jvp
def _divided_back(x, count):
  """x, with the gradient of x / count."""
  del count
  return x


@_divided_back.defjvp
def _(primals, tangents):
  x, count = primals
  wide = common_type(x, count)
  slope = tangents[0].astype(wide) / count.astype(wide)
  return x, slope.astype(x.dtype)


def _times_one(x: Any) -> Any:
  dtype = jnp.result_type(x)
  if not jnp.issubdtype(dtype, jnp.number):  # Keys and booleans.
    return x
  # An array of two numbers, as XLA fuses nothing because of a shared scalar.
  return x * lax.optimization_barrier(jnp.array([1, 2], dtype))[0]
