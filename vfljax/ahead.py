"""Loops whose rounds' keys are made before the first round.

A round splits its key into others, and these into others: on a GPU each such
step is a kernel, of a few numbers. They depend on nothing that a round
computes, so those of all rounds can be made at a time. The keys are the same.
"""
from collections.abc import Callable
from typing import Any

import jax
from jax import lax
from jax.core import eval_jaxpr
from jax.extend import core
import jax.numpy as jnp


def scan(play: Callable, state: Any, xs: Any) -> tuple[Any, Any]:
  """`lax.scan(play, state, xs)`, with keys that come of those in `xs` alone.

  Args:
    play: (state, x) -> (state, y). What it draws by a key is still drawn in the
      loop: memory would hold it for all rounds.
    state: A pytree of arrays.
    xs: Likewise, [rounds, ...].

  Returns:
    The last state, and all y, [rounds, ...].
  """
  one = jax.tree.map(_one, xs)
  traced, out = jax.make_jaxpr(play, return_shape=True)(state, one)
  inputs = traced.jaxpr.invars
  own = inputs[len(jax.tree.leaves(state)) :]
  steps = _of_keys(traced.jaxpr.eqns, own)
  made = [v for step in steps for v in step.outvars]
  first = traced.jaxpr.replace(
      constvars=[], invars=own, outvars=made, eqns=steps
  )
  rest = traced.jaxpr.replace(
      invars=inputs + made,
      eqns=[e for e in traced.jaxpr.eqns if not any(e is s for s in steps)],
  )
  ahead = jax.vmap(lambda *x: eval_jaxpr(first, (), *x))(*jax.tree.leaves(xs))

  def played(state, x):
    arrays = jax.tree.leaves((state, x))
    return jax.tree.unflatten(
        jax.tree.structure(out), eval_jaxpr(rest, traced.consts, *arrays)
    )

  return lax.scan(played, state, (xs, ahead))


def _one(x: Any) -> jax.ShapeDtypeStruct:
  """The type of a round's part of `x`, in which it differs between shards."""
  if not len(x):
    return jax.ShapeDtypeStruct(x.shape[1:], x.dtype)
  return jax.eval_shape(lambda x: x[0], x)


def _of_keys(eqns: list[core.JaxprEqn], inputs: list) -> list[core.JaxprEqn]:
  """Those that make keys of the inputs' keys and of numbers in the program."""
  found, known = [], {v for v in inputs if _is_key(v)}
  for eqn in eqns:
    reads = [v for v in eqn.invars if not isinstance(v, core.Literal)]
    if reads and known.issuperset(reads) and all(map(_is_key, eqn.outvars)):
      found.append(eqn)
      known.update(eqn.outvars)
  return found


def _is_key(v: Any) -> bool:
  """Whether it is keys, of which many are made as each of them is."""
  dtype = getattr(v.aval, 'dtype', None)
  if dtype is None or not jnp.issubdtype(dtype, jax.dtypes.prng_key):
    return False
  return 'urbg' not in str(dtype)  # 'unsafe_rbg' draws others under `vmap`.
