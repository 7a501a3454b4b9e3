"""FedPass: passport layers (Gu et al. 2023; VMask, section V-A).

A linear layer W whose outputs are scaled and shifted, y = tanh(s) * W x +
tanh(b), where s and b are what the layer itself makes of two secret passports.
Who knows the weights but not the passports cannot undo the scale and the shift,
which change as the weights learn. Two places for them:

'layers', as FedPass has it: in the linear layers of both parties' networks. s
and b are the layer's own mean outputs for its passports, s = mean W p_s + c
(c its bias), as in DeepIPR, of which FedPass makes use; there is nothing to
train beside W. Since neither depends on x, the layer is a linear one with other
weights (`sealed`), which is what its owner, who has the passports, attacks
with (`expose`). A layer without a bias has no place for b and stays as it is;
a normalization that follows a layer undoes both.

'cut': one layer of its own on each passive party's embedding, behind the bottom
network at the 'passive' side, before the top network at the 'active' one, or
both, in the form of SecretFlow's linear block: W two linear maps in a row, and
s = Dec(LeakyReLU(Enc(mean W p_s))), Enc to a quarter of the width. It is weak
at first: with VMask's passports and a width of 64, |tanh s| is 0.08 and the
embedding comes out at 0.03 of its size, at both sides at a thousandth, which
SGD at 0.1 learns to ignore. In the layers' own form |tanh s| starts at 0.45.
VMask's authors use this block in the active party's network, with passports ten
times as large (github.com/tanjuntao/Backdoor, 7c723c2): `spread` and a mean of
-15, which start at 0.45, too.
"""
from collections.abc import Iterable
import math

import jax
from jax import lax
import jax.numpy as jnp

from vfljax import check, nets
from vfljax.nets import named_layers
from vfljax.defense import Defense, Slots, slots
from vfljax.types import Array, Key, Net, Params

SIDES = ('both', 'active', 'passive')
PLACES = ('layers', 'cut')


def fedpass(
    variance=0.5, mean=-1.0, side: str = 'both', *, place: str = 'layers',
    among: tuple[str, ...] = (), spread: bool = False, hidden: int = 128,
) -> Defense:
  """Passports in the parties' networks, or at the cut.

  Args:
    variance: Of the passports' normal distribution, 0 or more; may be traced.
      VMask: 0.5.
    mean: Of that distribution; may be traced. VMask: -1.
    side: Who has passports.
    place: 'layers' or 'cut', see above.
    among: Names of the bottom networks' layers that have passports
      (`named_layers.names`); all if empty. With place 'layers'.
    spread: Each coordinate of a passport has a mean of its own, uniform between
      `mean` and 0.
    hidden: Width between W's two linear maps, 1 or more. With place 'cut'.

  Raises:
    ValueError: if an argument is out of its range; when training starts, if a
      layer of `among` does not exist or has no bias, or none has one.
  """
  check.at_least('fedpass: variance', variance, 0)
  check.inside('fedpass: mean', mean, -jnp.inf, jnp.inf)
  check.one_of('fedpass: side', side, SIDES)
  check.one_of('fedpass: place', place, PLACES)
  check.at_least('fedpass: hidden', hidden, 1)

  def passport(key: Key, shape: tuple[int, ...]) -> Array:
    return draw_passport(key, shape, mean, variance, spread)

  made = (
      _in_layers(passport, among) if place == 'layers'
      else _at_cut(passport, hidden)
  )
  return _one_sided(made, side)


def _one_sided(defense: Defense, side: str) -> Defense:
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
        expose=nothing.expose,
    )
  return defense._replace(init=init, top=nothing.top, receive=nothing.receive)


def _in_layers(passport, among: tuple[str, ...]) -> Defense:
  """Passports in the networks' own layers; state: those of each bottom."""

  def passports(key: Key, params: Params, names: Iterable[str]) -> Params:
    drawn = {}
    for i, name in enumerate(names):
      shape = (1, *named_layers.arrays(params)[name]['kernel'].shape[:-1])
      k_scale, k_bias = jax.random.split(jax.random.fold_in(key, i))
      drawn[name] = dict(
          scale_key=passport(k_scale, shape), bias_key=passport(k_bias, shape)
      )
    return drawn

  def init(key, spec):
    return slots(spec, state=tuple(
        passports(jax.random.fold_in(key, k), params, chosen(params, among))
        for k, params in enumerate(spec.bottoms)
    ))

  def bottom(state, k, net):
    return _with_weights(net, lambda params: sealed(params, state[k - 1]))

  def top(net):
    def start(key, x):
      k_net, k_passports = jax.random.split(key)
      params = net.init(k_net, x)
      own = passports(k_passports, params, biased(params))
      return dict(net=params, passports=own)

    inner = _with_weights(net, lambda p: sealed(p['net'], p['passports']))
    return inner._replace(
        init=start,
        absorb=lambda p, stats: dict(p, net=net.absorb(p['net'], stats)),
    )

  def expose(state, key, k, weights):
    del key
    return sealed(weights, state[k - 1])

  return Defense(init=init, bottom=bottom, top=top, expose=expose)


def _with_weights(net: Net, at) -> Net:
  """The network that computes with the weights `at(params)`."""
  train = net.train
  return net._replace(
      apply=lambda params, x: net.apply(at(params), x),
      train=train and (lambda params, key, x: train(at(params), key, x)),
  )


def sealed(params: Params, passports: Params) -> Params:
  """The weights with which plain layers compute what passport layers do.

  Args:
    params: A network's.
    passports: By layer {'scale_key', 'bias_key'}, [m, ...]: m inputs of the
      layer each, for a convolution of one window [m, kh, kw, c]. (Over the
      positions of an image of independent pixels the mean is the same.)
  """

  new = {}
  for name, keys in passports.items():
    own = named_layers.arrays(params)[name]
    scale = jnp.tanh(own_mean(own, keys['scale_key']))
    shift = jnp.tanh(own_mean(own, keys['bias_key']))
    new[name] = dict(
        kernel=own['kernel'] * scale, bias=own['bias'] * scale + shift
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
    ValueError: if a name is no layer's, or a layer has no bias, or none has.
  """
  fit = biased(params)
  if among:
    named_layers.mask(params, among)  # Refuses names that are no layer's.
  if not fit or not set(among) <= set(fit):
    raise ValueError(
        'fedpass: layers without a bias have no place for a passport; those '
        f'with one are: {", ".join(fit) or "none"}.'
    )
  return among or fit


def _at_cut(passport, hidden: int) -> Defense:
  """A layer of its own on every passive party's embedding."""

  def init(key, spec):
    def drawn(key):
      keys = jax.random.split(key, len(spec.embeddings))
      return tuple(
          draw(k, math.prod(u.shape[1:]), hidden, passport)
          for k, u in zip(keys, spec.embeddings)
      )

    k_active, k_passive = jax.random.split(key)
    return slots(spec, active=drawn(k_active), passive=drawn(k_passive))

  def send(passive, key, u):
    del key
    return through(passive, u), jnp.zeros(())

  def receive(active, state, key, up, labels):
    del state, key, labels
    return tuple(map(through, active, up)), jnp.zeros(())

  return Defense(init=init, send=send, receive=receive)


def through(params: Params, u: Array) -> Array:
  """The passport layer on embeddings of any shape, which they keep."""
  flat = u.reshape(len(u), -1)
  return block(params, flat)[0].reshape(u.shape).astype(u.dtype)


def block(params: Params, x: Array) -> tuple[Array, Array, Array]:
  """The passport layer at the cut.

  Args:
    params: {'first', 'second'}: W's linear maps {'kernel', 'bias'}; 'encode'
      [out, code] and 'decode' [code, out]; 'scale_key' and 'bias_key' [m, in],
      the passports, which do not learn.
    x: [n, in].

  Returns:
    y [n, out], and s and b [1, out] before the tanh.
  """
  def linear(x):
    for layer in (params['first'], params['second']):
      x = x @ layer['kernel'] + layer['bias']
    return x

  def stamp(passport):
    seen = linear(lax.stop_gradient(passport)).mean(0, keepdims=True)
    return nets.leaky_relu(seen @ params['encode']) @ params['decode']

  s, b = stamp(params['scale_key']), stamp(params['bias_key'])
  return jnp.tanh(s) * linear(x) + jnp.tanh(b), s, b


def draw(key: Key, width: int, hidden: int, passport) -> Params:
  """Weights of a layer [n, width] -> [n, width], and its passports.

  Args:
    passport: (key, shape) -> a passport, see `draw_passport`.
  """
  k_first, k_second, k_encode, k_decode, k_scale, k_bias = jax.random.split(
      key, 6
  )
  code = max(width // 4, 1)

  def uniform(key, fan_in, shape):
    return nets.fan_in_uniform(fan_in)(key, shape)

  def layer(key, fan_in, fan_out):
    k_kernel, k_bias = jax.random.split(key)
    return dict(
        kernel=uniform(k_kernel, fan_in, (fan_in, fan_out)),
        bias=uniform(k_bias, fan_in, (fan_out,)),
    )

  return dict(
      first=layer(k_first, width, hidden),
      second=layer(k_second, hidden, width),
      encode=uniform(k_encode, width, (width, code)),
      decode=uniform(k_decode, code, (code, width)),
      scale_key=passport(k_scale, (1, width)),
      bias_key=passport(k_bias, (1, width)),
  )


def draw_passport(
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
