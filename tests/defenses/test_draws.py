"""Who draws, and that rows of a batch never share what is drawn.

Noise that two rows have in common is gone from their difference. So each hook
of each defense that draws for rows is given a batch, again and again, and what
becomes of two rows must not go together.
"""
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.contracts import make
from tests.perturbing import check_apart, draws
from vfljax import algorithms, defenses, nets, protocol
from vfljax.defense import Defense
from vfljax.defenses import dp_weights, gafm, ppdl
from vfljax.types import Batch

KEY = jax.random.key(0)
ROWS, WIDTH, DRAWS = 12, 2, 600

# Which hook draws for rows: all others have no luck at all ...
FOR_ROWS = dict(
    dp_gaussian='gradient', dp_laplace='gradient', gafm='objective',
    iso='gradient', label_dp='prepare', marvell='gradient',
    max_norm='gradient', mid='receive', mixup='batch', plugvfl='receive',
    ppdl='gradient', precode='send', residue_mask='gradient',
)
# ... but for these, whose luck all rows share.
SHARED = dict(
    kdk=('prepare', 'a teacher is one network: rows that look alike are taught '
                    'alike, and what hides them is the smoothing'),
)
# Of which the default makes rows depend on each other: one norm for all.
OTHERWISE = dict(gafm=gafm.gafm(0.2, reading=gafm.Reading(norm='none')))


def data():
  """Rows of one direction; Max-Norm adds nothing to equal ones."""
  x = jnp.arange(1.0, ROWS + 1)[:, None] * jnp.array([[0.01, 0.02]])
  return Batch((x, x), jax.nn.one_hot(jnp.arange(ROWS) % 2, 2))


@functools.cache
def made(name):
  """A defense, and what everybody has of it: some numbers."""
  defense = OTHERWISE.get(name) or make(name)
  vfl = algorithms.vhnn([nets.mlp(WIDTH)] * 2, nets.mlp(2))
  shapes = jax.eval_shape(lambda key: protocol.init(
      key, vfl, defense, (optax.sgd(1.0),) * 2, data(), auxiliary=data()
  ), KEY)
  rng = np.random.default_rng(0)
  return defense, jax.tree.map(
      lambda s: jnp.asarray(rng.normal(size=s.shape), s.dtype), shapes
  )


def predict(us):
  return sum(u for u in us if u is not None) + jnp.zeros((ROWS, WIDTH))


def batch(own, key, x, labels):
  """How much of each row is left in its place."""
  rows = jnp.eye(ROWS)
  return jnp.diag(own.batch(key, Batch((rows, rows), labels)).features[1])


# Hook -> (defense, key, x, labels, active, passive, memory) -> [rows, ...].
HOOKS = dict(
    batch=lambda own, key, x, y, *_: batch(own, key, x, y),
    prepare=lambda own, key, x, y, *_: own.prepare(key, x, y),
    send=lambda own, key, x, y, active, passive, memory: own.send(
        passive, key, x)[0],
    label=lambda own, key, x, y, active, passive, memory: own.label(
        memory, key, y),
    receive=lambda own, key, x, y, active, passive, memory: own.receive(
        active, memory, key, (x,), y)[0][0],
    objective=lambda own, key, x, y, active, passive, memory: jax.grad(
        lambda x: own.objective(memory, key, predict, (x,), y))(x),
    gradient=lambda own, key, x, y, active, passive, memory: own.gradient(
        memory, key, (x,), y)[0][0],
)


def outcome(name, hook):
  """key -> [rows, ...] what comes of the rows."""
  own, state = made(name)
  x, labels = data().features[1], data().labels
  params = [party.params['defense'] for party in state.parties]
  return lambda key: HOOKS[hook](own, key, x, labels, *params, state.defense)


@pytest.mark.parametrize('name', sorted(defenses.REGISTRY))
def test_the_tables_say_who_draws(name):
  """By tracing alone."""
  own, _ = made(name)
  luck = {
      hook for hook in HOOKS
      if getattr(own, hook) is not getattr(Defense(), hook)
      and getattr(own, hook) is not None
      and 'random_bits' in str(jax.make_jaxpr(outcome(name, hook))(KEY))
  }
  said = [FOR_ROWS.get(name), SHARED.get(name, (None,))[0]]
  assert luck == {hook for hook in said if hook}


@pytest.mark.parametrize('name', sorted(FOR_ROWS))
def test_rows_do_not_share_what_is_drawn(name):
  run = jax.jit(jax.vmap(outcome(name, FOR_ROWS[name])))
  seen = np.asarray(run(jax.random.split(KEY, DRAWS)), np.float64)
  seen = seen.reshape(DRAWS, ROWS, -1)
  row = np.repeat(np.arange(ROWS), seen.shape[2])
  seen = seen.reshape(DRAWS, -1)
  random = seen.std(0) > 1e-6 * np.abs(seen).max()
  # All of them are protected; Max-Norm adds nothing to the largest.
  assert len({*row[random]}) >= ROWS - (name == 'max_norm')
  together = np.abs(np.corrcoef(seen[:, random].T))
  others = row[random][:, None] != row[random]
  assert together[others].max() < 6 / DRAWS**0.5


# Formulas of noise that other tests do not look at.


@pytest.mark.parametrize('name', ['dp_laplace', 'dp_gaussian'])
def test_what_is_clipped_is_the_gradient_and_not_the_noise(name):
  d, labels = np.asarray(data().features[1]), data().labels
  sent = draws(defenses.REGISTRY[name](1.0, clip_norm=1e-3), d, labels, 400)
  expected = 2**0.5 if name == 'dp_laplace' else 1
  np.testing.assert_allclose(sent.std(), expected, rtol=0.05)


def test_noise_on_weights_is_drawn_for_each_number():
  gradients = dict(a=jnp.zeros((2, 3)), b=jnp.zeros(3))
  run = jax.jit(jax.vmap(lambda key: dp_weights.dp_weights(2.0).share(
      key, gradients
  )))
  found = run(jax.random.split(KEY, 2000))
  noise = np.concatenate(
      [np.reshape(x, (2000, -1)) for x in jax.tree.leaves(found)], 1
  )
  check_apart(noise)
  np.testing.assert_allclose(noise.std(0), 2, rtol=0.08)
  np.testing.assert_allclose(noise.mean(0), 0, atol=0.2)


def test_ppdl_spends_its_budget_on_the_choice_and_on_the_answer():
  """Of one element, 3 scales above the threshold or far above it."""
  budget = 1.8
  choice, answer = (2 / (part * budget) for part in (8 / 9, 2 / 9))
  own = ppdl.ppdl(1.0, budget, gamma=1e6, tau=0.0)
  labels = np.array([[1, 0]], np.float32)
  near = draws(own, np.float32([[3 * choice]]), labels, 8000).ravel()
  # P(t - q <= 3) of Laplace noise t and q, of scales 1 and 2.
  above = 1 - (4 * np.exp(-3 / 2) - np.exp(-3)) / 6
  np.testing.assert_allclose((near != 0).mean(), above, atol=0.02)
  far = draws(own, np.float32([[1e3]]), labels, 8000).ravel() - 1e3
  np.testing.assert_allclose(np.abs(far).mean(), answer, rtol=0.05)


def test_ppdl_visits_in_any_order_and_releases_at_the_threshold():
  x, nothing = jnp.full(3, 1e-4), jnp.zeros(3)
  found = jax.jit(ppdl.release)(
      x, jnp.arange(3), 3, nothing, nothing, nothing
  )
  np.testing.assert_array_equal(found, x)
  d = np.full((5, 1), 1e-3, np.float32)  # All alike: the first one is sent.
  labels = np.tile(np.float32([1, 0]), (5, 1))
  sent = draws(ppdl.ppdl(0.2, 1e6), d, labels, 400)[..., 0] != 0
  np.testing.assert_array_equal(sent.sum(1), 1)
  np.testing.assert_allclose(sent.mean(0), 0.2, atol=0.1)
