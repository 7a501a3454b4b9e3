"""PRECODE (Scheliga et al. 2022; Kang et al. 2022, section 7.2).

A passive party passes its embedding through a variational bottleneck: an
encoder gives a mean and a deviation, a draw from that normal distribution is
decoded, and the party sends the decoded representation, in training and at
inference. A Kullback-Leibler term draws the distribution towards the standard
normal one.

Kang et al. call it free of parameters and give no sizes. As in PRECODE's public
code (github.com/dAI-SY-Group/PRECODE) encoder and decoder are one linear layer
each and the weight of the term is 0.001. There it is of bits, which is 0.00144
of our nats; the bottleneck has a width of 256, ours of 32; and a deviation is a
softplus, which starts at 0.69, ours an exponential, which starts at 1.
"""
from typing import Any

import jax
import jax.numpy as jnp

from vfljax import check, crossing, nets
from vfljax.defense import Defense, slots
from vfljax.defenses.mid import divergence


def precode(weight=1e-3, width: int = 32) -> Defense:
  """A variational bottleneck at every passive party.

  Args:
    weight: Of the Kullback-Leibler term, a mean over the batch and a sum over
      the bottleneck, 0 or more; may be traced.
    width: Of the bottleneck, 1 or more.

  Raises:
    ValueError: if an argument is out of its range.
  """
  check.at_least('precode: weight', weight, 0)
  check.count('precode: width', width)
  encoder = nets.mlp(2 * width)

  def decoder(u):
    return nets.mlp(u.size // len(u))

  def init(key, spec):
    parts = []
    for k, shape in zip(jax.random.split(key, len(spec.embeddings)),
                        spec.embeddings):
      k_encoder, k_decoder = jax.random.split(k)
      u = jnp.zeros(shape.shape, shape.dtype)
      latent = jnp.zeros((len(u), width), u.dtype)
      parts.append(dict(
          encoder=encoder.init(k_encoder, u),
          decoder=decoder(u).init(k_decoder, latent),
      ))
    return slots(spec, passive=tuple(parts))

  def send(passive: Any, key, u):
    code = encoder.apply(passive['encoder'], u)
    mean, log_std = jnp.split(code, 2, axis=-1)
    # The deviation starts near 1, and its exponential cannot overflow.
    log_std = 5 * jnp.tanh(log_std / 5)
    noise = jax.random.normal(key, mean.shape, mean.dtype)
    drawn = mean + jnp.exp(log_std) * noise
    sent = decoder(u).apply(passive['decoder'], drawn).reshape(u.shape)
    return sent.astype(u.dtype), weight * divergence(
        mean, log_std, crossing.counted(u)
    )

  return Defense(init=init, send=send)
