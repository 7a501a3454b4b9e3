"""GAFM: labels through a generator, a critic and a randomized response.

The active party does not differentiate a loss on the true labels. Its top is F,
the mean of the embeddings: f(x). A Wasserstein critic learns the distribution
of labels, a generator G(f(x)) imitates it, and a cross-entropy pulls f(x)
towards 0.5 +- u. The cut-layer gradient is the sum of the gradients of both
terms, each normalised first.

Han et al., "GAN-based vertical federated learning for label protection" (ICLR
2023 submission), Algorithm 1. What the paper leaves open follows the authors'
public code: one norm over the batch, u drawn anew every round. Against the
paper, with its code: f(x) in (0, 1) is the probability (Eq. 5 prints sigma(f),
and sigma(1 - f) by mistake), and G has one hidden layer and D two (the paper
calls both a "1-layer DNN"). Against the paper and its code, which predict by
G(f(x)): f(x) predicts, because nothing ties the direction of G's output to the
labels, so that its AUC is near 0 in some trainings and near 1 in others. Each
has an argument. experiments/gafm/README.md has the evidence (Table 2 by both
predictions) and the defense's limit: an attacker who regresses its gradients
on its own embeddings reads the labels.
"""
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from vfljax import check, fusing, nets
from vfljax.defense import Defense, Slots, Spec, slots
from vfljax.defenses.gan import (
    GAN, Memory, Networks, Seen, critic_step, generator_step, mean, networks,
    wasserstein,
)
from vfljax.defenses.randomized import (
    LINKS, NORMS, cross_entropy, hide, probability, randomized_response, reveal,
    scaled_gradients,
)
from vfljax.numerics import floating
from vfljax.types import Array, Embeddings, Key, Net

PARTS = ('both', 'gan', 'ce')
PREDICTORS = ('f', 'generator')


class Reading(NamedTuple):
  """How we read what the paper leaves open.

  Attributes:
    norm: Each term's gradient is divided by its norm over the 'batch', by the
      norm of each 'sample', or left as it is ('none').
    redraw: Draws u anew every round; else once for every training sample.
    link: What the cross-entropy takes for the probability: 'identity', f(x)
      itself, for embeddings in (0, 1) (outside it is that of the nearest such
      value); 'sigmoid', sigma(f); 'printed', Eq. 5 with its sigma(1 - f).
      Averaged over an embedding's width.
  """

  norm: str = 'batch'
  redraw: bool = True
  link: str = 'identity'


class Settings(NamedTuple):
  """The arguments of `gafm`."""

  delta: Any
  weight: Any
  sigma: Any
  clip: Any
  part: str
  predict: str
  reading: Reading
  gan: GAN


def gafm(
    delta=0.05, weight=1.0, sigma=0.01, clip=0.1, *, part: str = 'both',
    predict: str = 'f', reading: Reading = Reading(), networks: GAN = GAN(),
) -> Defense:
  """Trains through a GAN on the labels and a randomized cross-entropy.

  They replace the top network and the task loss, for two classes. All
  embeddings (the active party's own, too) must have one shape. In a chain it
  comes last, before defenses on the gradient only (`chain(gafm(...),
  marvell(...))` is the paper's G-M); in the others' hooks `predict` returns
  f(x), [batch, d], in place of logits.

  Args:
    delta: Largest distance of the randomized response from 1/2, in [0, 0.5];
      may be traced. 0 takes the labels out of the cross-entropy.
    weight: The paper's gamma, of the GAN's gradient, above 0; may be traced.
    sigma: Deviation of the noise on the labels that the critic sees, >= 0; may
      be traced.
    clip: The critic's weights are kept in [-clip, clip]; above 0.
    part: 'both', or only the 'gan' or the 'ce' term (the paper's Figure 3).
    predict: 'f' or 'generator': which of the two predicts.
    reading: How we read what the paper leaves open.
    networks: Sizes of the generator and the critic, and how they learn.

  Raises:
    ValueError: if an argument is out of its range; on `init`, if there are not
      two classes.
  """
  own = Settings(delta, weight, sigma, clip, part, predict, reading, networks)
  _check(own)
  return Defense(
      init=partial(_init, own), prepare=None if reading.redraw else _prepare,
      top=lambda net: MEAN, adapt=partial(_adapt, own),
      objective=partial(_objective, own), decode=partial(_decode, own),
  )


def _made(own: Settings) -> Networks:
  return networks(own.gan.generator, own.gan.critic)


def _optimizers(own: Settings):
  return optax.adam(own.gan.generator_rate), optax.adam(own.gan.critic_rate)


def _init(own: Settings, key: Key, spec: Spec) -> Slots:
  _two_classes(spec)
  gan, txs = _made(own), _optimizers(own)
  k_generator, k_critic = jax.random.split(key)
  blank = lambda *shape: jnp.zeros((1, *shape), jnp.float32)
  weights = gan.generator.init(
      k_generator, blank(*spec.embeddings[0].shape[1:])
  )
  scores = gan.critic.init(k_critic, blank(1))
  opts = txs[0].init(weights), txs[1].init(scores)
  return slots(spec, state=Memory(weights, scores, *opts))


def _prepare(key: Key, features, labels: Array) -> Array:
  del features
  labels = floating(labels)  # Half precision has few numbers between 0 and 1.
  share = jax.random.uniform(key, labels.shape[:1], labels.dtype)
  return hide(labels, share)


def _adapt(own: Settings, state: Memory, key: Key, top, up, labels) -> Memory:
  if own.part == 'ce':
    return state
  gan, txs = _made(own), _optimizers(own)
  y, real, _ = _targets(labels, own.reading.redraw)
  seen = Seen(_flat(jax.lax.stop_gradient(top(up))), y, real)
  for k in jax.random.split(key, own.gan.critic_steps):
    state = critic_step(k, gan, txs[1], state, seen, own.sigma, own.clip)
  return generator_step(gan, txs[0], state, seen)


def _objective(own: Settings, state: Memory, key: Key, top, up, labels):
  gan_loss, ce_loss = losses(key, own, state, _flat(top(up)), labels)
  return mean(gan_loss + ce_loss, fusing.row_sums(labels))


def _decode(own: Settings, state: Memory, f: Array) -> Array:
  if own.predict == 'generator':
    generator = _made(own).generator
    return nets.pair(generator.apply(state.generator, _flat(f)))
  p = probability(_flat(f), own.reading.link)[:, None]
  return nets.pair(jnp.log(p) - jnp.log1p(-p))


def losses(
    key: Key, own: Settings, state: Memory, f: Array, labels: Array
) -> tuple[Array, Array]:
  """The terms of Eq. 6, row by row; their gradients in f are normalised.

  Args:
    key: Draws the noise and u.
    own, state: Settings and weights.
    f: [batch, d].
    labels: [batch, 2].

  Returns:
    Two [batch], with the means weight * L_GAN and L_CE; zeros for a term that
    `part` leaves out.
  """
  k_noise, k_u = jax.random.split(key)
  y, real, share = _targets(labels, own.reading.redraw)
  gan_loss = ce_loss = jnp.zeros(len(f), f.dtype)
  to_gan, to_ce = scaled_gradients(f, (own.weight, 1.0), own.reading.norm)
  if own.part != 'ce':
    value = wasserstein(
        k_noise, _made(own), state.generator, state.critic,
        Seen(to_gan, y, real), own.sigma,
    )
    # The gradient has the weight already; this gives it to the value, too.
    gan_loss = value + jax.lax.stop_gradient((own.weight - 1) * value)
  if own.part != 'gan':
    if share is None:
      share = jax.random.uniform(k_u, y.shape, y.dtype)
    target = randomized_response(y, own.delta * share)
    ce_loss = cross_entropy(to_ce, target, own.reading.link)
  return gan_loss, ce_loss


def _aggregate(us: Embeddings) -> Array:
  """F, Eq. 17: the mean of the embeddings, `None` left out."""
  present = [u for u in us if u is not None]
  shapes = {u.shape for u in present}
  if len(shapes) > 1:
    raise ValueError(
        'gafm averages the embeddings, so they must have one shape; got '
        f'{sorted(shapes)}.'
    )
  return sum(present[1:], start=present[0]) / len(present)


MEAN = Net(lambda key, us: (), lambda params, us: _aggregate(us))


def _targets(labels: Array, redraw: bool):
  """(y, 1 for a real row, the fixed share of u or None), all [batch]."""
  labels = floating(labels)  # Noise of 0.01 is lost in bfloat16 beside a 1.
  real = fusing.row_sums(labels)
  if redraw:
    return labels[:, 1], real, None
  y, share = reveal(labels)
  return y, real, share


def _flat(f: Array) -> Array:
  """[batch, d], in float32 at least: in bfloat16 1 - `EDGE` is 1."""
  return floating(f).reshape(len(f), -1)


def _two_classes(spec: Spec) -> None:
  if spec.classes != 2:
    raise ValueError(
        f'gafm is for binary labels (2 classes); the data have {spec.classes}.'
    )


def _check(own: Settings) -> None:
  check.inside('delta', own.delta, 0, 0.5)
  above = dict(
      weight=own.weight, clip=own.clip, generator_rate=own.gan.generator_rate,
      critic_rate=own.gan.critic_rate,
  )
  for name, value in above.items():
    check.above(name, value, 0)
  check.at_least('sigma', own.sigma, 0)
  check.count('critic_steps', own.gan.critic_steps)
  check.one_of('norm', own.reading.norm, NORMS)
  check.one_of('part', own.part, PARTS)
  check.one_of('link', own.reading.link, LINKS)
  check.one_of('predict', own.predict, PREDICTORS)
