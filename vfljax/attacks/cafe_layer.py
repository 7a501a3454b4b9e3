"""Where CAFE starts: the first linear layer, and what comes below it.

MID lets CAFE start at its decoder if that is one linear layer (Zou et al. 2023,
section 5.2). MID's penalty, lambda * KL, then arises below that layer: from
dz it does not follow, but its gradient is part of those that the attacker gets
of the encoder and of the layers below. CAFE's authors know no such penalty.
An attacker who knows the defense knows its form and lambda, which the parties
agree on and no view holds (without it one would have to search for it, too);
the weights and the samples, which the penalty depends on, are white or searched
for anyway. MID's KL does not depend on the draws of its noise. What does, T =
mean + std * noise, is still modelled by the mean: nobody but the party knows
the draws.

Elsewhere CAFE starts inside the network, below the message and all that a
defense adds to it: dz is of the whole loss, penalties included.
"""
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from vfljax import check
from vfljax.defense import Defense
from vfljax.nets import bottleneck
from vfljax.types import VFL, Array, Params


def _free(weights: Params, x: Array) -> Array:
  """No penalty."""
  del weights, x
  return jnp.zeros((), jnp.float32)


class FirstLinear(NamedTuple):
  """The linear layer where the attack starts.

  Attributes:
    around: (weights, x) -> (the layer's input [n, in], its output [n, out]);
      `weights` as in the view.
    gradient: (gradients) -> those of its kernel [in, out] and bias [out].
    penalty: (weights, x) -> what the party adds to a round's mean loss, below
      the layer and as far as the attacker knows; by default nothing.
  """

  around: Callable[[Params, Array], tuple[Array, Array]]
  gradient: Callable[[Params], tuple[Array, Array]]
  penalty: Callable[[Params, Array], Array] = _free


def first_linear(
    middle: Any, vfl: VFL, defense: Defense | None = None, party: int = 1
) -> FirstLinear:
  """Where the attack starts: the linear decoder of a bottleneck behind the
  network if the passive party has one, else the network's first linear layer.

  Args:
    middle: `nets.cafe.middle` of the network.
    vfl: The federation.
    defense: The federation's, if the attacker knows what it does to a passive
      party's messages; only `send` is used.
    party: The passive party that is attacked, 1..K, whose network it is.

  Raises:
    ValueError: if there is no such passive party.
  """
  check.passive(party, len(vfl.bottoms) - 1)

  def around(weights: Params, x: Array):
    own = weights['defense']
    if not bottleneck.is_linear(own):
      return middle(weights['bottom'], x)
    u = vfl.bottom(party).apply(weights['bottom'], x)
    encoder, decoder = bottleneck.of_linear(own, u.shape[-1])
    # The mean, without noise: the attacker does not see the rounds' draws.
    mean, _ = bottleneck.encode(encoder, own.encoder, u, 0.5)
    return mean, decoder.apply(own.decoder, mean)

  def gradient(gradients: Params):
    own = gradients['defense']
    linear = bottleneck.is_linear(own)
    part = own.decoder if linear else gradients['bottom']['fc1']
    bias, kernel = sorted(jax.tree.leaves(part), key=lambda x: x.ndim)
    return kernel, bias

  def penalty(weights: Params, x: Array) -> Array:
    own = weights['defense']
    if defense is None or not bottleneck.is_linear(own):
      return _free(weights, x)
    u = vfl.bottom(party).apply(weights['bottom'], x)
    # Draws of its own: those of the rounds are the party's secret.
    return defense.send(own, jax.random.key(0), u)[1]

  return FirstLinear(around, gradient, penalty)
