"""GAFM's GAN: a critic of labels and a generator that imitates them.

Steps 1 and 2 of its Algorithm 1, and Eq. 3, the distance that both train on.
"""
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from vfljax import check, descent, fusing, nets, target
from vfljax.numerics import floating
from vfljax.types import Array, Net, Params


class GAN(NamedTuple):
  """The active party's own networks, and how they learn: argument of `gafm`.

  Attributes:
    generator: Hidden widths; () is one linear layer and a sigmoid.
    critic: Hidden widths. LeakyReLU after every layer.
    generator_rate: Adam's learning rate for the generator, above 0; apart from
      those of the parties' optimizers.
    critic_rate: The same for the critic.
    critic_steps: The critic's steps in a round, 1 or more.
  """

  generator: tuple[int, ...] = (16,)
  critic: tuple[int, ...] = (10, 10)
  generator_rate: Any = 1e-4
  critic_rate: Any = 1e-4
  critic_steps: int = 1


class Networks(NamedTuple):
  """Generator and critic as networks, each with outputs [batch, 1]."""

  generator: Net  # f(x) to the logit of the prediction
  critic: Net  # a label, or a prediction, to a score


class Memory(NamedTuple):
  """What the active party carries from round to round."""

  generator: Params
  critic: Params
  generator_opt: Any
  critic_opt: Any


class Seen(NamedTuple):
  """What the active party's GAN trains on in a round.

  Attributes:
    f: [batch, d], the aggregate of the embeddings.
    y: [batch] of 0 and 1.
    real: [batch], 0 for a row of padding.
  """

  f: Array
  y: Array
  real: Array


def networks(
    generator: tuple[int, ...] = (16,), critic: tuple[int, ...] = (10, 10)
) -> Networks:
  """G without its sigmoid, and D, with LeakyReLU as in appendix E.2."""
  check.widths('gafm: generator', generator)
  check.widths('gafm: critic', critic)
  leaky = 'leaky_relu'
  return Networks(
      nets.mlp(*generator, 1, activation=leaky),
      nets.mlp(*critic, 1, activation=leaky, final=leaky),
  )


def wasserstein(
    key, gan: Networks, generator: Params, critic: Params, seen: Seen, sigma,
    halves: Callable[[Array], Sequence[Array]] = partial(
        jnp.split, indices_or_sections=2
    ),
) -> Array:
  """D(y + noise) - D(G(f)), [batch], whose `mean` is Eq. 3.

  Args:
    key: Of the noise.
    gan: The networks.
    generator, critic: Their weights.
    seen: The round's.
    sigma: Deviation of the noise.
    halves: Splits the scores that a GPU computes in one pass. It decides how
      their gradients are put together, and so how many kernels that takes.
  """
  f, y, _ = seen
  noise = sigma * jax.random.normal(key, y.shape, y.dtype)
  guess = jax.nn.sigmoid(gan.generator.apply(generator, f))
  score = lambda x: gan.critic.apply(critic, x)[:, 0]
  truth = (y + noise)[:, None]
  if target.kind() == 'gpu':  # In one pass of the critic, and of its gradient.
    true, fake = halves(score(jnp.concatenate([truth, guess])))
    return true - fake
  return score(truth) - score(guess)


def _padded_back(x: Array) -> tuple[Array, Array]:
  """x's two halves; gradients are padded and added, not concatenated.

  The kernel that does so may also sum them up, for the bias.
  """
  return x[: len(x) // 2], x[len(x) // 2 :]


def critic_step(
    key, gan: Networks, tx: optax.GradientTransformation, state: Memory,
    seen: Seen, sigma, clip,
) -> Memory:
  """Step 1 of Algorithm 1: the critic climbs Eq. 3, then is clipped."""

  def loss(critic):
    far = wasserstein(
        key, gan, state.generator, critic, seen, sigma, _padded_back
    )
    return -mean(far, seen.real)

  grads = jax.grad(loss)(state.critic)
  moved, opt = descent.step(tx, grads, state.critic_opt, state.critic)
  bound = lambda p: jnp.clip(p, -clip, clip).astype(p.dtype)
  # XLA copies weights that a round reads, replaces and reads again, unless
  # the new ones are apart: two kernels fewer (H100, one seed).
  critic = fusing.apart(jax.tree.map(bound, moved))
  return state._replace(critic=critic, critic_opt=opt)


def generator_step(
    gan: Networks, tx: optax.GradientTransformation, state: Memory, seen: Seen
) -> Memory:
  """Step 2 of Algorithm 1: the generator descends Eq. 3."""

  def loss(generator):
    guess = jax.nn.sigmoid(gan.generator.apply(generator, seen.f))
    return -mean(gan.critic.apply(state.critic, guess)[:, 0], seen.real)

  grads = jax.grad(loss)(state.generator)
  moved, opt = descent.step(
      tx, grads, state.generator_opt, state.generator
  )
  generator = fusing.apart(moved)  # As in `critic_step`.
  return state._replace(generator=generator, generator_opt=opt)


def mean(x: Array, real: Array) -> Array:
  """The mean of x [batch] over the rows where real [batch] is 1; a scalar."""
  real = floating(real)  # In half precision there is no count of 257 rows.
  return (x * real).sum() / jnp.maximum(real.sum(), 1)
