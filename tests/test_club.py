"""CLUB's bounds against closed forms, and against the authors' code."""
import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import stats

from tests.small_networks import drawn
from vfljax import club, nets

GOLDEN = np.load(Path(__file__).parent / 'golden' / 'club.npz')
CORRELATIONS = (0.0, 0.3, 0.6, 0.9)
CATEGORICAL, GAUSSIAN = jax.jit(club.categorical), jax.jit(club.gaussian)


def normal(*shape, seed=0):
  return np.random.default_rng(seed).standard_normal(shape, np.float32)


def correlated(h_and_noise, rho):
  """Standard normal h and y, coordinate by coordinate correlated."""
  h, noise = h_and_noise
  return h, rho * h + jnp.sqrt(1 - rho**2) * noise


def true_information(rho, width):
  return -0.5 * width * np.log1p(-np.square(rho))


def jeffreys(rho, width):
  """I + KL(p(h)p(y) || p(h,y)): what vCLUB is with the true conditional."""
  return width * np.square(rho) / (1 - np.square(rho))


@pytest.mark.parametrize('width', [1, 5, 20])
def test_with_the_true_gaussian_it_is_its_closed_form(width):
  @jax.jit
  @functools.partial(jax.vmap, in_axes=(0, None))
  def bound(rho, drawn):
    h, y = correlated(drawn, rho)
    spread = jnp.log1p(-(rho**2))
    return club.gaussian(rho * h, jnp.full_like(h, spread), y)

  rho = np.asarray(CORRELATIONS, np.float32)
  np.testing.assert_allclose(
      bound(rho, normal(2, 20_000, width)), jeffreys(rho, width), rtol=0.03,
      atol=0.02,
  )


@pytest.mark.parametrize('width', [1, 8])
def test_a_trained_gaussian_bounds_the_information(width):
  """For every correlation the bound is above the truth on fresh samples."""
  mean_net, spread_net = nets.mlp(16, width), nets.mlp(8, width, final='tanh')
  tx = optax.adam(optax.cosine_decay_schedule(1e-2, 300))

  @jax.jit
  @functools.partial(jax.vmap, in_axes=(0, None, None, None))
  def bound(rho, weights, batches, test):
    h, y = correlated(test, rho)

    def log_q(weights, h, y):
      spread = 4 * spread_net.apply(weights[1], h)
      return club.log_gaussian(mean_net.apply(weights[0], h), spread, y)

    def step(carry, batch):
      weights, opt = carry
      h, y = correlated(batch, rho)
      loss = lambda w: club.learning_loss(lambda a, b: log_q(w, a, b), h, y)
      updates, opt = tx.update(jax.grad(loss)(weights), opt, weights)
      return (optax.apply_updates(weights, updates), opt), None

    (weights, _), _ = jax.lax.scan(step, (weights, tx.init(weights)), batches)
    spread = 4 * spread_net.apply(weights[1], h)
    return club.gaussian(mean_net.apply(weights[0], h), spread, y)

  rho = np.asarray(CORRELATIONS[1:], np.float32)
  test = normal(2, 2_000, width, seed=1)
  weights = drawn(mean_net, test[0]), drawn(spread_net, test[0], seed=1)
  found = bound(rho, weights, normal(300, 2, 128, width, seed=2), test)
  assert (found > true_information(rho, width)).all()
  assert (found < 1.5 * jeffreys(rho, width)).all()


def test_exact_categorical_information():
  """A joint distribution of a discrete h and y, enumerated with weights."""
  joint = np.array([[0.20, 0.05, 0.05], [0.02, 0.28, 0.10], [0.1, 0.1, 0.1]])
  p_h, p_y = joint.sum(1), joint.sum(0)
  apart = np.outer(p_h, p_y)
  information = (joint * np.log(joint / apart)).sum()
  reverse = (apart * np.log(apart / joint)).sum()
  h, y = (i.ravel() for i in np.indices(joint.shape))
  logits = np.log(joint / p_h[:, None])[h].astype(np.float32)
  labels = np.eye(3, dtype=np.float32)[y]
  found = CATEGORICAL(logits, labels, joint.ravel().astype(np.float32))
  np.testing.assert_allclose(found, information + reverse, rtol=1e-5)
  assert found > information


def test_independent_variables_share_nothing():
  """Each label meets each h once: whatever q, the bound is 0."""
  h, y = (i.ravel() for i in np.indices((5, 4)))
  logits = normal(5, 4)[h]
  found = CATEGORICAL(logits, np.eye(4, dtype=np.float32)[y])
  np.testing.assert_allclose(found, 0, atol=1e-6)


def pairs(samples=7, width=3):
  return tuple(normal(3, samples, width, seed=2))


def test_closed_forms_equal_the_bound_over_all_pairs():
  mean, log_var, y = pairs()
  h = np.concatenate([mean, log_var], 1)
  log_q = lambda h, y: club.log_gaussian(h[:, :3], h[:, 3:], y)
  labels = np.eye(3, dtype=np.float32)[np.arange(7) % 3]
  over_pairs = jax.jit(club.upper_bound, static_argnums=0)
  for weights in (None, np.array([1, 0, 2, 1, 1, 0, 3], np.float32)):
    np.testing.assert_allclose(
        GAUSSIAN(mean, log_var, y, weights), over_pairs(log_q, h, y, weights),
        rtol=1e-4,
    )
    np.testing.assert_allclose(
        CATEGORICAL(mean, labels, weights),
        over_pairs(club.log_categorical, mean, labels, weights), rtol=1e-4,
    )


def test_densities():
  mean, log_var, y = (np.asarray(x, float) for x in pairs())
  expected = stats.norm.logpdf(y, mean, np.exp(log_var / 2)).sum(-1)
  np.testing.assert_allclose(
      jax.jit(club.log_gaussian)(*pairs()), expected, rtol=1e-5
  )


def test_padding_counts_nothing():
  """Rows of weight 0 change no bound, not even if they are not finite."""
  mean, log_var, y = pairs()
  weights = np.array([1, 1, 1, 1, 1, 0, 0], np.float32)
  worse = mean.copy()
  worse[5:] = 1e30
  np.testing.assert_allclose(
      GAUSSIAN(worse, log_var, y, weights),
      GAUSSIAN(mean[:5], log_var[:5], y[:5]), rtol=1e-5,
  )
  others = club.negatives(jax.random.key(0), jnp.arange(7), weights)
  assert np.max(others) < 5


def test_the_sampled_bound_is_unbiased():
  mean, log_var, y = map(jnp.asarray, pairs(samples=40))

  def sampled(key):
    log_q = lambda m, y: club.log_gaussian(m, log_var, y)
    return club.sampled_upper_bound(
        log_q, mean, y, club.negatives(key, y)
    )

  draws = jax.jit(jax.vmap(sampled))(
      jax.random.split(jax.random.key(0), 4_000)
  )
  draws = np.asarray(draws)
  error = draws.std() / np.sqrt(len(draws))
  assert abs(draws.mean() - GAUSSIAN(mean, log_var, y)) < 4 * error


def peer(case, net, x, final=None):
  """A two-layer network of the authors' code, with its weights."""
  weight = lambda name: jnp.asarray(GOLDEN[f'{case}_{net}.{name}'])
  hidden = jax.nn.relu(x @ weight('0.weight').T + weight('0.bias'))
  out = hidden @ weight('2.weight').T + weight('2.bias')
  return jnp.tanh(out) if final else out


@pytest.mark.parametrize('case', ['n16', 'n1'])
def test_the_authors_code_on_gaussians(case):
  """Their loss has neither the factor 1/2 nor the constant of the density."""
  x, y = (jnp.asarray(GOLDEN[f'{case}_{name}']) for name in 'xy')
  for name in ('club', 'clubsample'):
    def parameters(x, name=name):
      return (
          peer(case, f'{name}_w_p_mu', x),
          peer(case, f'{name}_w_p_logvar', x, 'tanh'),
      )

    def bound(x, y, name=name, parameters=parameters):
      if name == 'club':
        return club.gaussian(*parameters(x), y)
      log_q = lambda h, y: club.log_gaussian(*parameters(h), y)
      others = y[GOLDEN[f'{case}_perm']]
      return club.sampled_upper_bound(log_q, x, y, others)

    value, grads = jax.jit(jax.value_and_grad(bound, (0, 1)))(x, y)
    np.testing.assert_allclose(
        value, GOLDEN[f'{case}_{name}_forward'], rtol=1e-4, atol=1e-6
    )
    for axis, grad in zip('xy', grads):
      np.testing.assert_allclose(
          grad, GOLDEN[f'{case}_{name}_dforward_d{axis}'], rtol=1e-3, atol=1e-5
      )
    log_q = lambda h, y, f=parameters: club.log_gaussian(*f(h), y)
    constant = y.shape[1] * np.log(2 * np.pi)
    loss = jax.jit(club.learning_loss, static_argnums=0)(log_q, x, y)
    np.testing.assert_allclose(
        2 * loss - constant,
        GOLDEN[f'{case}_{name}_learning_loss'], rtol=1e-4,
    )


@pytest.mark.parametrize('case', ['n16', 'n1'])
def test_the_authors_code_on_classes(case):
  x, classes = GOLDEN[f'{case}_x'], GOLDEN[f'{case}_labels']
  net = f'{case}_clubcat_hNone'
  weight, bias = (
      GOLDEN[f'{net}_w_variational_net.{name}'] for name in ('weight', 'bias')
  )
  logits = x @ weight.T + bias
  labels = np.eye(len(bias), dtype=np.float32)[classes]
  np.testing.assert_allclose(
      CATEGORICAL(logits, labels), GOLDEN[f'{net}_forward'], rtol=1e-4,
      atol=1e-6,
  )
  np.testing.assert_allclose(
      club.learning_loss(club.log_categorical, logits, labels),
      GOLDEN[f'{net}_learning_loss'], rtol=1e-5,
  )


def test_works_in_a_64_bit_program_and_on_integers():
  with jax.enable_x64(True):
    mean, log_var, y = (jnp.asarray(x, jnp.float64) for x in pairs())
    assert GAUSSIAN(mean, log_var, y).dtype == jnp.float64
  counts = jnp.arange(6)[:, None]
  log_q = lambda h, y: -((h - y) ** 2).sum(-1) / 2.0
  assert club.upper_bound(log_q, counts, counts) == pytest.approx(35 / 12)


def test_negatives_are_drawn_by_weight():
  weights = np.array([1, 3, 0], np.float32)
  drawn = np.asarray(club.negatives(
      jax.random.key(0), jnp.tile(jnp.arange(3), 800), jnp.tile(weights, 800)
  ))
  np.testing.assert_allclose((drawn == 1).mean(), 0.75, atol=0.03)
  assert not (drawn == 2).any()


def test_without_a_sample_there_is_no_information():
  h, y, _ = pairs()
  nothing = jnp.zeros(len(h))
  log_q = lambda h, y: -((h - y) ** 2).sum(-1)
  assert club.upper_bound(log_q, h, y, nothing) == 0
  assert club.learning_loss(log_q, h, y, nothing) == 0


def test_closed_forms_broadcast_nothing_in_silence():
  mean, log_var, y = pairs()
  with jax.numpy_rank_promotion('raise'):
    jax.eval_shape(club.categorical, mean, jax.nn.softmax(y))
    jax.eval_shape(club.gaussian, mean, log_var, y)
