"""Passports: secret inputs of a layer that scale and shift its outputs.

A linear layer W with passports p_s and p_b computes tanh(s) * W x + tanh(b),
where s and b are the layer's own outputs for p_s and p_b (FedPass, Gu et al.
2023; VMask, section V-A). A layer's bias c is scaled with its output:
tanh(s) * (W x + c) + tanh(b). Shared by `fedpass` and `fedpass_cut`.
"""
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
from jax.core import Tracer
import jax.numpy as jnp

from vfljax import check
from vfljax.defense import Defense, Slots, slots
from vfljax.types import Array, Key

Passport = Callable[[Key, tuple[int, ...]], Array]
SIDES = ('both', 'active', 'passive')


def drawer(
    name: str, variance, mean, side: Any, spread: bool,
    numbers: Sequence[int] = (),
) -> Passport:
  """Checks the arguments of the defense `name`: (key, shape) -> a passport.

  Args:
    numbers: Those that may stand for a side. They may be traced, and are not
      checked then.

  Raises:
    ValueError: if one of them is out of its range.
  """
  check.at_least(f'{name}: variance', variance, 0)
  check.inside(
      f'{name}: mean', mean, -jnp.inf, jnp.inf, open_low=True, open_high=True
  )
  if not (numbers and isinstance(side, Tracer)):
    check.one_of(f'{name}: side', side, (*SIDES, *numbers))
  return partial(draw, mean=mean, variance=variance, spread=spread)


def draw(
    key: Key, shape: tuple[int, ...], mean, variance, spread: bool = False
) -> Array:
  """A passport of normal numbers; see `fedpass` for the arguments."""
  # The root has no derivative at 0, nor needs one: strengths are not trained.
  deviation = jnp.sqrt(jnp.asarray(variance, jnp.float32))
  center = jnp.asarray(mean, jnp.float32)
  if spread:
    k_center, key = jax.random.split(key)
    center = center * jax.random.uniform(k_center, shape, jnp.float32)
  return center + deviation * jax.random.normal(key, shape, jnp.float32)


def one_sided(defense: Defense, side: str) -> Defense:
  """The defense without the hooks and weights of the side not in `side`."""
  nothing = Defense()

  def init(key, spec):
    found = defense.init(key, spec)
    if side == 'active':
      return slots(spec, active=found.active)
    return Slots((), found.passive, found.state)

  if side == 'both':
    return defense
  if side == 'active':
    return defense._replace(
        init=init, bottom=nothing.bottom, send=nothing.send,
        expose=nothing.expose, lent=nothing.lent,
    )
  return defense._replace(init=init, top=nothing.top, receive=nothing.receive)
