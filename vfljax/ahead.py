"""Loops that make the keys of all rounds before the first round.

A round splits its key into others, and these again: on a GPU each split is a
kernel for a few numbers. Splits do not depend on what a round computes, so
those of all rounds can be made in one batch. The keys are the same.
"""
from collections.abc import Callable
from typing import Any

import jax
from jax import lax
from jax.core import eval_jaxpr
from jax.extend import core
import jax.numpy as jnp


def scan(play: Callable, state: Any, xs: Any) -> tuple[Any, Any]:
  """`lax.scan(play, state, xs)`, with the keys derived from `xs` made before.

  Args:
    play: (state, x) -> (state, y). Random numbers are still drawn in the loop,
      as those of all rounds would take too much memory.
    state: A pytree of arrays.
    xs: A pytree of arrays [rounds, ...].

  Returns:
    The last state, and all y, [rounds, ...].
  """
  traced, out = jax.make_jaxpr(play, return_shape=True)(
      state, jax.tree.map(_one, xs)
  )
  jaxpr = traced.jaxpr
  of_x = jaxpr.invars[len(jax.tree.leaves(state)) :]
  derive = _of_keys(jaxpr.eqns, of_x)
  keys = [v for eqn in derive for v in eqn.outvars]
  # A round as two programs: from x to the keys, and the rest, which gets them.
  ahead = jaxpr.replace(constvars=[], invars=of_x, outvars=keys, eqns=derive)
  rest = jaxpr.replace(
      invars=jaxpr.invars + keys,
      eqns=[e for e in jaxpr.eqns if not any(e is d for d in derive)],
  )
  made = jax.vmap(lambda *x: eval_jaxpr(ahead, (), *x))(*jax.tree.leaves(xs))

  def played(state, x_and_keys):
    arrays = jax.tree.leaves((state, x_and_keys))
    found = eval_jaxpr(rest, traced.consts, *arrays)
    return jax.tree.unflatten(jax.tree.structure(out), found)

  return lax.scan(played, state, (xs, made))


def _one(x: Any) -> jax.ShapeDtypeStruct:
  """Shape and type of a round's part of `x`, which varies over shards, too."""
  if not len(x):
    return jax.ShapeDtypeStruct(x.shape[1:], x.dtype)
  return jax.eval_shape(lambda x: x[0], x)


def _of_keys(eqns: list[core.JaxprEqn], inputs: list) -> list[core.JaxprEqn]:
  """The equations that derive keys from the inputs' keys and literals alone."""
  found, known = [], {v for v in inputs if _is_key(v)}
  for eqn in eqns:
    reads = [v for v in eqn.invars if not isinstance(v, core.Literal)]
    if reads and known.issuperset(reads) and all(map(_is_key, eqn.outvars)):
      found.append(eqn)
      known.update(eqn.outvars)
  return found


def _is_key(v: Any) -> bool:
  """Whether a variable holds keys whose derivation commutes with `vmap`."""
  dtype = getattr(v.aval, 'dtype', None)
  if dtype is None or not jnp.issubdtype(dtype, jax.dtypes.prng_key):
    return False
  return 'urbg' not in str(dtype)  # 'unsafe_rbg' draws others under `vmap`.
