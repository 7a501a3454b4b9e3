"""FedPass: passports in the parties' networks (Gu et al. 2023; VMask, V-A).

The outputs of a linear layer W are scaled and shifted, y = tanh(s) * W x +
tanh(b), where s and b are the layer's outputs for two secret inputs, its
passports. Whoever knows the weights but not the passports cannot undo the scale
and the shift, which change as the weights learn. A layer's own bias c, which
that formula leaves out, is scaled with the rest: y = tanh(s) * (W x + c) +
tanh(b).

As in FedPass, the linear layers of both parties' networks have passports. s and
b are the layer's mean outputs for its passports, s = mean W p_s + c, as in
DeepIPR, which FedPass builds on; only W and c are trained. FedPass has an
autoencoder behind those means. `fedpass_cut` has it, too, and puts the
passports elsewhere, into a layer of its own on each embedding. FedPass's public
code (FATE's, which SecretFlow took over) has a tanh at linear layers alone:
convolutions are normalized there and then scaled by s itself.

Since s and b do not depend on x, the layer equals a linear one with other
weights (`sealed`). A passive party that attacks has its own passports, and so
these weights (`expose`). A layer without a bias cannot be shifted by b and
stays as it is; a normalization behind a layer undoes both.
"""
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

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

# The sides for which an index here may stand. Their active parties' networks
# are alike; that for 'passive' has no place for passports.
NUMBERED = passports.SIDES[:2]


def fedpass(
    variance=0.5, mean=-1.0, side: Any = 'both', *,
    among: tuple[str, ...] = (), spread: bool = False,
) -> Defense:
  """Passports in the parties' networks.

  The defense's state has the passports of each passive party's bottom network.

  Args:
    variance: Of the passports' normal distribution, 0 or more; may be traced.
      VMask: 0.5.
    mean: Of that distribution; may be traced. VMask: -1.
    side: Who has passports: 'both', 'active' or 'passive'. Also an index into
      `NUMBERED`, which may be traced; with it, passports are drawn and kept for
      the bottom networks that do not use them, too.
    among: Names of the bottom networks' layers that have passports
      (`named_layers.names`); all if empty.
    spread: Each coordinate of a passport has a mean of its own, uniform between
      `mean` and 0.

  Raises:
    ValueError: if an argument is out of its range; when training starts, if a
      layer of `among` does not exist or has no bias, if no layer has a bias, if
      a bottom network's weights have no named layers, or if the active party
      should have passports and its top has no layer with a kernel and a bias.
  """
  passport = passports.drawer(
      'fedpass', variance, mean, side, spread, range(len(NUMBERED))
  )
  seal = _sealing(side)

  def init(key, spec):
    return slots(spec, state=tuple(
        drawn(
            jax.random.fold_in(key, k), passport, params, chosen(params, among)
        ) for k, params in enumerate(spec.bottoms)
    ))

  def bottom(state, k, net):
    return nets.with_weights(net, lambda params: seal(params, state[k - 1]))

  def expose(state, key, k, weights):
    del key
    return seal(weights, state[k - 1])

  both = Defense(
      init=init, bottom=bottom, top=lambda net: stamped(net, passport),
      expose=expose, lent=lambda state, k: state[k - 1],
  )
  return passports.one_sided(both, side) if isinstance(side, str) else both


def _sealing(side: Any) -> Callable[[Params, Params], Params]:
  """`sealed` for bottom networks; of a number, only if it stands for 'both'."""
  if isinstance(side, str):
    return sealed
  below = side == NUMBERED.index('both')
  return partial(lax.cond, below, sealed, lambda params, keys: params)


def stamped(net: Net, passport: Passport) -> Net:
  """The network with passports in all its layers that can carry them."""

  def start(key, x):
    k_net, k_passports = jax.random.split(key)
    params = net.init(k_net, x)
    fit = biased(params)
    if not fit:
      raise ValueError(
          'fedpass: the top network needs a layer with a kernel and a bias for '
          "the active party's passports. Give it such a layer, or say "
          "side='passive'."
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
  """The weights with which a plain network computes what passport layers do.

  They have the types of the network's.

  Args:
    params: The network's.
    keys: {layer: {'scale_key', 'bias_key'}}, each [m, ...]: m inputs of the
      layer; for a convolution, of one window, [m, kh, kw, c]. (The public
      code's are images, over whose positions s and b are averaged. That leaves
      their means as they are, and little of what passports differ by.)
  """
  new = {}
  for name, pair in keys.items():
    own = named_layers.arrays(params)[name]
    scale = jnp.tanh(own_mean(own, pair['scale_key']))
    shift = jnp.tanh(own_mean(own, pair['bias_key']))
    kernel = own['kernel'] * along_last(scale, own['kernel'])
    bias = own['bias'] * scale + shift
    new[name] = dict(
        kernel=kernel.astype(own['kernel'].dtype),
        bias=bias.astype(own['bias'].dtype),
    )
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
        'fedpass: a layer needs a bias to have passports; layers with a bias '
        f'are: {", ".join(fit) or "none"}.'
    )
  return among or fit
