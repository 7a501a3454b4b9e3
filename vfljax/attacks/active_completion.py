"""Active model completion (Fu et al. 2022): a malicious local optimizer.

The attacker wants its bottom network to encode the labels and speeds up the
training of its own weights: each coordinate of an update that keeps its sign is
scaled up, by 1 + gamma * this update / the last one, between 1 and 5 times. The
federation then comes to rely on its embeddings, and model completion after
training finds more in them. The attacker deviates in its own optimizer alone,
so the attack is an optax transformation, `malicious_sgd`, in its place in the
federation's `txs`, and `active_completion` after training.

The authors' code writes the scaled update into the momentum buffer, as both are
one tensor. The effect depends on how gradients are cleared between steps:
`momentum_fault` has both variants; the default is the paper's formula.
"""
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from vfljax import check
from vfljax.attack import TRAINED, Attack, recipe
from vfljax.attacks.model_completion import (
    Options, Schedule, baselines, check_options, head_of, model_completion,
    rest, schedule_of, skips_blank,
)
from vfljax.leakage import COMPLETION
from vfljax.numerics import floating
from vfljax.scene import Pace, Scene
from vfljax.types import VFL, Array, Net


class MaliciousState(NamedTuple):
  """The attacker's memory: leaves like its weights.

  Attributes:
    buffer: Momentum.
    last: The last update, as scaled.
    count: Steps taken.
  """

  buffer: Any
  last: Any
  count: jax.Array


FAULTS = ('none', 'scaled', 'cleared')


def malicious_sgd(
    learning_rate: float, momentum: float = 0.0, weight_decay: float = 0.0, *,
    gamma: float = 1.0, low: float = 1.0, high: float = 5.0,
    momentum_fault: str = 'none',
) -> optax.GradientTransformation:
  """SGD whose update is scaled up where it keeps pointing the same way.

  With g the gradient (and weight decay and momentum), element by element,
  update_t = g_t * clip(1 + gamma * g_t / (update_{t-1} + 1e-7), low, high); the
  first step is not scaled (Fu et al. 2022, section 4.3; the constants are their
  code's).

  Args:
    learning_rate: Above 0; may be traced.
    momentum: In [0, 1).
    weight_decay: 0 or more, times the weights, added to the gradient.
    gamma: Strength of the scaling, 0 or more; 0 with low=1 is SGD.
    low, high: Bounds of the factor, 0 <= low <= high.
    momentum_fault: 'none' keeps the momentum unscaled. 'scaled': the scaled
      update is the next step's momentum, as their code does where gradients
      are dropped between steps (PyTorch 2). 'cleared': the momentum is lost and
      every update after the first is 2 * momentum times the gradient, as their
      code does where gradients are zeroed in place (PyTorch 1, their results).

  Raises:
    ValueError: if an argument is out of its range.
  """
  check.above('learning_rate', learning_rate, 0)
  check.inside('momentum', momentum, 0, 1, open_high=True)
  least = dict(weight_decay=weight_decay, gamma=gamma, low=low)
  for name, value in least.items():
    check.at_least(name, value, 0)
  check.at_least('high', high, low)
  check.one_of('momentum_fault', momentum_fault, FAULTS)

  def update(updates, state, params=None):
    if weight_decay and params is None:
      raise ValueError('malicious_sgd: weight_decay needs the weights.')
    if weight_decay:
      decayed = lambda g, p: g + weight_decay * p
      updates = jax.tree.map(decayed, updates, params)
    first = state.count == 0

    def raw(g, buffer):
      if momentum_fault == 'cleared' and momentum:
        return jnp.where(first, g, 2 * momentum * g)
      return momentum * buffer + g

    def scale(g, last):
      scaled = g * factor(floating(g), floating(last), gamma, low, high)
      return jnp.where(first, g, scaled).astype(g.dtype)

    plain = jax.tree.map(raw, updates, state.buffer)
    scaled = jax.tree.map(scale, plain, state.last)
    buffer = scaled if momentum_fault == 'scaled' else plain
    steps = jax.tree.map(lambda u: -learning_rate * u, scaled)
    return steps, MaliciousState(buffer, scaled, state.count + 1)

  return optax.GradientTransformation(_start, update)


def _start(params: Any) -> MaliciousState:
  zeros = jax.tree.map(jnp.zeros_like, params)
  return MaliciousState(zeros, zeros, jnp.zeros((), jnp.int32))


def factor(g: Array, last: Array, gamma, low, high) -> Array:
  """The factor on update g after the update `last`, element by element."""
  return jnp.clip(1 + gamma * g / (last + 1e-7), low, high)


def optimizer(pace: Pace) -> optax.GradientTransformation:
  """The attacker's optimizer in a federation that trains at this pace.

  Raises:
    ValueError: if the federation does not train by SGD at a constant rate.
  """
  momentum = dict(sgd=0.0, momentum=0.9).get(pace.optimizer)
  if momentum is None or not pace.constant:
    raise ValueError(
        'active_completion scales up the updates of SGD at a constant rate: use'
        ' --config.train.optimizer=sgd or momentum, and no weight decay.'
    )
  return malicious_sgd(pace.learning_rate, momentum)


def _make(options: Options, scene: Scene, vfl: VFL) -> Attack:
  return active_completion(
      vfl.bottom(1), None if scene.linear else head_of(options, scene),
      schedule_of(options), options.tune, standardize=options.standardize,
  )


@recipe(
    stage=TRAINED, options=Options, group='completion', make=_make,
    check=check_options, baselines=baselines, apart=('model_completion',),
    optimizer=optimizer, score=COMPLETION, rest=rest,
    rest_skips_blank=skips_blank,
)
def active_completion(
    bottom: Net, head: Net | None, schedule: Schedule = Schedule(),
    tune: bool = True, standardize: bool = False,
) -> Attack:
  """Model completion by an attacker who trained with `malicious_sgd`.

  After training it is the same as the passive attack; only the optimizer in
  training is active. Its arguments are those of `model_completion`.

  Raises:
    ValueError: if the schedule makes no sense.
  """
  return model_completion(
      bottom, head, schedule, tune, standardize=standardize
  )
