"""GAFM: labels through a generator, a critic and a randomized response.

The active party has no loss on its labels to differentiate. Its top is F, the
mean of the embeddings: f(x). A Wasserstein critic learns the distribution of
labels, a generator G(f(x)) imitates it, and a cross-entropy pulls f(x) towards
0.5 +- u. What is sent back is the sum of both gradients, each normalised first.

Han et al., "GAN-based vertical federated learning for label protection" (ICLR
2023 submission), Algorithm 1. What the paper leaves open follows the authors'
code as far as the FIDELITY study read it, and each has an argument: one norm
over the batch, u drawn anew every round, f(x) in (0, 1) used as the probability
(Eq. 5 prints sigma(f), and sigma(1 - f) by mistake), G with one hidden layer
and D with two, and f(x) as the prediction: nothing ties the direction of G's
output to the labels, so that its AUC comes out near 0 as often as near 1.
experiments/gafm/README.md has the evidence and what the defense does not do: an
attacker who regresses its gradients on its own embeddings reads the labels.
"""
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from vfljax import check, nets
from vfljax.defense import Defense, Spec, slots
from vfljax.numerics import row_norms
from vfljax.types import Array, Embeddings, Net, Params

NORMS = ('batch', 'sample', 'none')
PARTS = ('both', 'gan', 'ce')
LINKS = ('identity', 'sigmoid', 'printed')
EDGE = 1e-4  # Probabilities stay so far from 0 and 1.


class GAN(NamedTuple):
  """The active party's own networks, [batch, d] to [batch, 1] and so on."""

  generator: Net  # f(x) to the logit of the prediction
  critic: Net  # a label, or a prediction, to a score


class Memory(NamedTuple):
  """What the active party carries from round to round."""

  generator: Params
  critic: Params
  generator_opt: Any
  critic_opt: Any


class Terms(NamedTuple):
  """What the terms of the objective depend on: arguments of `gafm`."""

  delta: Any
  weight: Any
  sigma: Any
  norm: str
  redraw: bool
  part: str
  link: str


def gafm(
    delta=0.05, weight=1.0, sigma=0.01, clip=0.1, *, norm: str = 'batch',
    redraw: bool = True, part: str = 'both', predict: str = 'f',
    link: str = 'identity', generator: tuple[int, ...] = (16,),
    critic: tuple[int, ...] = (10, 10), generator_rate=1e-4, critic_rate=1e-4,
    critic_steps: int = 1,
) -> Defense:
  """Trains through a GAN on the labels and a randomized cross-entropy.

  In place of the top network and of the task loss, for two classes. All
  embeddings (the active party's own, too) must have one shape. In a chain it
  comes last but for defenses on the gradient (`chain(gafm(...), marvell(...))`
  is the paper's G-M), and `predict` gives the others' hooks f(x), [batch, d].

  Args:
    delta: Largest distance of the randomized response from 1/2, in [0, 0.5];
      may be traced. 0 takes the labels out of the cross-entropy.
    weight: The paper's gamma, of the GAN's gradient, above 0; may be traced.
    sigma: Deviation of the noise on the labels that the critic sees, >= 0.
    clip: The critic's weights are kept in [-clip, clip]; above 0.
    norm: Each term's gradient is divided by its norm over the 'batch', by every
      'sample''s own, or is left as it is ('none').
    redraw: Draws u anew every round; else once for every training sample.
    part: 'both', or only the 'gan' or the 'ce' term (the paper's Figure 3).
    predict: 'f' or 'generator': which of the two predicts.
    link: What the cross-entropy takes for the probability: 'identity', f(x)
      itself, for embeddings in (0, 1) (outside it is that of the nearest such
      value); 'sigmoid', sigma(f); 'printed', Eq. 5 with its sigma(1 - f).
      Averaged over an embedding's width.
    generator: Hidden widths; () is one linear layer and a sigmoid.
    critic: Hidden widths. LeakyReLU after every layer.
    generator_rate: Adam's learning rate, above 0. The parties' own is theirs.
    critic_rate: The same of the critic.
    critic_steps: Of the critic in a round, 1 or more.

  Raises:
    ValueError: if an argument is out of its range; on `init`, if there are not
      two classes.
  """
  _check(delta, weight, sigma, clip, generator_rate, critic_rate, critic_steps)
  check.one_of('norm', norm, NORMS)
  check.one_of('part', part, PARTS)
  check.one_of('link', link, LINKS)
  check.one_of('predict', predict, ('f', 'generator'))
  gan = networks(generator, critic)
  txs = optax.adam(generator_rate), optax.adam(critic_rate)
  terms = Terms(delta, weight, sigma, norm, redraw, part, link)

  def init(key, spec: Spec):
    _two_classes(spec)
    k_generator, k_critic = jax.random.split(key)
    blank = jnp.zeros((1, *spec.embeddings[0].shape[1:]))
    weights = gan.generator.init(k_generator, blank)
    scores = gan.critic.init(k_critic, jnp.zeros((1, 1)))
    opts = txs[0].init(weights), txs[1].init(scores)
    return slots(spec, state=Memory(weights, scores, *opts))

  def prepare(key, features, labels):
    del features
    share = jax.random.uniform(key, labels.shape[:1], labels.dtype)
    return hide(labels, share)

  def adapt(state, key, top, up, labels):
    if part == 'ce':
      return state
    y, real, _ = _targets(labels, redraw)
    f = _flat(jax.lax.stop_gradient(top(up)))
    for k in jax.random.split(key, critic_steps):
      state = critic_step(k, gan, txs[1], state, f, y, real, sigma, clip)
    return generator_step(gan, txs[0], state, f, real)

  def objective(state, key, top, up, labels):
    gan_loss, ce_loss = losses(key, gan, terms, state, _flat(top(up)), labels)
    return gan_loss + ce_loss

  def decode(state, f):
    if predict == 'generator':
      return nets.pair(gan.generator.apply(state.generator, _flat(f)))
    p = probability(_flat(f), link)[:, None]
    return nets.pair(jnp.log(p) - jnp.log1p(-p))

  return Defense(
      init=init, prepare=None if redraw else prepare, top=lambda net: MEAN,
      adapt=adapt, objective=objective, decode=decode,
  )


def losses(
    key, gan: GAN, terms: Terms, state: Memory, f: Array, labels: Array
) -> tuple[Array, Array]:
  """The terms of Eq. 6, whose gradients with respect to f are normalised.

  Args:
    key: Of the noise and of u.
    gan, terms, state: Networks, settings and weights.
    f: [batch, d].
    labels: [batch, 2].

  Returns:
    weight * L_GAN and L_CE, scalars; 0 for the one that `terms.part` leaves
    out.
  """
  k_noise, k_u = jax.random.split(key)
  y, real, share = _targets(labels, terms.redraw)
  gan_loss = ce_loss = jnp.zeros((), f.dtype)
  if terms.part != 'ce':
    sent = scaled_gradient(f, terms.weight, terms.norm)
    value = wasserstein(
        k_noise, gan, state.generator, state.critic, sent, y, real, terms.sigma
    )
    # The weight is in the gradient already; this puts it into the value.
    gan_loss = value + jax.lax.stop_gradient((terms.weight - 1) * value)
  if terms.part != 'gan':
    if share is None:
      share = jax.random.uniform(k_u, y.shape, y.dtype)
    sent = scaled_gradient(f, 1.0, terms.norm)
    target = randomized_response(y, terms.delta * share)
    ce_loss = _mean(cross_entropy(sent, target, terms.link), real)
  return gan_loss, ce_loss


def networks(
    generator: tuple[int, ...] = (16,), critic: tuple[int, ...] = (10, 10)
) -> GAN:
  """G without its sigmoid, and D, with LeakyReLU as in appendix E.2."""
  leaky = 'leaky_relu'
  return GAN(
      nets.mlp(*generator, 1, activation=leaky),
      nets.mlp(*critic, 1, activation=leaky, final=leaky),
  )


def randomized_response(y: Array, u: Array) -> Array:
  """Eq. 4: 0.5 + u for a positive sample and 0.5 - u for a negative one.

  Args:
    y: [batch] of 0 and 1; what lies between is interpolated.
    u: [batch] in [0, delta].
  """
  return 0.5 + (2 * y - 1) * u


def cross_entropy(f: Array, target: Array, link: str = 'identity') -> Array:
  """Eq. 5 for each sample, [batch].

  Args:
    f: [batch, d].
    target: [batch], the randomized response.
    link: See `gafm`.
  """
  p = probability(f, link)
  other = 1 - p
  if link == 'printed':
    other = jax.nn.sigmoid(1 - f).mean(-1)
  return -(target * jnp.log(p) + (1 - target) * jnp.log(other))


def probability(f: Array, link: str = 'identity') -> Array:
  """P(positive) of embeddings [batch, d], [batch], in [EDGE, 1 - EDGE]."""
  p = f if link == 'identity' else jax.nn.sigmoid(f)
  # What lies outside is pulled back: its gradient is the edge's, not 0.
  p = p + jax.lax.stop_gradient(jnp.clip(p, EDGE, 1 - EDGE) - p)
  return p.mean(-1)


def wasserstein(
    key, gan: GAN, generator: Params, critic: Params, f: Array, y: Array,
    real: Array, sigma,
) -> Array:
  """Eq. 3: mean of D(y + noise) minus mean of D(G(f)), a scalar.

  Args:
    key: Of the noise.
    gan: The networks.
    generator, critic: Their weights.
    f: [batch, d].
    y: [batch] of 0 and 1.
    real: [batch], 0 for a row of padding.
    sigma: Deviation of the noise.
  """
  noise = sigma * jax.random.normal(key, y.shape, y.dtype)
  truth = gan.critic.apply(critic, (y + noise)[:, None])[:, 0]
  guess = jax.nn.sigmoid(gan.generator.apply(generator, f))
  fake = gan.critic.apply(critic, guess)[:, 0]
  return _mean(truth, real) - _mean(fake, real)


def critic_step(
    key, gan: GAN, tx, state: Memory, f: Array, y: Array, real: Array, sigma,
    clip,
) -> Memory:
  """Step 1 of Algorithm 1: the critic climbs Eq. 3, then is clipped."""

  def loss(critic):
    return -wasserstein(key, gan, state.generator, critic, f, y, real, sigma)

  grads = jax.grad(loss)(state.critic)
  updates, opt = tx.update(grads, state.critic_opt)
  moved: Any = optax.apply_updates(state.critic, updates)
  bound = lambda p: jnp.clip(p, -clip, clip).astype(p.dtype)
  return state._replace(critic=jax.tree.map(bound, moved), critic_opt=opt)


def generator_step(gan: GAN, tx, state: Memory, f: Array, real: Array):
  """Step 2 of Algorithm 1: the generator descends Eq. 3."""

  def loss(generator):
    guess = jax.nn.sigmoid(gan.generator.apply(generator, f))
    return -_mean(gan.critic.apply(state.critic, guess)[:, 0], real)

  grads = jax.grad(loss)(state.generator)
  updates, opt = tx.update(grads, state.generator_opt)
  moved: Any = optax.apply_updates(state.generator, updates)
  return state._replace(generator=moved, generator_opt=opt)


def normalise(g: Array, norm: str = 'batch') -> Array:
  """g / ||g|| of gradients [batch, d]; where the norm is 0, 0.

  Args:
    norm: One norm over the 'batch', one a 'sample', or 'none'.
  """
  if norm == 'none':
    return g
  rows = g.reshape(1, -1) if norm == 'batch' else g
  norms = row_norms(rows)[:, None]
  return (rows / jnp.where(norms > 0, norms, 1)).reshape(g.shape)


def scaled_gradient(f: Array, weight, norm: str) -> Array:
  """f itself; its gradient becomes weight * `normalise`(gradient)."""

  @jax.custom_vjp
  def same(f, weight):
    del weight
    return f

  def forward(f, weight):
    return f, weight

  def backward(weight, g):
    return weight * normalise(g, norm), jnp.zeros_like(weight)

  same.defvjp(forward, backward)
  return same(f, jnp.asarray(weight, f.dtype))


def hide(labels: Array, share: Array) -> Array:
  """Labels that carry each sample's u / delta, [batch, 2]; see `reveal`.

  They stay distributions with the same larger entry: 3/4 to 1.

  Args:
    labels: [batch, 2], 0 and 1.
    share: [batch] in [0, 1).
  """
  larger = 0.75 + share[:, None] / 4
  hidden = jnp.where(labels > 0.5, larger, 1 - larger)
  return hidden * labels.sum(-1, keepdims=True)  # Padding has no label.


def reveal(labels: Array) -> tuple[Array, Array]:
  """(y, share), both [batch], of what `hide` made."""
  q = labels[:, 1]
  return (q > 0.5).astype(q.dtype), 4 * jnp.maximum(q, 1 - q) - 3


def _aggregate(us: Embeddings) -> Array:
  """F: the mean of the embeddings (Eq. 17); of one, itself."""
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
  real = labels.sum(-1)
  if redraw:
    return labels[:, 1], real, None
  y, share = reveal(labels)
  return y, real, share


def _mean(x: Array, real: Array) -> Array:
  return (x * real).sum() / jnp.maximum(real.sum(), 1)


def _flat(f: Array) -> Array:
  return f.reshape(len(f), -1)


def _two_classes(spec: Spec) -> None:
  if spec.classes != 2:
    raise ValueError(
        f'gafm is for binary labels (2 classes); the data have {spec.classes}.'
    )


def _check(delta, weight, sigma, clip, generator_rate, critic_rate, steps):
  check.inside('delta', delta, 0, 0.5)
  above = dict(
      weight=weight, clip=clip, generator_rate=generator_rate,
      critic_rate=critic_rate,
  )
  for name, value in above.items():
    check.inside(name, value, 0, jnp.inf, open_low=True, open_high=True)
  check.at_least('sigma', sigma, 0)
  check.at_least('critic_steps', steps, 1)
