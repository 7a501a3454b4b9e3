"""Passports: secret inputs of a layer that scale and shift its outputs.

A linear layer W with passports p_s and p_b computes tanh(s) * W x + tanh(b),
where s and b are what the layer itself makes of them (FedPass, Gu et al. 2023;
VMask, section V-A). A layer's bias c counts as its own output, so that it is
scaled, too: tanh(s) * (W x + c) + tanh(b). What `fedpass` and `fedpass_cut`
have in common.
"""
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

from vfljax import check
from vfljax.defense import Defense, Slots, slots
from vfljax.types import Array, Key

Passport = Callable[[Key, tuple[int, ...]], Array]
SIDES = ('both', 'active', 'passive')


def drawer(name: str, variance, mean, side: str, spread: bool) -> Passport:
  """(key, shape) -> a passport, once the arguments of `name` are checked.

  Raises:
    ValueError: if one of them is out of its range.
  """
  check.at_least(f'{name}: variance', variance, 0)
  check.inside(
      f'{name}: mean', mean, -jnp.inf, jnp.inf, open_low=True, open_high=True
  )
  check.one_of(f'{name}: side', side, SIDES)
  return partial(draw, mean=mean, variance=variance, spread=spread)


def draw(
    key: Key, shape: tuple[int, ...], mean, variance, spread: bool = False
) -> Array:
  """A normal passport; see `fedpass` for its arguments."""
  # The root of 0 has no derivative, and no one needs one: strengths do not
  # learn.
  deviation = jnp.sqrt(jnp.asarray(variance, jnp.float32))
  center = jnp.asarray(mean, jnp.float32)
  if spread:
    k_center, key = jax.random.split(key)
    center = center * jax.random.uniform(k_center, shape, jnp.float32)
  return center + deviation * jax.random.normal(key, shape, jnp.float32)


def one_sided(defense: Defense, side: str) -> Defense:
  """The defense without what the other side would do."""
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
