"""CAFE: samples rebuilt from the gradients of weights (Jin et al. 2021).

The active party knows a passive party's network and, round by round, the
gradient of its weights and which samples were in the round. It starts at a
linear layer, z = x W + b, where each round gives sum dz_i = db and X^T dZ = dW,
and searches for:

  1. dz, the loss's gradient at that layer's output, sample by sample, from db;
  2. x, the layer's input, from dW and the dz found so far;
  3. the samples, which must lead to those x and to the gradients of all weights
     below, and be smooth images.

Every step takes one round and a small step in all three, as the authors' code
does. For the gradients below the layer they run the whole federation on the
guessed samples; here the current dz is backpropagated through these layers,
which needs neither labels nor other parties, but leaves out a party's own
penalty (MID's) unless the attacker is `defended`: see `cafe_layer`. Gradients
are of a batch's mean loss, times its size B; theirs are of the mean, as is
their variation. So our defaults, with their numbers, weigh gradients B^2 and
variation B times as much as `published` ones, and where dz starts is B times
nearer to zero, beside what is searched for. Also, their Adam moves a round's
samples alone and corrects its bias twice.

They draw a round at every step; here recorded rounds take turns. Fewer of them
than samples leave stage 1 open. Memory has the party's gradients in each.
"""
from typing import NamedTuple

import jax
from jax import lax
import jax.numpy as jnp
import optax

from vfljax import check, descent, measure, metrics
from vfljax.attack import REPLAYED, Attack, Wants, recipe
from vfljax.attacks.cafe_layer import FirstLinear, first_linear
from vfljax.defense import Defense
from vfljax.leakage import IMAGES
from vfljax.likeness import finds_its_own, total_variation
from vfljax.nets import cafe as network
from vfljax.scene import Amounts, Scene
from vfljax.types import VFL, Array, Key, Params
from vfljax.views import WhiteBox


class Recovery(NamedTuple):
  """How the attacker searches; defaults are the numbers of the authors' code.

  Attributes:
    steps: 1 or more; the authors take 20000.
    restarts: Starting points, 1 or more, searched side by side; the guess is
      the one that explains the gradients best.
    output_rate: SGD's learning rate in the first stage.
    input_rate: Adam's in the second.
    sample_rate: Adam's in the third.
    inputs: Weight of the squared distance to the second stage's inputs.
    gradients: Weight of the squared distance to the (summed) gradients below
      the layer.
    variation: Weight of a round's total variation, where it exceeds `smooth`.
    smooth: Mean total variation of an image below which it has no weight.
  """

  steps: int = 20000
  restarts: int = 1
  output_rate: float = 5e-3
  input_rate: float = 1e-2
  sample_rate: float = 1e-2
  inputs: float = 1e-3
  gradients: float = 1e-2
  variation: float = 1e-4
  smooth: float = 25.0


def published(batch: int) -> Recovery:
  """The authors' weights: theirs are of means over the `batch` of a round."""
  return Recovery(gradients=1e-2 / batch**2, variation=1e-4 / batch)


class Found(NamedTuple):
  """The attacker's current guesses, for every sample in the pool."""

  outputs: Array  # [pool, out] gradients at the layer's output
  inputs: Array  # [pool, in] the layer's inputs
  samples: Array  # [pool, ...] features


class Options(NamedTuple):
  """The attack in an experiment, with fewer steps than the paper's."""

  pool: int = 200  # samples that it reconstructs
  batch: int = 40  # of them in each of its (replayed) rounds
  steps: int = 2000  # the paper takes 10000 for MNIST
  restarts: int = 1  # starting points, searched side by side
  published: bool = False  # whether it weighs as its authors do
  defended: bool = False  # whether it knows a defense's penalty, with lambda


def check_options(options: Options, scene: Scene, samples: Amounts) -> None:
  """Raises ValueError if there are too few samples for the attack's pool."""
  del scene
  if not 1 <= options.pool <= samples.train:
    raise ValueError(
        f'attack.cafe.pool must be between 1 and the {samples.train} training '
        f'samples; got {options.pool}.'
    )
  if not 1 <= options.batch <= options.pool:
    raise ValueError(
        f'attack.cafe.batch must be between 1 and the {options.pool} samples '
        f'of the pool; got {options.batch}.'
    )
  if samples.scale != 'none':
    raise ValueError(
        'cafe looks for pixels between 0 and 1: set --config.data.scale=none.'
    )


def _own_network(scene: Scene) -> str:
  """A need: the federation has the network that the attack was made for."""
  if scene.network == 'cafe' and not scene.linear:
    return ''
  return (
      'starts at the first linear layer of the network that it was made for: '
      'use --config.model.name=cafe.'
  )


def measured(guess: Array, truth: Array) -> measure.Metrics:
  """Mean 'psnr' and, for images of 7 x 7 pixels or more, 'ssim'; both also of
  guessing the mean image everywhere, 'mean_image_psnr' and 'mean_image_ssim'.
  'own_image' is the share of guesses that are nearer to their own image than to
  any other: 1 / n by chance, also of guesses that are all alike."""
  check.pixels('cafe: truth', truth)
  mean = jnp.broadcast_to(truth.mean(0), truth.shape)
  found = dict(
      psnr=metrics.psnr(guess, truth).mean(),
      mean_image_psnr=metrics.psnr(mean, truth).mean(),
      own_image=finds_its_own(guess, truth).mean(),
  )
  if min(truth.shape[1:3]) >= 7:
    found['ssim'] = metrics.ssim(guess, truth).mean()
    found['mean_image_ssim'] = metrics.ssim(mean, truth).mean()
  return found


def _make(options: Options, scene: Scene, vfl: VFL) -> Attack:
  width = dict(width=scene.width) if scene.width else {}
  middle = network.middle(**width, **scene.options)
  how = published(options.batch) if options.published else Recovery()
  own = dict(steps=options.steps, restarts=options.restarts)
  wants = Wants(options.pool, options.batch)

  def knowing(defense: Defense | None) -> Attack:
    attack = cafe(first_linear(middle, vfl, defense), how._replace(**own))
    return attack._replace(wants=wants)

  attack = knowing(None)
  return attack._replace(against=knowing) if options.defended else attack


@recipe(
    stage=REPLAYED, options=Options, make=_make, needs=(_own_network,),
    check=check_options, measure=measured, score=IMAGES, one_luck=True,
)
def cafe(layer: FirstLinear, recovery: Recovery = Recovery()) -> Attack:
  """Guesses: [pool, ...] features in [0, 1].

  Args:
    layer: Where it starts.
    recovery: How it searches.

  Raises:
    ValueError: if a number is out of its range; in `run`, if rounds are not of
      the view's pool.
  """
  for name in ('steps', 'restarts'):
    check.count(f'cafe: {name}', getattr(recovery, name))
  for name in ('output_rate', 'input_rate', 'sample_rate'):
    check.above(f'cafe: {name}', getattr(recovery, name), 0)
  for name in ('inputs', 'gradients', 'variation', 'smooth'):
    check.at_least(f'cafe: {name}', getattr(recovery, name), 0)

  def run(key, view: WhiteBox):
    _check_rounds(view)
    scaled = jax.tree.map(lambda g: g * view.rows.shape[1], view.gradients)
    view = view._replace(gradients=scaled)

    def attempt(key):
      return recover(view, layer, begin(key, view, layer), recovery)

    found, misfit = jax.vmap(attempt)(jax.random.split(key, recovery.restarts))
    return found.samples[descent.least(misfit)].clip(0, 1)

  return Attack(WhiteBox, run)


def _check_rounds(view: WhiteBox) -> None:
  """Raises ValueError for rounds of samples that are not in the pool: JAX takes
  the nearest place in an array that there is."""
  rows, pool = view.rows, view.blank
  rounds = {jnp.shape(g)[:1] for g in jax.tree.leaves(view.gradients)}
  if rows.ndim != 2 or rounds - {rows.shape[:1]}:
    raise ValueError(
        'cafe needs rows [rounds, batch] and gradients [rounds, ...] of as many'
        f' rounds; got rows {rows.shape} and gradients of {sorted(rounds)}.'
    )
  check.whole('cafe: rows, which number the pool\'s samples,', rows, 0,
              len(pool) - 1, many=True)
  if not jnp.issubdtype(pool.dtype, jnp.floating):
    raise ValueError(
        f'cafe looks for pixels between 0 and 1; the pool has {pool.dtype}.'
    )


def begin(key: Key, view: WhiteBox, layer: FirstLinear) -> Found:
  """The authors' starting point: small gradients, small inputs, noise."""
  one = jax.eval_shape(layer.around, view.weights, view.blank)
  k_out, k_in, k_sample = jax.random.split(key, 3)
  uniform, dtype = jax.random.uniform, view.blank.dtype
  return Found(
      uniform(k_out, one[1].shape, dtype, -8e-4, 8e-4),
      uniform(k_in, one[0].shape, dtype, 0, 0.08),
      uniform(k_sample, view.blank.shape, dtype),
  )


def recover(
    view: WhiteBox, layer: FirstLinear, start: Found,
    recovery: Recovery = Recovery(),
) -> tuple[Found, Array]:
  """All three stages: (found, mean misfit of the gradients at the end).

  Args:
    view: With gradients of the sum over a round's samples.
    layer: Where to start.
    start: See `begin`.
    recovery: Steps, rates and weights.
  """
  tx_in = optax.adam(recovery.input_rate)
  for_samples = optax.adam(recovery.sample_rate)
  rounds = len(view.rows)

  def step(carry, i):
    found, opt_inputs, opt_samples = carry
    rows = view.rows[i % rounds]
    gradients = jax.tree.map(lambda g: g[i % rounds], view.gradients)
    kernel, bias = layer.gradient(gradients)
    outputs = found.outputs - recovery.output_rate * jax.grad(first)(
        found.outputs, rows, bias
    )
    slope = jax.grad(second)(found.inputs, outputs, rows, kernel)
    inputs, opt_inputs = descent.step(tx_in, slope, opt_inputs, found.inputs)
    misfit, slope = jax.value_and_grad(third)(
        found.samples, inputs, outputs, rows, gradients, view.weights, layer,
        recovery,
    )
    samples, opt_samples = descent.step(
        for_samples, slope, opt_samples, found.samples
    )
    return (Found(outputs, inputs, samples), opt_inputs, opt_samples), misfit

  carry = start, tx_in.init(start.inputs), for_samples.init(start.samples)
  carry, misfits = lax.scan(step, carry, jnp.arange(recovery.steps))
  return carry[0], misfits[-rounds:].mean()


def first(outputs: Array, rows: Array, bias: Array) -> Array:
  """|sum dz_i - db|^2 over the round's samples."""
  return ((outputs[rows].sum(0) - bias) ** 2).sum()


def second(inputs: Array, outputs: Array, rows: Array, kernel: Array) -> Array:
  """|X^T dZ - dW|^2 over the round's samples."""
  return ((inputs[rows].T @ outputs[rows] - kernel) ** 2).sum()


def third(
    samples: Array, inputs: Array, outputs: Array, rows: Array, gradients,
    weights: Params, layer: FirstLinear, recovery: Recovery,
) -> Array:
  """Stage 3's loss: misfit of inputs and gradients, and total variation."""
  x = samples[rows]

  def out(weights):
    into, z = layer.around(weights, x)
    return (z, layer.penalty(weights, x)), into

  (_, penalty), back, into = jax.vjp(out, weights, has_aux=True)
  # Gradients are of a round's sum, the penalty is added to its mean.
  own = back((outputs[rows], jnp.full_like(penalty, len(rows))))[0]
  # Layers above the starting one have no gradient here and are left out.
  gaps = jax.tree.map(
      lambda a, b: jnp.where((a != 0).any(), ((a - b) ** 2).sum(), 0.0),
      own, gradients,
  )
  loss = recovery.inputs * ((into - inputs[rows]) ** 2).sum()
  loss = loss + recovery.gradients * sum(jax.tree.leaves(gaps))
  rough = total_variation(x) / len(rows)
  return loss + recovery.variation * len(rows) * jnp.where(
      rough > recovery.smooth, rough, 0.0
  )
