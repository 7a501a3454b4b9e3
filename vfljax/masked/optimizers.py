"""Which optimizers masked layers can be trained with.

No party has the weights of a masked layer, so an optimizer that uses them
(weight decay, trust ratios, averages of weights) would get zeros in their
place. And under T4 the shares move by eta times the gradient, whatever the
optimizer says.
"""
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from vfljax import check as number
from vfljax import descent
from vfljax.masked import reach
from vfljax.masked.shares import Layer
from vfljax.nets import intercept
from vfljax.types import Params

# (gradient, steps that counters skip before it): a memory shows in the second
# step, a clipping in large gradients, a schedule in late steps.
_PROBES = (1.0, 0), (-2.0, 0), (1e4, 0), (-0.01, 1000), (1.0, 10**6)


def check(
    tx: optax.GradientTransformation, params: Params, chosen: Sequence[Layer],
    eta: float,
) -> None:
  """Passes if the optimizer can train what is masked.

  Args:
    tx: The passive party's.
    params: The network's parameters; zeros where a layer is masked.
    chosen: The masked layers.
    eta: The learning rate under T4.

  Raises:
    ValueError: if eta is no rate, its steps depend on a masked layer's weights,
      or its steps of a layer under T4 are not those of plain SGD, of small or
      large gradients, soon or late.
  """
  number.at_least('eta', eta, 0)
  using = _using_weights(tx, params, chosen)
  for layer in chosen:
    if layer.name in using:
      raise ValueError(
          f'Layer {layer.name}: the optimizer uses its weights, as weight '
          'decay does, which no party has while it is masked. Take one that '
          'needs gradients alone, or exempt the layer, as optax.masked does.'
      )
    if layer.to_active and not _is_sgd(tx, params, layer, eta):
      raise ValueError(
          f'Layer {layer.name}: under T4 its shares move by eta={eta:g} times '
          'the gradient, and the optimizer would move it otherwise: it must be '
          f'optax.sgd({eta:g}) for this layer.'
      )


def _using_weights(
    tx: optax.GradientTransformation, params: Params, chosen: Sequence[Layer]
) -> set[str]:
  """The names of layers on whose weights a step depends, by tracing alone."""

  def moves(own, gradients):
    weights = gradients
    for layer in chosen:
      weights = intercept.with_leaves(weights, layer.path, own[layer.name])
    return descent.moves_of(tx, gradients, tx.init(weights), weights)[0]

  own = {
      layer.name: intercept.leaves_at(params, layer.path) for layer in chosen
  }
  return reach.used(moves, own, params)


def _is_sgd(
    tx: optax.GradientTransformation, params: Params, layer: Layer, eta: float
) -> bool:
  """Whether steps of the layer's weights are -eta times a gradient.

  Of numbers, also where `params` are traced.
  """
  with jax.ensure_compile_time_eval():
    zeros = jax.tree.map(lambda p: jnp.zeros(p.shape, p.dtype), params)
    states = [tx.init(zeros)]
    for slope, skipped in _PROBES:
      opt = _later(states, skipped) if skipped else states[-1]
      slopes = jax.tree.map(lambda p, slope=slope: p + slope, zeros)
      moves, opt = descent.moves_of(tx, slopes, opt, zeros)
      states.append(opt)
      for move in intercept.leaves_at(moves, layer.path).values():
        if not np.allclose(move, -eta * slope, rtol=1e-5, atol=0):
          return False
  return True


def _later(states: Sequence[Any], steps: int) -> Any:
  """The last of an optimizer's states, with counters of its steps moved on.

  What counts has grown by one in each of the first two steps; a counter that
  starts again, as one of gradients that are accumulated, is none.
  """
  def later(first: Any, second: Any, third: Any, last: Any) -> Any:
    whole = jnp.issubdtype(jnp.result_type(last), jnp.integer)
    if jnp.shape(last) or not whole:
      return last
    return last + steps * (second - first == third - second == 1)

  return jax.tree.map(later, *states[:3], states[-1])
