"""CLUB's bounds against closed forms, and against the authors' code."""
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import stats

from vfljax import club, nets

GOLDEN = np.load(Path(__file__).parent / 'golden' / 'club.npz')
CORRELATIONS = (0.0, 0.3, 0.6, 0.9)


def correlated(key, rho, width, samples):
  """Standard normal h and y, coordinate by coordinate correlated."""
  h, noise = jax.random.normal(key, (2, samples, width), jnp.float32)
  return h, rho * h + jnp.sqrt(1 - rho**2) * noise


def true_information(rho, width):
  return -0.5 * width * np.log1p(-np.square(rho))


def jeffreys(rho, width):
  """I + KL(p(h)p(y) || p(h,y)): what vCLUB is with the true conditional."""
  return width * np.square(rho) / (1 - np.square(rho))


@pytest.mark.parametrize('width', [1, 5, 20])
def test_with_the_true_gaussian_it_is_its_closed_form(width):
  @jax.jit
  @jax.vmap
  def bound(rho):
    h, y = correlated(jax.random.key(0), rho, width, 20_000)
    spread = jnp.log1p(-(rho**2))
    return club.gaussian(rho * h, jnp.full_like(h, spread), y)

  rho = np.asarray(CORRELATIONS, np.float32)
  np.testing.assert_allclose(
      bound(rho), jeffreys(rho, width), rtol=0.03, atol=0.02
  )


@pytest.mark.parametrize('width', [1, 8])
def test_a_trained_gaussian_bounds_the_information(width):
  """For every correlation the bound is above the truth on fresh samples."""
  mean_net, spread_net = nets.mlp(16, width), nets.mlp(8, width, final='tanh')
  tx = optax.adam(optax.cosine_decay_schedule(1e-2, 300))

  @jax.jit
  @jax.vmap
  def bound(key, rho):
    k_mean, k_spread, k_train, k_test = jax.random.split(key, 4)
    h, y = correlated(k_test, rho, width, 2_000)
    weights = mean_net.init(k_mean, h), spread_net.init(k_spread, h)

    def log_q(weights, h, y):
      spread = 4 * spread_net.apply(weights[1], h)
      return club.log_gaussian(mean_net.apply(weights[0], h), spread, y)

    def step(carry, key):
      weights, opt = carry
      h, y = correlated(key, rho, width, 128)
      loss = lambda w: club.learning_loss(lambda a, b: log_q(w, a, b), h, y)
      updates, opt = tx.update(jax.grad(loss)(weights), opt, weights)
      return (optax.apply_updates(weights, updates), opt), None

    keys = jax.random.split(k_train, 300)
    (weights, _), _ = jax.lax.scan(step, (weights, tx.init(weights)), keys)
    spread = 4 * spread_net.apply(weights[1], h)
    return club.gaussian(mean_net.apply(weights[0], h), spread, y)

  rho = np.asarray(CORRELATIONS[1:], np.float32)
  found = bound(jax.random.split(jax.random.key(1), len(rho)), rho)
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
  logits = jnp.log(joint / p_h[:, None])[h]
  labels = jax.nn.one_hot(y, 3)
  found = club.categorical(logits, labels, jnp.asarray(joint.ravel()))
  np.testing.assert_allclose(found, information + reverse, rtol=1e-5)
  assert found > information


def test_independent_variables_share_nothing():
  """Each label meets each h once: whatever q, the bound is 0."""
  h, y = (i.ravel() for i in np.indices((5, 4)))
  logits = jax.random.normal(jax.random.key(0), (5, 4), jnp.float32)[h]
  found = club.categorical(logits, jax.nn.one_hot(y, 4))
  np.testing.assert_allclose(found, 0, atol=1e-6)


def pairs(samples=7, width=3):
  mean, log_var, y = jax.random.normal(
      jax.random.key(2), (3, samples, width), jnp.float32
  )
  return mean, log_var, y


def test_closed_forms_equal_the_bound_over_all_pairs():
  mean, log_var, y = pairs()
  h = jnp.concatenate([mean, log_var], 1)
  log_q = lambda h, y: club.log_gaussian(h[:, :3], h[:, 3:], y)
  labels = jax.nn.one_hot(jnp.arange(7) % 3, 3)
  for weights in (None, jnp.array([1.0, 0, 2, 1, 1, 0, 3])):
    np.testing.assert_allclose(
        club.gaussian(mean, log_var, y, weights),
        club.upper_bound(log_q, h, y, weights), rtol=1e-4,
    )
    np.testing.assert_allclose(
        club.categorical(mean, labels, weights),
        club.upper_bound(club.log_categorical, mean, labels, weights),
        rtol=1e-4,
    )


def test_densities():
  mean, log_var, y = (np.asarray(x, float) for x in pairs())
  expected = stats.norm.logpdf(y, mean, np.exp(log_var / 2)).sum(-1)
  np.testing.assert_allclose(
      club.log_gaussian(*pairs()), expected, rtol=1e-5
  )


def test_padding_counts_nothing():
  """Rows of weight 0 change no bound, not even if they are not finite."""
  mean, log_var, y = pairs()
  weights = jnp.array([1.0, 1, 1, 1, 1, 0, 0])
  worse = mean.at[5:].set(1e30)
  np.testing.assert_allclose(
      club.gaussian(worse, log_var, y, weights),
      club.gaussian(mean[:5], log_var[:5], y[:5]), rtol=1e-5,
  )
  drawn = club.negatives(jax.random.key(0), jnp.arange(7), weights)
  assert drawn.max() < 5


def test_the_sampled_bound_is_unbiased():
  mean, log_var, y = pairs(samples=40)

  def sampled(key):
    log_q = lambda m, y: club.log_gaussian(m, log_var, y)
    return club.sampled_upper_bound(
        log_q, mean, y, club.negatives(key, y)
    )

  draws = jax.jit(jax.vmap(sampled))(
      jax.random.split(jax.random.key(0), 4_000)
  )
  error = draws.std() / np.sqrt(len(draws))
  assert abs(draws.mean() - club.gaussian(mean, log_var, y)) < 4 * error


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
    np.testing.assert_allclose(
        2 * club.learning_loss(log_q, x, y) - constant,
        GOLDEN[f'{case}_{name}_learning_loss'], rtol=1e-4,
    )


@pytest.mark.parametrize('case', ['n16', 'n1'])
def test_the_authors_code_on_classes(case):
  x, classes = jnp.asarray(GOLDEN[f'{case}_x']), GOLDEN[f'{case}_labels']
  net = f'{case}_clubcat_hNone'
  weight, bias = (
      GOLDEN[f'{net}_w_variational_net.{name}'] for name in ('weight', 'bias')
  )
  logits = x @ weight.T + bias
  labels = jax.nn.one_hot(classes, len(bias))
  np.testing.assert_allclose(
      club.categorical(logits, labels), GOLDEN[f'{net}_forward'], rtol=1e-4,
      atol=1e-6,
  )
  np.testing.assert_allclose(
      club.learning_loss(club.log_categorical, logits, labels),
      GOLDEN[f'{net}_learning_loss'], rtol=1e-5,
  )


def test_works_in_a_64_bit_program_and_on_integers():
  with jax.enable_x64(True):
    mean, log_var, y = (jnp.asarray(x, jnp.float64) for x in pairs())
    assert club.gaussian(mean, log_var, y).dtype == jnp.float64
  counts = jnp.arange(6)[:, None]
  log_q = lambda h, y: -((h - y) ** 2).sum(-1) / 2.0
  assert club.upper_bound(log_q, counts, counts) == pytest.approx(35 / 12)
