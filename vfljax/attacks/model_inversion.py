"""Query-free model inversion (He et al. 2019; Kang et al. 2022, Eq. 12).

After training, the active party reconstructs a passive party's features from
their embeddings. It cannot query that party's network, so it trains a shadow
model of it, on auxiliary samples whose features it knows at both parties, with
its own trained networks fixed; then it searches for features whose shadow
embeddings are those it received. A defense's part at the active party (a
bottleneck, another top or loss, encoded labels) belongs to these networks. The
attacker knows the defense that embeddings pass at the passive party, such as
PRECODE's bottleneck, and gives its shadow the same (`inversion_shadow`).

Kang et al. give no numbers for the search. Ours, and the total variation that
Eq. 12 lacks, are those that inverted best in a first study on Fashion-MNIST.
He et al.'s code (github.com/zechenghe/Inverse_Collaborative_Inference) starts
with zeros, not noise, on normalized pixels without bounds. In its example it
weighs a variation of squared differences by 2 against the mean squared distance
in 500 steps of AMSGrad at 0.1, and its shadow learns from all training samples.
Features are searched for in [0, 1] here, the range of unscaled images. Smooth
grey images score well even if nothing leaks: `constant_image` and `mean_image`
are baselines of guesses without any embedding.
"""
from typing import Any, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp
import optax

from vfljax import check, descent, measure
from vfljax import samples as rows_of
from vfljax.attack import TRAINED, Attack, Wants, recipe
from vfljax.attacks.inversion_shadow import Sender, network, sender
from vfljax.check import Misfit
from vfljax.defense import Defense, none
from vfljax.leakage import IMAGES
from vfljax.likeness import total_variation
from vfljax.numerics import floating
from vfljax.scene import Amounts, Scene
from vfljax.types import VFL, Array, Key, Net, Params
from vfljax.views import TrainedTop


class Options(NamedTuple):
  """The attack in an experiment; see `model_inversion` and `network`."""

  shadow: str = 'same'  # its structure: as the victim's, 'conv' or 'fc'
  defended: bool = True  # whether it has what a defense adds at the victim, too
  shadow_steps: int = 1500  # Adam's, on the shadow model
  samples: int = 64  # test samples whose features it guesses
  variation: float = 0.1  # weight of total variation


def check_options(options: Options, scene: Scene, samples: Amounts) -> None:
  """Raises ValueError if no features can be inverted."""
  del scene
  if not samples.auxiliary:
    raise ValueError(
        'model_inversion trains a shadow model on auxiliary samples, but there '
        'are none: set --config.attack.auxiliary, for instance to '
        f'{min(samples.train // 4, 10_000)}. They are taken from the training '
        'samples.'
    )
  if len(samples.shape) != 3 or min(samples.shape[:2]) < 7:
    raise ValueError(
        'model_inversion is measured by the similarity of images of 7 x 7 '
        f'pixels or more; party 1 has features of shape {samples.shape}.'
    )
  if samples.scale != 'none':
    raise ValueError(
        'model_inversion looks for pixels between 0 and 1: set '
        '--config.data.scale=none.'
    )
  if not 1 <= options.samples <= samples.test:
    raise ValueError(
        'attack.model_inversion.samples must be between 1 and the '
        f'{samples.test} test samples; got {options.samples}.'
    )


class Inversion(NamedTuple):
  """How the attacker trains its shadow and searches.

  Attributes:
    shadow_steps: Adam's on the shadow model, 1 or more.
    shadow_batch: Auxiliary samples a step.
    shadow_rate: Adam's learning rate on the shadow model.
    steps: Adam's on the features, 1 or more.
    learning_rate: Adam's on the features.
    variation: Weight of the total variation, 0 or more, against the summed
      squared distance of the embeddings.
  """

  shadow_steps: int = 1500
  shadow_batch: int = 64
  shadow_rate: float = 1e-3
  steps: int = 300
  learning_rate: float = 0.05
  variation: float = 0.1


def _make(options: Options, scene: Scene, vfl: VFL) -> Attack:
  how = Inversion(options.shadow_steps, variation=options.variation)
  shadow = network(options.shadow, scene, vfl.bottom(1))

  def against(defense: Defense) -> Attack:
    attack = model_inversion(vfl, shadow, how, defense, options.defended)
    return attack._replace(wants=Wants(options.samples))

  return against(none())._replace(against=against)


def _make_constant(options: Options, scene: Scene, vfl: VFL) -> Attack:
  return constant_image()._replace(wants=Wants(options.samples))


def _make_mean(options: Options, scene: Scene, vfl: VFL) -> Attack:
  return mean_image()._replace(wants=Wants(options.samples))


@recipe(
    stage=TRAINED, options=Options, make=_make, check=check_options,
    measure=measure.of_images, score=IMAGES, one_luck=True,
)
def model_inversion(
    vfl: VFL, shadow: Net, inversion: Inversion = Inversion(),
    defense: Defense | None = None, defended: bool = True,
) -> Attack:
  """Guesses: features of the received embeddings, [n, ...] in [0, 1].

  Args:
    vfl: The federation; the attacker uses its own networks in it, the active
      party's bottom and the top.
    shadow: The attacker's guess of the passive party's network, with the same
      embedding width.
    inversion: How it trains the shadow and searches.
    defense: The federation's; `None` if it has none. The attacker knows its
      part at the active party.
    defended: Whether the attacker knows what the defense does to a passive
      party's messages.

  Raises:
    ValueError: for more than two parties, and if a number is out of its range.
  """
  if len(vfl.bottoms) != 2:
    raise ValueError(
        'model_inversion is for two parties: with more, the active party lacks '
        "the others' embeddings of its auxiliary samples."
    )
  for name in ('shadow_steps', 'shadow_batch', 'steps'):
    check.count(f'model_inversion: {name}', getattr(inversion, name))
  for name in ('shadow_rate', 'learning_rate'):
    check.above(f'model_inversion: {name}', getattr(inversion, name), 0)
  check.at_least('model_inversion: variation', inversion.variation, 0)

  def run(key, view: TrainedTop):
    _check_auxiliary('model_inversion', view)
    check.pixels('auxiliary features', own := view.auxiliary.features[1])
    k_shadow, k_search = jax.random.split(key)
    guessed = sender(
        shadow, vfl, view.auxiliary, defense if defended else None
    )
    params = train_shadow(k_shadow, vfl, guessed, view, inversion, defense)
    shape = (len(view.received), *own.shape[1:])
    start = jax.random.uniform(k_search, shape, view.received.dtype)
    net = Net(guessed.init, guessed.expected)
    return invert(net, params, view.received, start, inversion)

  return Attack(TrainedTop, run)


def _check_auxiliary(who: str, view: TrainedTop) -> None:
  """Raises ValueError for no samples, or rows that a party lacks."""
  rows_of.check(view.auxiliary, 'auxiliary')
  if not len(view.auxiliary.labels):
    raise ValueError(f'{who} needs auxiliary samples; there are none.')


def train_shadow(
    key: Key, vfl: VFL, shadow: Sender, view: TrainedTop, inversion: Inversion,
    defense: Defense | None = None,
) -> Params:
  """The shadow's weights: the attack's step 2, with f^A and h^A fixed."""
  known, weights = view.auxiliary, view.weights
  federations_loss = _loss(vfl, defense or none(), view)
  own = vfl.bottoms[0]
  # Fixed networks embed once, not at every step.
  u0 = own.apply(weights['bottom'], known.features[0]) if own else None
  k_init, k_steps = jax.random.split(key)
  params, own_types = descent.masters(
      shadow.init(k_init, known.features[1][:1])
  )
  tx = optax.adam(inversion.shadow_rate)
  size = min(inversion.shadow_batch, len(known.labels))

  def loss(params, k_send, k_loss, rows):
    u, penalty = shadow.send(
        own_types(params), k_send, known.features[1][rows]
    )
    mine = None if u0 is None else u0[rows]
    return federations_loss(k_loss, mine, u, known.labels[rows]) + penalty

  def step(carry: tuple[Any, Any], key):
    params, opt = carry
    k_rows, k_send = jax.random.split(key)
    rows = jax.random.choice(k_rows, len(known.labels), (size,))
    # Parts 0 and 1 of the key are spent.
    slope = jax.grad(loss)(params, k_send, jax.random.fold_in(key, 2), rows)
    return descent.step(tx, slope, opt, params), None

  carry: tuple[Any, Any] = params, tx.init(params)
  keys = jax.random.split(k_steps, inversion.shadow_steps)
  return own_types(lax.scan(step, carry, keys)[0][0])


def _loss(vfl: VFL, defense: Defense, view: TrainedTop):
  """A function (key, own embedding, the shadow's, labels) -> the victim's loss.

  `Defense.receive` acts as at inference, since the active party's networks are
  fixed: without dropout or noise that is for training only.
  """
  top, weights, memory = defense.top(vfl.top), view.weights, view.memory

  def loss(key: Key, own: Array | None, u: Array, labels: Array) -> Array:
    k_receive, k_label, k_loss = jax.random.split(key, 3)
    received, _ = defense.receive(
        weights.get('defense', ()), memory, k_receive, (u,), None
    )
    labels = defense.label(memory, k_label, labels)
    if defense.objective:
      predict = lambda us: top.run(weights['top'], k_loss, (own, *us))[0]
      return defense.objective(memory, k_loss, predict, received, labels)
    logits = top.apply(weights['top'], (own, *received))
    return vfl.loss(logits, labels).mean()

  return loss


def invert(
    shadow: Net, params: Params, received: Array, start: Array,
    inversion: Inversion = Inversion(),
) -> Array:
  """Eq. 12: features in [0, 1] whose shadow embeddings are those received.

  Args:
    shadow: The shadow network.
    params: Its trained weights.
    received: [n, ...] embeddings.
    start: [n, ...] features to start from, in [0, 1].
    inversion: Steps, learning rate and total variation.
  """
  tx = optax.adam(inversion.learning_rate)

  def distance(x):
    sent = floating(shadow.apply(params, x))
    if sent.shape != received.shape:  # A width of 1 would be broadcast.
      raise Misfit(
          f'The shadow sends {sent.shape}, but embeddings are {received.shape}.'
      )
    gap = sent - floating(received)
    return (gap**2).sum() + inversion.variation * total_variation(x)

  def step(carry: tuple[Any, Any], _):
    x, opt = carry
    moved, opt = descent.step(tx, jax.grad(distance)(x), opt, x)
    return (moved.clip(0, 1), opt), None

  carry: tuple[Any, Any] = start, tx.init(start)
  return lax.scan(step, carry, None, length=inversion.steps)[0][0]


@recipe(
    stage=TRAINED, options=Options, group='model_inversion',
    make=_make_constant, check=check_options, is_baseline=True,
    measure=measure.of_images, score=IMAGES, one_luck=True,
)
def constant_image() -> Attack:
  """Baseline: every image is the auxiliary samples' mean grey."""
  return _without_embeddings(
      'constant_image', lambda x: jnp.broadcast_to(x.mean(), x.shape[1:])
  )


@recipe(
    stage=TRAINED, options=Options, group='model_inversion', make=_make_mean,
    check=check_options, is_baseline=True, measure=measure.of_images,
    score=IMAGES, one_luck=True,
)
def mean_image() -> Attack:
  """Baseline: every image is the mean of the auxiliary samples."""
  return _without_embeddings('mean_image', lambda x: x.mean(0))


def _without_embeddings(name: str, guess) -> Attack:
  def run(key, view: TrainedTop):
    del key
    _check_auxiliary(name, view)
    one = guess(view.auxiliary.features[1])
    return jnp.broadcast_to(one, (len(view.received), *one.shape))

  return Attack(TrainedTop, run)
