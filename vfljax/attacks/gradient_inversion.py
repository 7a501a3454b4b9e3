"""Gradient inversion (Zou et al. 2022, there "BLI"; Kang et al. 2022, Eq. 11).

A passive party that sees only the gradient of its bottom network's weights
makes up dummy labels and dummy embeddings of the other parties for a round's
samples, and optimizes them until they give the same gradient. Both are free
parameters, the labels through a softmax.

VFLAIR's code tries two top models and reports the better one, which takes the
true labels; the papers do not say how they choose. Here the attacker takes the
restart that explains the gradient best, which needs no labels.

The papers' attackers assume that their embedding is added to the sum as it is.
They may fail where it passes something else first: a bottleneck at the active
party (MID), whose weights no passive party knows, or the attacker's own
(PRECODE, MID at the passive side), whose draws are not in its view. With
`between='linear'` the attacker adapts: it models this as one linear map for all
samples of the round, which it optimizes, too. It then cannot tell which class
is which, so its score is `matched`; and where the embedding is added as it is,
it infers far less than the attacker who assumes that. A small leakage is that
of these attackers, and no bound for one who searches more.
"""
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp
import optax

from vfljax import check, descent, nets
from vfljax.attack import Attack, recipe
from vfljax.check import Misfit
from vfljax.numerics import floating
from vfljax.scene import Scene, summed
from vfljax.types import VFL, Array, Net, Params
from vfljax.views import ModelGradients

Fuse = Callable[[Array, Array], Array]


class Search(NamedTuple):
  """How the attacker searches.

  Attributes:
    steps: Adam's, 1 or more; Zou et al. take 10000.
    restarts: Starting points, 1 or more, searched side by side.
    learning_rate: Adam's.
    between: What the attacker assumes between its embedding and the sum:
      'nothing' or a 'linear' map.
  """

  steps: int = 500
  restarts: int = 4
  learning_rate: float = 0.05
  between: str = 'nothing'


BETWEEN = ('nothing', 'linear')
SMALL = 0.1  # A map's weights at the start; an identity would be a guess.


class Dummies(NamedTuple):
  """What is optimized: the other parties' embeddings [batch, width], logits of
  the labels [batch, classes], and a map [width, width] or ()."""

  hidden: Array
  labels: Array
  between: Array | tuple[()] = ()


def added(u: Array, hidden: Array) -> Array:
  """Logits where the embeddings are summed; a width of 1 is one logit."""
  z = u + hidden
  return nets.pair(z) if z.shape[-1] == 1 else z


def averaged(parties: int) -> Fuse:
  """Logits where the embeddings of so many parties are averaged.

  `hidden` is then the sum of all other parties' embeddings.
  """
  return lambda u, hidden: added(u / parties, hidden / parties)


def invert(
    bottom: Net, weights: Params, features: Array, gradients: Params,
    start: Dummies, search: Search = Search(), fuse: Fuse = added,
    valid: Array | None = None,
) -> tuple[Dummies, Array]:
  """Eq. 11 from one starting point: (dummies, squared distance at the end).

  Args:
    bottom: The attacker's network.
    weights: Its weights in the round.
    features: [batch, ...] its samples.
    gradients: The batch's mean loss's, with respect to those weights.
    start: Where to start.
    search: Steps and learning rate.
    fuse: (embeddings, dummy embeddings) -> logits, the attacker's idea of the
      other side's top.
    valid: [batch] 1 for a sample, 0 for padding.

  Raises:
    ValueError: if gradients are not of the weights' shapes, valid is not
      [batch], or logits have other classes than the dummy labels.
  """
  _check_shapes(weights, features, gradients, valid)
  real = jnp.ones(len(features)) if valid is None else valid
  count = jnp.where(real.sum() > 0, real.sum(), 1)
  tx = optax.adam(search.learning_rate)

  def distance(dummies: Dummies) -> Array:
    target = jax.nn.softmax(dummies.labels)

    def loss(weights):
      sent = floating(bottom.apply(weights, features))
      if not isinstance(dummies.between, tuple):
        sent = sent @ dummies.between
      logits = fuse(sent, dummies.hidden)
      if logits.shape != target.shape:
        raise Misfit(
            'gradient_inversion needs embeddings whose sum is the logits, '
            f'{target.shape} here; they are {logits.shape}. Attack a '
            'federation without a trained top, or give its own `fuse`.'
        )
      each = optax.softmax_cross_entropy(logits, target)
      return (each * real).sum() / count

    gap = jax.tree.map(
        lambda own, seen: floating(own) - floating(seen),
        jax.grad(loss)(weights), gradients,
    )
    return optax.tree.norm(gap, squared=True)

  def step(carry: tuple[Any, Any], _):
    dummies, opt = carry
    slope = jax.grad(distance)(dummies)
    return descent.step(tx, slope, opt, dummies), None

  carry: tuple[Any, Any] = start, tx.init(start)
  found: Any = lax.scan(step, carry, None, length=search.steps)[0][0]
  return found, distance(found)


def _check_shapes(weights: Params, features, gradients: Params, valid):
  """Raises ValueError for what would be broadcast, such as several rounds'
  gradients, stacked."""
  own, seen = (jax.tree.map(jnp.shape, x) for x in (weights, gradients))
  if own != seen:
    raise ValueError(
        'gradient_inversion needs one round, with gradients of the shapes of '
        f'the weights, {own}; got {seen}.'
    )
  if valid is not None and jnp.shape(valid) != (len(features),):
    raise ValueError(
        f'gradient_inversion: valid must be [batch] of the {len(features)} '
        f'samples; got shape {jnp.shape(valid)}.'
    )


def _closed(scene: Scene) -> str:
  """A need: the logits are the sum of the embeddings."""
  if not scene.open_top:
    return ''
  return (
      'takes the sum of the embeddings for the logits, which it is not with a '
      'trainable top. Use --config.model.trainable_top=False or '
      '--config.model.algorithm=vlr.'
  )


def fuse_of(scene: Scene, vfl: VFL) -> Fuse:
  """How a federation without a trained top makes logits of its embeddings."""
  if scene.linear or scene.aggregation != 'mean':
    return added
  return averaged(sum(net is not None for net in vfl.bottoms))


def _make(options: Search, scene: Scene, vfl: VFL) -> Attack:
  return gradient_inversion(
      vfl.bottom(1), scene.classes, options, fuse_of(scene, vfl)
  )


@recipe(options=Search, make=_make, needs=(summed, _closed))
def gradient_inversion(
    bottom: Net, classes: int, search: Search = Search(), fuse: Fuse = added,
) -> Attack:
  """Scores: [batch, classes], logits of the made-up labels.

  Args:
    bottom: The attacker's own network.
    classes: How many there are.
    search: How it searches.
    fuse: Its idea of the other side's top.

  Raises:
    ValueError: if steps or restarts are below 1, the rate is not above 0, or
      `between` is unknown.
  """
  check.count('gradient_inversion: classes', classes, 2)
  check.above('gradient_inversion: learning_rate', search.learning_rate, 0)
  check.count('gradient_inversion: steps', search.steps)
  check.count('gradient_inversion: restarts', search.restarts)
  check.one_of('gradient_inversion: between', search.between, BETWEEN)

  def run(key, view: ModelGradients):
    u = jax.eval_shape(
        lambda *given: floating(bottom.apply(*given)), view.weights,
        view.features,
    )

    def attempt(key):
      k_hidden, k_labels, k_between = jax.random.split(key, 3)
      start = Dummies(
          jax.random.normal(k_hidden, u.shape, u.dtype),
          jax.random.normal(k_labels, (len(view.features), classes), u.dtype),
      )
      if search.between == 'linear':
        square = u.shape[-1:] * 2
        start = start._replace(
            between=SMALL * jax.random.normal(k_between, square, u.dtype)
        )
      return invert(
          bottom, view.weights, view.features, view.gradients, start, search,
          fuse, view.valid,
      )

    keys = jax.random.split(key, search.restarts)
    found, distance = jax.vmap(attempt)(keys)
    return found.labels[descent.least(distance)]

  return Attack(ModelGradients, run)
