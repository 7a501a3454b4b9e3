"""Model completion with MixMatch, as Fu et al. (2022) do it.

A passive party has many samples and few labels, so it completes its bottom
network semi-supervised (Berthelot et al. 2019): it guesses labels of unlabeled
samples, sharpens them, mixes labeled and unlabeled samples with each other, and
fits the mixtures, the unlabeled ones with a weight that grows over training.
The final guess is made with a moving average of the weights.

Constants are those of the authors' code, which has one pass per sample in place
of augmentations. It means to fine-tune the bottom network but never does, since
its optimizer is made before the stolen network is put in: `tune=False`.

Ours differs in this. The unlabeled samples include the labeled ones. Mixed
samples pass the head's batch normalization together. Labels are guessed by its
running statistics; theirs by those of the guessed batch. Each step draws its
samples anew, the unlabeled ones with replacement; theirs takes both in turn.
The moving average is shorter at the start, so that after a short training it is
not mostly the initial weights.
"""
from typing import NamedTuple

import jax
from jax import lax
import jax.numpy as jnp
import optax

from vfljax import check, descent
from vfljax import samples as rows_of
from vfljax.attack import TRAINED, Attack, recipe
from vfljax.leakage import COMPLETION
from vfljax.nets.base import with_weights
from vfljax.nets.heads import normalized_head
from vfljax.numerics import sharpen
from vfljax.scene import Amounts, Scene
from vfljax.types import VFL, Array, Key, Net, Params
from vfljax.views import UnlabeledBottom


class MixMatch(NamedTuple):
  """How the attacker trains.

  Attributes:
    epochs: 1 or more; the authors take 25 on CIFAR.
    iterations: Steps an epoch, 1 or more.
    batch_size: Labeled samples a step, and as many unlabeled ones.
    stages: Guesses to return, evenly spread over the epochs, 1..epochs.
    learning_rate: Adam's.
    alpha: Parameter of the mixing shares' Beta distribution, above 0.
    temperature: Labels are sharpened by p^(1 / temperature), above 0.
    unlabeled: Weight of the unlabeled samples' loss at the end of training; it
      grows linearly from 0.
    average: Decay of the moving average of the weights, in [0, 1); in step i it
      is (1 + i) / (10 + i) where that is less.
    decay: Weights shrink by this share of the learning rate at every step.
  """

  epochs: int = 10
  iterations: int = 1024
  batch_size: int = 16
  stages: int = 5
  learning_rate: float = 2e-3
  alpha: float = 0.75
  temperature: float = 0.8
  unlabeled: float = 50.0
  average: float = 0.999
  decay: float = 0.02


class Options(NamedTuple):
  """How the attacker trains in an experiment, shorter than the authors."""

  epochs: int = 50
  iterations: int = 100  # steps an epoch; the authors take 1024
  stages: int = 10
  tune: bool = True  # whether it trains the stolen bottom too


def _embedding(scene: Scene) -> str:
  """A need: there is an embedding to put a head on."""
  if not scene.linear:
    return ''
  return (
      'trains a head on an embedding, which vlr does not have: use '
      'model_completion.'
  )


def check_options(options: Options, scene: Scene, samples: Amounts) -> None:
  """Raises ValueError if samples would be mixed that have no mixture."""
  del samples
  if scene.numbered and options.tune:
    raise ValueError(
        'mixmatch mixes samples, but numbers of categories or words have no '
        'mixtures. Set --config.attack.mixmatch.tune=False, which mixes '
        'embeddings.'
    )


def _make(options: Options, scene: Scene, vfl: VFL) -> Attack:
  how = MixMatch(
      options.epochs, options.iterations,
      stages=min(options.stages, options.epochs),
  )
  head = normalized_head(scene.classes)
  return mixmatch(vfl.bottom(1), head, how, options.tune)


@recipe(
    stage=TRAINED, options=Options, make=_make, needs=(_embedding,),
    check=check_options,
    baselines=lambda scene: ('local_model', 'scratch'), score=COMPLETION,
    skips_blank=True,
)
def mixmatch(
    bottom: Net, head: Net, how: MixMatch = MixMatch(), tune: bool = True
) -> Attack:
  """Completes a stolen bottom network with few labels and many samples.

  Args:
    bottom: The attacker's own architecture.
    head: From its embedding to logits [batch, classes], see `normalized_head`.
    how: How to train.
    tune: Train the bottom's weights too; else the head alone.

  Returns:
    An attack whose guess is [stages, samples, classes].

  Raises:
    ValueError: if a number is out of its range; in `run`, for samples that
      cannot be drawn or mixed.
  """
  for name in ('epochs', 'iterations', 'batch_size', 'stages'):
    check.count(f'mixmatch: {name}', getattr(how, name))
  check.at_least('mixmatch: epochs', how.epochs, how.stages)
  for name in ('learning_rate', 'alpha', 'temperature'):
    check.above(f'mixmatch: {name}', getattr(how, name), 0)
  check.at_least('mixmatch: unlabeled', how.unlabeled, 0)
  check.inside('mixmatch: average', how.average, 0, 1, open_high=True)
  check.at_least('mixmatch: decay', how.decay, 0)

  def run(key, view: UnlabeledBottom):
    _check_samples(view, tune)
    k_head, k_train = jax.random.split(key)
    known, others, wanted = (
        view.labeled_features, view.unlabeled, view.features
    )
    whole = dict(bottom=view.weights)
    if not tune:  # A frozen network is applied once.
      # The few known ones beside others: XLA compiles each size of a batch.
      both = bottom.apply(view.weights, jnp.concatenate([known, wanted]))
      known, wanted = both[: len(known)], both[len(known) :]
      others = bottom.apply(view.weights, others)
      whole = {}
    example = bottom.apply(view.weights, known[:1]) if tune else known[:1]
    whole['head'] = head.init(k_head, example)
    net = _completed(bottom, head, tune)
    return complete(k_train, how, net, whole, known, view.labeled, others,
                    wanted)

  return Attack(UnlabeledBottom, run)


def _completed(bottom: Net, head: Net, tune: bool) -> Net:
  """Bottom (if it is tuned) and head as one network on {'bottom', 'head'}."""

  def apply(params, x):
    u = bottom.apply(params['bottom'], x) if tune else x
    return head.apply(params['head'], u)

  def train(params, key, x):
    k_bottom, k_head = jax.random.split(key)
    u, seen = x, ()
    if tune:
      u, seen = bottom.run(params['bottom'], k_bottom, x)
    y, stats = head.run(params['head'], k_head, u)
    return y, (seen, stats)

  def absorb(params, stats):
    found = dict(head=head.absorb(params['head'], stats[1]))
    if tune:
      found['bottom'] = bottom.absorb(params['bottom'], stats[0])
    return found

  return Net(lambda key, x: {}, apply, train, absorb)


def complete(
    key: Key, how: MixMatch, net: Net, params: Params, known: Array,
    labels: Array, others: Array, wanted: Array,
) -> Array:
  """MixMatch on (known, labels) and `others`: [stages, samples, classes].

  Args:
    net: From samples to logits; its `init` is not used.
    params: Its weights at the start.
    known: [known, ...] labeled samples.
    labels: [known, classes]; a row of zeros is never drawn as labeled.
    others: [n, ...] samples without labels.
    wanted: [samples, ...] what to guess.
  """
  tx, total = optax.adam(how.learning_rate), how.epochs * how.iterations
  params, own_types = descent.masters(params)
  net = with_weights(net, own_types)
  loss = _loss(how, net)
  has = labels.sum(-1) > 0
  # Rows with a label first. Without any, row 0 is drawn, so that nothing fails.
  labeled_first, count = jnp.argsort(~has), jnp.maximum(has.sum(), 1)

  def step(carry, xs):
    (params, average, opt), (key, i) = carry, xs
    k_known, k_other, k_mix, k_net = jax.random.split(key, 4)
    drawn = jax.random.randint(k_known, (how.batch_size,), 0, count)
    own = labeled_first[drawn]
    rest = jax.random.choice(k_other, len(others), (how.batch_size,))
    logits = net.apply(params, others[rest])
    check.alike('mixmatch', logits, labels[own])
    guess = sharpen(jax.nn.softmax(logits), how.temperature)
    x = jnp.concatenate([known[own], others[rest]])
    y = jnp.concatenate([labels[own], guess])
    x, y = mixed(k_mix, x, y, how.alpha)
    slope, stats = jax.grad(loss, has_aux=True)(
        params, k_net, x, y, i / total
    )
    moved, opt = descent.step(tx, slope, opt, params)
    shrink = 1 - how.decay * how.learning_rate
    moved = jax.tree.map(lambda w: (w * shrink).astype(w.dtype), moved)
    moved = net.absorb(moved, stats)
    return (moved, _averaged(how, i, average, moved), opt), None

  def stage(carry, xs):
    carry, _ = lax.scan(step, carry, xs)
    return carry, net.apply(carry[1], wanted)

  # The first epochs that do not fill a stage are trained without a guess.
  each = how.epochs // how.stages * how.iterations
  lead = total - each * how.stages
  xs = (jax.random.split(key, total), jnp.arange(total))
  carry = params, params, tx.init(params)
  if lead:
    carry, _ = lax.scan(step, carry, jax.tree.map(lambda x: x[:lead], xs))
  staged = jax.tree.map(lambda x: x[lead:].reshape(how.stages, each), xs)
  return lax.scan(stage, carry, staged)[1]


def _check_samples(view: UnlabeledBottom, tune: bool) -> None:
  """Raises ValueError for samples that cannot be drawn or mixed."""
  known, others = view.labeled_features, view.unlabeled
  rows_of.check_known('mixmatch', known, view.labeled, 1)
  if not len(others):
    raise ValueError('mixmatch needs unlabeled samples; there are none.')
  kinds = {x.dtype for x in (known, others) if tune}
  if not all(jnp.issubdtype(kind, jnp.floating) for kind in kinds):
    raise ValueError(
        'mixmatch mixes samples, but whole numbers have no mixtures: turn '
        'pixels into floats, or set tune=False, which mixes embeddings.'
    )


def _loss(how: MixMatch, net: Net):
  """A function (params, key, x, y, share of the training done) -> (loss,
  statistics); the first `batch_size` rows of x and y are the labeled ones."""

  def loss(params, key, x, y, share):
    logits, stats = net.run(params, key, x)
    mine, rest = logits[: how.batch_size], logits[how.batch_size :]
    fit = optax.softmax_cross_entropy(mine, y[: how.batch_size]).mean()
    gap = (jax.nn.softmax(rest) - y[how.batch_size :]) ** 2
    return fit + how.unlabeled * share * gap.mean(), stats

  return loss


def _averaged(how: MixMatch, i: Array, average: Params, new: Params) -> Params:
  """The moving average of the weights after step `i`."""
  old_share = jnp.minimum(how.average, (1 + i) / (10 + i))
  return jax.tree.map(
      lambda old, new: (
          old_share * old + (1 - old_share) * new
      ).astype(old.dtype), average, new,
  )


def mixed(key: Key, x: Array, y: Array, alpha: float) -> tuple[Array, Array]:
  """Mixes each row with another; its own share is the larger one.

  Args:
    key: Draws the share, one for all rows, and the order.
    x: [n, ...].
    y: [n, classes].
    alpha: The share is of Beta(alpha, alpha), above 0.
  """
  k_share, k_order = jax.random.split(key)
  share = jax.random.beta(k_share, alpha, alpha, dtype=x.dtype)
  share = jnp.maximum(share, 1 - share)
  order = jax.random.permutation(k_order, len(x))
  mix = lambda z: share * z + (1 - share) * z[order]
  return mix(x), mix(y)
