"""FedPass at the cut: a passport layer of its own on each embedding.

As `fedpass`, but the passports are in one block of their own: behind the bottom
network at the 'passive' side, before the top network at the 'active' one, or at
both. Its form is SecretFlow's linear block: W is two linear maps in a row, and
s = Dec(LeakyReLU(Enc(mean W p_s))), where Enc maps to a quarter of the width.
The block shrinks embeddings at first. With VMask's passports and a width of 64,
|tanh s| is 0.08 and the embedding comes out at 0.03 of its size, with blocks at
both sides at a thousandth, and SGD at 0.1 learns to ignore it. In `fedpass`
|tanh s| starts at 0.45. VMask's authors use this block in the active party's
network, with larger passports (github.com/tanjuntao/Backdoor, 7c723c2):
`spread` and, for MLP3, a mean of -15, which start at 0.45, too; else of -100.
"""
import math

import jax
from jax import lax
import jax.numpy as jnp

from vfljax import check, fusing, nets, target
from vfljax.defense import Defense, slots
from vfljax.defenses import passports
from vfljax.types import Array, Key, Params


def fedpass_cut(
    variance=0.5, mean=-1.0, side: str = 'both', *, spread: bool = False,
    hidden: int = 128,
) -> Defense:
  """A passport layer on every passive party's embedding.

  Args:
    variance, mean, side, spread: As in `fedpass`.
    hidden: Width between W's two linear maps, 1 or more.

  Raises:
    ValueError: if an argument is out of its range.
  """
  passport = passports.drawer('fedpass_cut', variance, mean, side, spread)
  check.count('fedpass_cut: hidden', hidden)

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
    return through(passive, u), jnp.zeros((), jnp.float32)

  def receive(active, state, key, up, labels):
    del state, key, labels
    return tuple(map(through, active, up)), jnp.zeros((), jnp.float32)

  return passports.one_sided(
      Defense(init=init, send=send, receive=receive), side
  )


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
      x = x @ layer['kernel'] + layer['bias'][None]
    return x

  def stamp(seen):
    return nets.leaky_relu(seen @ params['encode']) @ params['decode']

  keys = [lax.stop_gradient(params[k]) for k in ('scale_key', 'bias_key')]
  if target.kind() == 'gpu':  # Passports as rows of x: no kernels of their own.
    rows = linear(jnp.concatenate([x, *(k.mean(0)[None] for k in keys)]))
    s, b = stamp(rows[-2:-1]), stamp(rows[-1:])
    return fusing.joined_back(jnp.tanh(s) * rows[:-2] + jnp.tanh(b)), s, b
  s, b = (stamp(linear(k).mean(0, keepdims=True)) for k in keys)
  return jnp.tanh(s) * linear(x) + jnp.tanh(b), s, b


def draw(key: Key, width: int, hidden: int, passport) -> Params:
  """Weights of a layer [n, width] -> [n, width], and its passports.

  Args:
    passport: (key, shape) -> a passport, see `passports.drawer`.
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
