"""FedPass: passports in the parties' networks (Gu et al. 2023; VMask, V-A).

A linear layer W whose outputs are scaled and shifted, y = tanh(s) * W x +
tanh(b), where s and b are what the layer itself makes of two secret passports.
Who knows the weights but not the passports cannot undo the scale and the shift,
which change as the weights learn. A layer's own bias c, which that formula has
no place for, is scaled with the rest: y = tanh(s) * (W x + c) + tanh(b).

They are in the linear layers of both parties' networks, as FedPass has it. s
and b are the layer's own mean outputs for its passports, s = mean W p_s + c
(c its bias), as in DeepIPR, of which FedPass makes use; there is nothing to
train beside W. FedPass has an autoencoder behind those means. Its public code,
FATE's, which SecretFlow took over, has a tanh at linear layers alone:
convolutions are normalized there and then scaled by s itself. `fedpass_cut` has
the autoencoder, in the other place that is in use, a layer of its own on each
embedding. Since neither s nor b depends on x, the layer is a linear one with
other weights (`sealed`), which is what its owner, who has the passports,
attacks with (`expose`). A layer without a bias has no place for b and stays as
it is; a normalization that follows a layer undoes both.
"""
from collections.abc import Iterable

import jax
from jax import lax
import jax.numpy as jnp

from vfljax import nets
from vfljax.defense import Defense, slots
from vfljax.defenses import passports
from vfljax.defenses.passports import Passport
from vfljax.nets import named_layers
from vfljax.numerics import along_last
from vfljax.types import Array, Key, Net, Params


def fedpass(
    variance=0.5, mean=-1.0, side: str = 'both', *,
    among: tuple[str, ...] = (), spread: bool = False,
) -> Defense:
  """Passports in the parties' networks.

  State: those of each passive party's bottom.

  Args:
    variance: Of the passports' normal distribution, 0 or more; may be traced.
      VMask: 0.5.
    mean: Of that distribution; may be traced. VMask: -1.
    side: Who has passports.
    among: Names of the bottom networks' layers that have passports
      (`named_layers.names`); all if empty.
    spread: Each coordinate of a passport has a mean of its own, uniform between
      `mean` and 0.

  Raises:
    ValueError: if an argument is out of its range; when training starts, if a
      layer of `among` does not exist or has no bias, or none has one, or a
      bottom network's weights have no layers that could be named, or the active
      party has no such layer, either, where it is to have passports.
  """
  passport = passports.drawer('fedpass', variance, mean, side, spread)

  def init(key, spec):
    return slots(spec, state=tuple(
        drawn(
            jax.random.fold_in(key, k), passport, params, chosen(params, among)
        ) for k, params in enumerate(spec.bottoms)
    ))

  def bottom(state, k, net):
    return nets.with_weights(net, lambda params: sealed(params, state[k - 1]))

  def expose(state, key, k, weights):
    del key
    return sealed(weights, state[k - 1])

  return passports.one_sided(Defense(
      init=init, bottom=bottom, top=lambda net: stamped(net, passport),
      expose=expose, lent=lambda state, k: state[k - 1],
  ), side)


def stamped(net: Net, passport: Passport) -> Net:
  """The network with passports in all its layers that can carry them."""

  def start(key, x):
    k_net, k_passports = jax.random.split(key)
    params = net.init(k_net, x)
    fit = biased(params)
    if not fit:
      raise ValueError(
          'fedpass: no layer of the top network has a kernel and a bias, so '
          'that the active party has no place for a passport. Give it such a '
          "layer, or say side='passive'."
      )
    own = drawn(k_passports, passport, params, fit)
    return dict(net=params, passports=own)

  inner = nets.with_weights(net, lambda p: sealed(p['net'], p['passports']))
  return inner._replace(
      init=start,
      absorb=lambda p, stats: dict(p, net=net.absorb(p['net'], stats)),
  )


def drawn(
    key: Key, passport: Passport, params: Params, names: Iterable[str]
) -> Params:
  """A pair of passports for each of a network's layers `names`."""
  found = {}
  for i, name in enumerate(names):
    shape = (1, *named_layers.arrays(params)[name]['kernel'].shape[:-1])
    k_scale, k_bias = jax.random.split(jax.random.fold_in(key, i))
    found[name] = dict(
        scale_key=passport(k_scale, shape), bias_key=passport(k_bias, shape)
    )
  return found


def sealed(params: Params, keys: Params) -> Params:
  """The weights with which plain layers compute what passport layers do.

  Args:
    params: A network's.
    keys: By layer {'scale_key', 'bias_key'}, [m, ...]: m inputs of the
      layer each, for a convolution of one window [m, kh, kw, c]. (Over the
      positions of an image of independent pixels the mean is the same.)
  """
  new = {}
  for name, pair in keys.items():
    own = named_layers.arrays(params)[name]
    scale = jnp.tanh(own_mean(own, pair['scale_key']))
    shift = jnp.tanh(own_mean(own, pair['bias_key']))
    kernel = own['kernel'] * along_last(scale, own['kernel'])
    new[name] = dict(kernel=kernel, bias=own['bias'] * scale + shift)
  return named_layers.replace(params, new)


def own_mean(layer: dict[str, Array], passport: Array) -> Array:
  """A layer's mean output for a passport [m, ...]: [out]."""
  seen = lax.stop_gradient(passport).mean(0).astype(layer['kernel'].dtype)
  return jnp.tensordot(seen, layer['kernel'], seen.ndim) + layer['bias']


def biased(params: Params) -> tuple[str, ...]:
  """The layers that can carry passports: those with a bias."""
  return tuple(
      name for name, own in named_layers.arrays(params).items() if 'bias' in own
  )


def chosen(params: Params, among: tuple[str, ...]) -> tuple[str, ...]:
  """The layers `among` or, if empty, all that can carry passports.

  Raises:
    ValueError: if a name is no layer's, or a layer has no bias, or none has,
      or there are no layers.
  """
  named_layers.existing(params, 'fedpass: ')  # Refuses weights without a layer.
  fit = biased(params)
  if among:
    named_layers.mask(params, among)  # Refuses names that are no layer's.
  if not fit or not set(among) <= set(fit):
    raise ValueError(
        'fedpass: layers without a bias have no place for a passport; those '
        f'with one are: {", ".join(fit) or "none"}.'
    )
  return among or fit
