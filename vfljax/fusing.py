"""What leads XLA to fewer kernels on a GPU, where each has to be started.

XLA makes one kernel of two computations of one shape if both read the same
array, and of nothing else (JAX 0.10.2; it once did). So `joined` lets all of
them read one. And what several kernels read each of them may compute once more:
`apart` has it computed once. Neither changes a number, nor does anything on
other devices. `joined_back` and `apart_back` act on gradients alone.
"""
from functools import reduce
import operator
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp

from vfljax import target
from vfljax.types import Array

_FEW = 16


def apart(tree: Any) -> Any:
  """The same; on a GPU what makes it is never part of what reads it."""
  if target.kind() != 'gpu':
    return tree
  return jax.tree.map(lax.optimization_barrier, tree)


def joined(tree: Any) -> Any:
  """The same; on a GPU what reads numbers of it may be joined to one kernel.

  Namely with whatever reads others of `joined`, has the same shape, and neither
  waits for it nor is waited for. Each number is multiplied by a 1 out of an
  array of which XLA does not know what is in it.
  """
  return jax.tree.map(_times_one, tree) if target.kind() == 'gpu' else tree


def row_sums(x: Array) -> Array:
  """`x.sum(-1)`; of few columns on a GPU what reads it adds them up itself."""
  if target.kind() != 'gpu' or not 0 < x.shape[-1] <= _FEW:
    return x.sum(-1)
  return reduce(operator.add, (x[..., i] for i in range(x.shape[-1])))


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


def _times_one(x: Any) -> Any:
  dtype = jnp.result_type(x)
  if not jnp.issubdtype(dtype, jnp.number):  # A key, or whether something is.
    return x
  # One of two numbers: for the sake of a scalar XLA joins nothing.
  return x * lax.optimization_barrier(jnp.array([1, 2], dtype))[0]
