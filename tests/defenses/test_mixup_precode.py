"""MixUp and PRECODE."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tests.perturbing import check_apart, check_unlike
from vfljax.defense import Spec
from vfljax.defenses import mid, mixup, precode
from vfljax.types import Batch

ROWS = 12


def numbered(padding=0):
  """Rows that say which they are, at both parties, with labels alike."""
  one = np.eye(ROWS, dtype=np.float32)
  labels = one.copy()
  labels[ROWS - padding :] = 0
  return jax.tree.map(
      jnp.asarray, Batch((one, one[:, None, :, None] * 3), labels)
  )


def mix(samples, data):
  return jax.jit(mixup.mixup(samples).batch)(jax.random.key(0), data)


@pytest.mark.parametrize('samples', [2, 3, 4])
def test_a_mixture_has_that_many_samples_and_parties_agree(samples):
  mixed = mix(samples, numbered())
  weights = np.asarray(mixed.features[0])
  np.testing.assert_array_equal((weights > 0).sum(1), samples)
  np.testing.assert_allclose(weights.sum(1), 1, atol=1e-6)
  np.testing.assert_allclose(weights.sum(0).sum(), ROWS, rtol=1e-6)
  assert (np.diag(weights) > 0).all()
  np.testing.assert_allclose(mixed.features[1][:, 0, :, 0], 3 * weights)
  np.testing.assert_array_equal(mixed.labels, weights)


@pytest.mark.parametrize('concentration', [1.0, 0.3])
def test_two_samples_are_mixed_by_a_beta_gamma(concentration):
  valid = jnp.ones(20000, bool)
  _, weights = jax.jit(
      lambda key: mixup.coins(key, valid, 2, 2, concentration)
  )(jax.random.key(1))
  beta = stats.beta(concentration, concentration)
  distance = stats.kstest(np.asarray(weights[0]), beta.cdf).statistic
  assert distance < 0.015


def test_padding_is_mixed_with_nothing():
  data = numbered(padding=3)
  mixed = mix(3, data)
  assert not np.asarray(mixed.labels[-3:]).any()
  np.testing.assert_allclose(mixed.labels[:-3].sum(1), 1, atol=1e-6)
  np.testing.assert_allclose(
      mixed.features[0][-3:], data.features[0][-3:], rtol=1e-6
  )


def test_a_traced_number_of_samples_mixes_as_many():
  def weights(samples):
    return mixup.mixup(samples).batch(jax.random.key(0), numbered()).labels

  both = jax.jit(jax.vmap(weights))(jnp.array([2.0, 3.0]))
  np.testing.assert_array_equal((np.asarray(both) > 0).sum(-1)[:, 0], [2, 3])


def test_rows_have_partners_and_weights_of_their_own():
  rows, weights = jax.jit(
      lambda key: mixup.coins(key, jnp.ones(4000, bool), 3, 3)
  )(jax.random.key(1))
  assert len(np.unique(rows[1])) == len(np.unique(rows[2])) == 4000
  # Who mixes with whom is by lot, and says nothing of how much.
  assert len(np.unique((rows[1] - rows[0]) % 4000)) > 2000
  together = np.corrcoef(weights[0], weights[0][rows[1]])[0, 1]
  assert weights[0].std() > 0.1 and abs(together) < 0.1


@pytest.mark.parametrize('samples, why', [(1, 'at least 2'), (2.5, 'whole')])
def test_one_sample_is_no_mixture(samples, why):
  with pytest.raises(ValueError, match=why):
    mixup.mixup(samples)


def test_a_concentration_of_zero_is_no_distribution():
  with pytest.raises(ValueError, match='concentration must be a number above'):
    mixup.mixup(2, 0.0)


def test_a_batch_can_be_too_small():
  batch = numbered()
  count = len(batch.labels)
  mix(count, batch)
  with pytest.raises(ValueError, match=f'cannot mix {count + 1}'):
    mix(count + 1, batch)


def sent(weight, u, key=2):
  spec = Spec((jax.ShapeDtypeStruct(u.shape, u.dtype),), 2)
  defense = precode.precode(weight, 4)
  own = defense.init(jax.random.key(0), spec).passive[0]
  return defense.send(own, jax.random.key(key), u)


def test_what_precode_sends_has_the_embeddings_shape_and_is_random():
  u = jax.random.normal(jax.random.key(1), (6, 2, 3))
  one, other = sent(1.0, u)[0], sent(1.0, u, key=3)[0]
  assert one.shape == u.shape
  assert not np.allclose(one, other)


def test_what_precode_draws_has_its_mean_and_deviation():
  """The decoder is linear, so what was drawn can be solved for."""
  u = jax.random.normal(jax.random.key(1), (5, 6))
  shape = jax.ShapeDtypeStruct(u.shape, u.dtype)
  defense = precode.precode(1.0, 4)
  one, other = defense.init(jax.random.key(0), Spec((shape,) * 2, 2)).passive
  z, penalty = jax.jit(jax.vmap(
      lambda key: defense.send(one, key, u)
  ))(jax.random.split(jax.random.key(2), 2000))
  code = precode.nets.mlp(8).apply(one['encoder'], u)
  mean, log_std = code[:, :4], 5 * np.tanh(code[:, 4:] / 5)
  layer = one['decoder']['Dense_0']['Dense_0']
  t = (np.asarray(z) - layer['bias']) @ np.linalg.pinv(layer['kernel'])
  noise = (t - mean) / np.exp(log_std)
  np.testing.assert_allclose(noise.mean(0), 0, atol=0.1)
  np.testing.assert_allclose(noise.std(0), 1, atol=0.08)
  check_apart(noise)
  expected = mid.divergence(mean, log_std, jnp.ones(len(mean)))
  np.testing.assert_allclose(penalty, expected, rtol=1e-4)
  check_unlike(one, other)
  check_unlike(one['encoder'], one['decoder'])


def test_the_penalty_is_the_weighted_divergence():
  u = jax.random.normal(jax.random.key(1), (6, 3))
  np.testing.assert_allclose(sent(0.5, u)[1] * 2, sent(1.0, u)[1], rtol=1e-6)
  assert sent(0.0, u)[1] == 0


def test_the_divergence_is_the_closed_form_and_the_integral():
  mean, log_std = np.array([[0.7, -1.0]]), np.log([[0.5, 2.0]])
  grid = np.linspace(-20, 20, 40001)
  total = 0.0
  for m, s in zip(mean[0], np.exp(log_std[0])):
    p = np.exp(-((grid - m) ** 2) / (2 * s * s)) / (s * np.sqrt(2 * np.pi))
    log_q = -(grid**2) / 2 - np.log(np.sqrt(2 * np.pi))
    log_p = -((grid - m) ** 2) / (2 * s * s) - np.log(s * np.sqrt(2 * np.pi))
    total += (p * (log_p - log_q)).sum() * (grid[1] - grid[0])
  rows = [jnp.tile(jnp.float32(x), (3, 1)) for x in (mean, log_std)]
  found = mid.divergence(*rows, jnp.ones(3))
  np.testing.assert_allclose(found, total, rtol=1e-5)


@pytest.mark.parametrize('bad', [dict(weight=-1.0), dict(width=0)])
def test_bad_arguments_of_precode(bad):
  with pytest.raises(ValueError, match=f'precode: {next(iter(bad))}'):
    precode.precode(**bad)
