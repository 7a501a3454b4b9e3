"""FedPass: passport layers (Gu et al. 2023; VMask, section V-A).

A linear layer W whose outputs are scaled and shifted, y = tanh(s) * W x +
tanh(b), where s and b are what the layer itself makes of two secret passports:
s = Dec(LeakyReLU(Enc(mean W p_s))), b alike from p_b. Who knows the weights but
not the passports cannot undo the scale and the shift, which change as the
weights learn.

Here the layer stands at the cut, on each passive party's embedding: behind the
bottom network at the 'passive' side, before the top network at the 'active'
one, or both; weights and passports belong to that party. The form is that of
SecretFlow's linear block (W two linear maps in a row, Enc to a quarter of the
width), for embeddings of any shape. FedPass also puts passports into the hidden
layers of both networks; those would need networks of their own.
"""
import math
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp

from vfljax import check, nets
from vfljax.defense import Defense, slots
from vfljax.types import Array, Key, Params

SIDES = ('both', 'active', 'passive')


def fedpass(
    variance=0.5, mean=-1.0, side: str = 'both', *, hidden: int = 128
) -> Defense:
  """A passport layer on every passive party's embedding.

  Args:
    variance: Of the passports' normal distribution, 0 or more; may be traced.
      VMask: 0.5.
    mean: Of that distribution; may be traced. VMask: -1.
    side: Who has the layers.
    hidden: Width between W's two linear maps, 1 or more.

  Raises:
    ValueError: if an argument is out of its range.
  """
  check.at_least('fedpass: variance', variance, 0)
  check.inside('fedpass: mean', mean, -jnp.inf, jnp.inf)
  check.one_of('fedpass: side', side, SIDES)
  check.at_least('fedpass: hidden', hidden, 1)

  def init(key, spec):
    def layers(key):
      keys = jax.random.split(key, len(spec.embeddings))
      return tuple(
          draw(k, math.prod(u.shape[1:]), hidden, mean, variance)
          for k, u in zip(keys, spec.embeddings)
      )

    k_active, k_passive = jax.random.split(key)
    return slots(
        spec,
        active=() if side == 'passive' else layers(k_active),
        passive=None if side == 'active' else layers(k_passive),
    )

  def send(passive, key, u):
    del key
    return through(passive, u), jnp.zeros(())

  def receive(active, state, key, up, labels):
    del state, key, labels
    return tuple(map(through, active, up)), jnp.zeros(())

  hooks: Any = dict(send=send, receive=receive)
  if side != 'both':
    del hooks['receive' if side == 'passive' else 'send']
  return Defense(init=init, **hooks)


def through(params: Params, u: Array) -> Array:
  """The passport layer on embeddings of any shape, which they keep."""
  flat = u.reshape(len(u), -1)
  return block(params, flat)[0].reshape(u.shape).astype(u.dtype)


def block(params: Params, x: Array) -> tuple[Array, Array, Array]:
  """The passport layer.

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


def draw(key: Key, width: int, hidden: int, mean, variance) -> Params:
  """Weights of a layer [n, width] -> [n, width], and its passports."""
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

  def passport(key):
    # The root of 0 has no derivative, and no one needs one: strengths do not
    # learn.
    deviation = jnp.sqrt(jnp.asarray(variance, jnp.float32))
    drawn = jax.random.normal(key, (1, width), jnp.float32)
    return jnp.asarray(mean, jnp.float32) + deviation * drawn

  return dict(
      first=layer(k_first, width, hidden),
      second=layer(k_second, hidden, width),
      encode=uniform(k_encode, width, (width, code)),
      decode=uniform(k_decode, code, (code, width)),
      scale_key=passport(k_scale),
      bias_key=passport(k_bias),
  )
