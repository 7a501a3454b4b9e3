"""MID: mutual information regularization (Zou et al. 2023).

An embedding H passes a variational bottleneck before the top network sees it:
an encoder gives a mean and a deviation, T is drawn from that normal
distribution, and a decoder makes Z of T. The objective is the task's loss plus
lambda * KL(N(mean, std^2) || N(0, 1)). The KL bounds I(H; T) from above (Eq.
6), so that gradients and embeddings tell little of labels, and Z of features.

The active party has one bottleneck for each passive party (Algorithm 1), or
each passive party has its own behind its bottom network (Algorithm 2). The
network is that of the authors' public code, VFLAIR: Linear(d, 2 s d); std =
softplus(. - shift); Linear(s d, 5 s d), ReLU, Linear(5 s d, d). VFLAIR also has
a ReLU behind the encoder and one behind the decoder. They cost accuracy, and a
unit that dies cannot shed its KL, so they are there with `reference` only.

The gradient of a passive party's penalty depends on its samples, too: whoever
gets the gradients of its weights can read samples from it (`attacks.cafe` with
`defended`), before training more at a large lambda than at 0.

The bottleneck has the learning rate of its party unless that party's optimizer
gives the weights under 'defense' another (`optax.partition`).
"""
from collections.abc import Sequence
from functools import partial
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from vfljax import check, crossing
from vfljax.defense import Defense, Slots, Spec, slots
from vfljax.nets.bottleneck import Bottleneck, bottleneck, encode
from vfljax.numerics import floating
from vfljax.types import Array, Key, Net, Params

SIDES = ('active', 'passive')
NOISE = ('always', 'training')


class Settings(NamedTuple):
  """The arguments of `mid`."""

  weight: Any
  side: str
  scale: int
  hidden: int
  shift: float
  reference: bool
  noise: str
  parties: Sequence[int] | None

  def networks(self, u) -> tuple[Net, Net]:
    """Encoder and decoder of embeddings of the shape of `u`."""
    width = math.prod(u.shape[1:])
    return bottleneck(width, self.scale, self.hidden, self.reference)


def mid(
    weight, side: str = 'active', *, scale: int = 1, hidden: int = 5,
    shift: float = 0.5, reference: bool = False, noise: str = 'always',
    parties: Sequence[int] | None = None,
) -> Defense:
  """A variational bottleneck behind every passive party's embedding.

  Args:
    weight: Lambda, 0 or more; may be traced. 0 keeps the bottleneck, its noise
      included. The paper tries 0 to 1e4 and VMask 5e-5; we found 0.001 to 0.1
      between no effect and a passive party that the top network ignores.
    side: Who has the bottlenecks: the 'active' party, which protects labels, or
      each 'passive' one, which protects its features.
    scale: The bottleneck's width as a multiple s of the embedding's, 1 or more.
    hidden: The decoder's hidden width as a multiple of the bottleneck's (5 in
      VFLAIR, 2 in its small form); 0 is a linear decoder, as against CAFE.
    shift: Subtracted before the softplus: the larger, the less noise at the
      start. VFLAIR has 0.5, and 5 for images.
    reference: VFLAIR's two further ReLUs.
    noise: 'always' draws T at inference too, as VFLAIR does; 'training' decodes
      the mean at inference. The latter is for the active side only, as `send`
      does not know whether a passive party is training.
    parties: Passive parties, from 1, whose embeddings pass a bottleneck; all
      of them by default. Zou et al. speak of one defending party.

  Raises:
    ValueError: if an argument is out of its range, for noise='training' at the
      passive side, or for a passive party that does not exist.
  """
  own = Settings(
      weight, side, scale, hidden, shift, reference, noise, parties
  )
  _check(own)
  init = partial(_init, own)
  if side == 'active':
    return Defense(init=init, receive=partial(_receive, own))
  return Defense(init=init, send=partial(_send, own))


def _check(own: Settings) -> None:
  check.at_least('mid: weight', own.weight, 0)
  check.one_of('mid: side', own.side, SIDES)
  check.count('mid: scale', own.scale)
  check.count('mid: hidden', own.hidden, 0)
  check.one_of('mid: noise', own.noise, NOISE)
  if own.side == 'passive' and own.noise == 'training':
    raise ValueError("mid: side='passive' needs noise='always'.")
  if own.parties is None:
    return
  if not isinstance(own.parties, (tuple, list)) or not own.parties:
    raise ValueError(
        'mid: parties must be a tuple of passive parties, as in parties=(1,); '
        f'got {own.parties!r}.'
    )
  for k in own.parties:
    check.count('mid: parties', k)


def _init(own: Settings, key: Key, spec: Spec) -> Slots:
  count = len(spec.embeddings)
  chosen = range(1, count + 1) if own.parties is None else own.parties
  if any(k > count for k in chosen):
    raise ValueError(
        f'mid: parties {tuple(chosen)}, but there are {count} passive ones.'
    )
  parts = tuple(
      _draw(own, key, u) if k in chosen else ()
      for k, (u, key) in enumerate(
          zip(spec.embeddings, jax.random.split(key, count)), start=1
      )
  )
  if own.side == 'active':
    return slots(spec, active=parts)
  return slots(spec, passive=parts)


def _draw(own: Settings, key: Key, u: jax.ShapeDtypeStruct) -> Params:
  """Weights of one party's bottleneck."""
  encoder, decoder = own.networks(u)
  k_encoder, k_decoder = jax.random.split(key)
  blank = jnp.zeros(u.shape, u.dtype)
  weights = encoder.init(k_encoder, blank)
  code, _ = jnp.split(encoder.apply(weights, blank), 2, -1)
  return Bottleneck(decoder.init(k_decoder, code), weights)


def _through(
    own: Settings, params: Any, key: Key, u: Array, real: Array, drawn: bool
) -> tuple[Array, Array]:
  """(Z, KL) of one party's embeddings u; (u, 0) without a bottleneck."""
  if not params:
    return u, jnp.zeros((), jnp.float32)
  encoder, decoder = own.networks(u)
  mean, log_std = encode(encoder, params.encoder, u, own.shift)
  draw = jax.random.normal(key, mean.shape, mean.dtype) if drawn else 0.0
  t = mean + jnp.exp(log_std) * draw
  z = decoder.apply(params.decoder, t).reshape(u.shape).astype(u.dtype)
  return z, divergence(mean, log_std, real)


def _receive(own: Settings, active, state, key, up, labels):
  del state
  drawn = labels is not None or own.noise == 'always'
  real = crossing.counted(up[0]) if labels is None else labels.sum(-1)
  keys = jax.random.split(key, len(up))
  outs = [
      _through(own, p, k, u, real, drawn) for p, k, u in zip(active, keys, up)
  ]
  return tuple(z for z, _ in outs), own.weight * sum(kl for _, kl in outs)


def _send(own: Settings, passive, key, u):
  z, kl = _through(own, passive, key, u, crossing.counted(u), True)
  return z, own.weight * kl


def divergence(mean: Array, log_std: Array, real: Array) -> Array:
  """KL(N(mean, std^2) || N(0, 1)), nats, a scalar: Eq. 6's second term.

  Args:
    mean, log_std: [n, latent]; the KL is summed over the second axis.
    real: [n] 1, or 0 for a row that does not count; the KL is averaged over
      the others.
  """
  real = floating(real)  # In half precision there is no count of 257 rows.
  each = 0.5 * (mean**2 + jnp.exp(2 * log_std) - 1) - log_std
  return (real * each.sum(-1)).sum() / jnp.maximum(real.sum(), 1)
