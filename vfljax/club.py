"""CLUB: an upper bound of mutual information that samples can estimate.

I(h; y) is at most the mean log-likelihood log q(y|h) over pairs of one sample
minus that over pairs of independent samples, if q is near enough to p(y|h):
vCLUB of Cheng et al. (ICML 2020), PlugVFL's Eq. 4 and 7. The price is a network
q that must be trained, by `learning_loss`, on the same representations.

Every function is of plain arrays and can be differentiated. `upper_bound` takes
any q and evaluates it on all pairs; for a categorical or Gaussian q the same
number has a closed form in time linear in the number of samples. What differs
from the authors' code: the sampled bound draws its negatives as in the paper
(uniform, with replacement) where the code permutes the batch, and samples may
have weights, so that rows of padding count nothing.

All raise ValueError without a sample.
"""
from collections.abc import Callable
import math

import jax
from jax import lax
import jax.numpy as jnp

from vfljax.numerics import common_type, floating
from vfljax.types import Array, Key

LogQ = Callable[[Array, Array], Array]


def upper_bound(
    log_q: LogQ, h: Array, y: Array, weights: Array | None = None
) -> Array:
  """vCLUB of a batch: E_p(h,y) log q(y|h) - E_p(h)p(y) log q(y|h), in nats.

  The second mean is over all pairs of rows, those of one sample included, as in
  the paper's estimator; it takes a call of `log_q` per sample. `categorical`
  and `gaussian` are its closed forms.

  Args:
    log_q: (h [samples, ...], y [samples, ...]) -> [samples], the logarithm of
      q(y_i|h_i); for a continuous y of the density.
    h: [samples, ...] representations, 1 or more.
    y: [samples, ...] what the representations should not reveal.
    weights: [samples], 0 or more and not all 0; each sample counts 1 by
      default.

  Returns:
    A scalar. With the true conditional as q it estimates
    I(h; y) + KL(p(h)p(y) || p(h, y)), times 1 - 1/samples because of the pairs
    of one sample, so it bounds I(h; y); with a poor q it may be below that, and
    even below 0.
  """
  h, y = jnp.asarray(h), jnp.asarray(y)
  w = _shares(weights, h)

  def against(i):
    others = jnp.broadcast_to(y[i], y.shape)
    return w[i] * _mean(log_q(h, others), w)

  together = _mean(log_q(h, y), w)
  return together - lax.map(against, jnp.arange(len(y))).sum()


def sampled_upper_bound(
    log_q: LogQ, h: Array, y: Array, others: Array,
    weights: Array | None = None,
) -> Array:
  """vCLUB-S (PlugVFL's Eq. 8): one negative a sample, two calls of `log_q`.

  Args:
    log_q, h, y, weights: As in `upper_bound`.
    others: [samples, ...] a y of another sample for each, see `negatives`.

  Returns:
    A scalar; unbiased for vCLUB if `others` are drawn independently of h.
  """
  w = _shares(weights, h)
  return _mean(log_q(h, y) - log_q(h, others), w)


def learning_loss(
    log_q: LogQ, h: Array, y: Array, weights: Array | None = None
) -> Array:
  """What q must minimise, mean of -log q(y|h) (PlugVFL's Eq. 11)."""
  return -_mean(log_q(h, y), _shares(weights, h))


def negatives(key: Key, y: Array, weights: Array | None = None) -> Array:
  """[samples, ...] rows of `y`, drawn independently and with replacement.

  Args:
    y: [samples, ...].
    weights: [samples], how likely each row is, not all 0; uniform by default.
  """
  y = jnp.asarray(y)  # Traced numbers index no NumPy.
  if weights is None:
    return y[jax.random.randint(key, (len(y),), 0, len(y))]
  # Draws in half precision often tie, and the first rows would win.
  weights = floating(weights)
  return y[jax.random.categorical(key, jnp.log(weights), shape=(len(y),))]


def log_categorical(logits: Array, y: Array) -> Array:
  """[samples]: log softmax(logits) at class distributions `y`.

  Args:
    logits: [samples, classes].
    y: [samples, classes], rows that sum to 1; one-hot for known classes.
  """
  return (y * jax.nn.log_softmax(logits)).sum(-1)


def log_gaussian(mean: Array, log_var: Array, y: Array) -> Array:
  """[samples]: log density of N(mean, exp(log_var)) with independent axes.

  Args:
    mean, log_var, y: [samples, width]; log_var of the variance, in nats.
  """
  distance = (y - mean) ** 2 * jnp.exp(-log_var)
  return -0.5 * (distance + log_var + math.log(2 * math.pi)).sum(-1)


def categorical(
    logits: Array, y: Array, weights: Array | None = None
) -> Array:
  """vCLUB for a categorical q, from its logits on the batch.

  Args:
    logits: [samples, classes] of q(y|h_i).
    y: [samples, classes] class distributions.
    weights: As in `upper_bound`.

  Returns:
    A scalar; equal to `upper_bound` in one pass.
  """
  w = _shares(weights, logits)
  apart = (w @ y)[None]  # The class shares.
  return _mean(log_categorical(logits, y), w) - _mean(
      log_categorical(logits, apart), w
  )


def gaussian(
    mean: Array, log_var: Array, y: Array, weights: Array | None = None
) -> Array:
  """vCLUB for a Gaussian q with independent axes, from its parameters.

  Args:
    mean, log_var: [samples, width] of q(y|h_i).
    y: [samples, width].
    weights: As in `upper_bound`.

  Returns:
    A scalar; equal to `upper_bound` in one pass: the mean squared distance to
    all y is that to their center plus their variance.
  """
  w = _shares(weights, mean)
  center = (w @ y)[None]
  spread = (w @ (y - center) ** 2)[None]
  excess = (center - mean) ** 2 + spread - (y - mean) ** 2
  return _mean(0.5 * (excess * jnp.exp(-log_var)).sum(-1), w)


def _shares(weights: Array | None, like: Array) -> Array:
  """Weights that sum to 1, [samples], or to 0 if all of them are 0."""
  count = len(like)
  if not count:
    raise ValueError('There are no samples to estimate information from.')
  if weights is None:
    return jnp.full((count,), 1 / count, common_type(like, 1.0))
  weights = floating(weights)  # In half precision they would not sum to 1.
  total = weights.sum()  # 0 where no row is a sample: then none counts.
  return weights / jnp.where(total > 0, total, 1)


def _mean(x: Array, shares: Array) -> Array:
  """Weighted mean; rows of weight 0 are ignored, even NaN."""
  return (jnp.where(shares > 0, x, 0) * shares).sum()

