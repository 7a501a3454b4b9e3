"""What of a function's results depends on which of its arguments.

By tracing alone, to refuse what a masked layer's weights would have to be known
for: no party has them, and zeros in their place give other numbers in silence.
"""
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.extend.core import Literal
import numpy as np

_LOOPS = ('scan', 'while')


def used(
    fn: Callable[..., Any], given: dict[str, Any], *rest: Any
) -> set[str]:
  """The names of those entries of `given` that `fn(given, *rest)` depends on.

  Arrays, or their shapes. Inside loops and unknown operations all results count
  as dependent.
  """
  jaxpr = jax.make_jaxpr(fn)(given, *rest).jaxpr
  owners = [at[0].key for at, _ in jax.tree_util.tree_leaves_with_path(given)]
  owners += [None] * (len(jaxpr.invars) - len(owners))
  return {
      name for name in given
      if any(_reached(jaxpr, [owner == name for owner in owners]))
  }


def _reached(jaxpr: Any, given: Sequence[bool]) -> list[bool]:
  """Which outputs depend on those inputs that are `given`."""
  known = {v for v, own in zip(jaxpr.invars, given, strict=True) if own}
  told = lambda v: not isinstance(v, Literal) and v in known
  for step in jaxpr.eqns:
    own = [told(v) for v in step.invars]
    if any(own):
      far = _passed(step, own)
      known.update(v for v, on in zip(step.outvars, far, strict=True) if on)
  return [told(v) for v in jaxpr.outvars]


def _passed(step: Any, own: list[bool]) -> list[bool]:
  """`_reached` of one operation."""
  inner = step.params.get('branches')
  if inner and not own[0]:  # A condition that depends decides all results.
    own = own[1:]
  elif not inner:
    inner = [step.params.get('jaxpr', step.params.get('call_jaxpr'))]
  parts = [getattr(part, 'jaxpr', part) for part in inner or ()]
  fits = lambda part: len(getattr(part, 'invars', ())) == len(own)
  if step.primitive.name in _LOOPS or not all(map(fits, parts)):
    return [True] * len(step.outvars)
  return np.any([_reached(part, own) for part in parts], 0).tolist()
