"""Residue reconstruction: labels from a linear layer's gradient."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tests import small_networks
from tests.vlr_rounds import vlr_round
from vfljax import measure, metrics, nets, views
from vfljax.attacks import residue_reconstruction
from vfljax.attacks.residue_reconstruction import reconstruct
from vfljax.defense import none


def sample(batch, columns, seed=0):
  draws = np.random.default_rng(seed)
  return draws.normal(size=(batch, columns)), draws.normal(size=(batch, 1))


@pytest.mark.parametrize('bias', [False, True])
def test_more_features_than_samples_give_the_residues_themselves(bias):
  x, d = sample(12, 20)
  found = reconstruct(
      jnp.float32(x), jnp.float32(x.T @ d),
      jnp.float32(d.sum(0)) if bias else None,
  )
  assert found.exact and found.rank == 12
  np.testing.assert_allclose(found.values, d, atol=1e-4)


def test_fewer_features_give_the_least_squares_solution_of_scipy():
  x, d = sample(30, 8)
  found = reconstruct(jnp.float32(x), jnp.float32(x.T @ d))
  best = np.linalg.lstsq(x.T, x.T @ d, rcond=None)[0]
  assert not found.exact and found.rank == 8
  np.testing.assert_allclose(found.values, best, atol=1e-4)


@pytest.mark.parametrize('dtype', [jnp.float16, jnp.bfloat16, int])
def test_samples_of_few_bits_are_solved_in_float32(dtype):
  x = jnp.asarray(np.random.default_rng(0).integers(-3, 4, (6, 9)), dtype)
  d = np.arange(6.0)[:, None] - 2
  g = np.asarray(x, float).T @ d
  found = reconstruct(x, jnp.asarray(g, dtype), jnp.asarray(d.sum(0), dtype))
  assert found.exact
  np.testing.assert_allclose(found.values, d, atol=1e-4)


def test_repeated_samples_are_not_called_exact():
  x, d = sample(6, 20)
  x[5] = x[0]
  found = reconstruct(jnp.float32(x), jnp.float32(x.T @ d))
  assert not found.exact and found.rank == 5


@pytest.mark.parametrize('least, rank', [(7.5e-7, 2), (3e-6, 3)])
def test_what_rounding_makes_is_no_rank(least, rank):
  """As by NumPy: below the largest singular value's last bits, by the size."""
  left, right = (np.linalg.qr(x)[0] for x in (sample(8, 3)[0], sample(5, 3)[0]))
  x = ((left * [1, 0.1, least]) @ right.T).astype(np.float32)
  assert np.linalg.matrix_rank(x) == rank
  found = reconstruct(jnp.array(x), jnp.ones((5, 1)))
  assert found.rank == rank


def test_padding_neither_counts_nor_has_a_residue():
  x, d = sample(6, 20)
  valid = np.array([1, 1, 1, 1, 0, 0])
  d = d * valid[:, None]
  found = reconstruct(
      jnp.float32(x), jnp.float32(x.T @ d), valid=jnp.asarray(valid)
  )
  assert found.exact and found.rank == 4
  np.testing.assert_allclose(found.values, d, atol=1e-4)


@pytest.mark.parametrize('classes', [2, 3])
def test_all_labels_are_right_when_features_outnumber_the_batch(classes):
  _, played = vlr_round(classes, 16, 24)
  view = views.in_training(
      views.ModelGradients, jax.random.key(0), 1, none(), played
  )
  attack = residue_reconstruction()
  guess = jax.jit(attack.run)(jax.random.key(0), view)
  assert attack.facts(view)['exact'] == 1
  assert jax.jit(metrics.accuracy)(guess, played.batch.labels) == 1


def test_the_result_says_in_how_many_rounds_the_solution_was_exact():
  watch, digest = measure.watcher(
      {'rr': residue_reconstruction()}, none()
  )
  watch = jax.jit(watch)
  rows = [watch(jax.random.key(0), vlr_round(2, 8, c)[1]) for c in (24, 4)]
  stack = jax.tree.map(lambda *x: np.stack(x), *rows)
  found = jax.jit(digest)(stack)['rr']
  assert found['exact'] == 0.5
  assert 0.5 < found['leak_auc'] <= 1


def test_the_gradient_in_the_view_is_the_residues_seen_through_the_samples():
  _, played = vlr_round(2, 16, 5)
  view = views.model_gradients(jax.random.key(0), 1, none(), played)
  d = np.asarray(played.messages.down[0])
  kernel, bias = leaves_of(view.gradients)
  np.testing.assert_allclose(kernel, np.asarray(view.features).T @ d, atol=1e-6)
  np.testing.assert_allclose(bias, d.sum(0), atol=1e-6)


def leaves_of(gradients):
  leaves = jax.tree.leaves(gradients)
  return [next(g for g in leaves if g.ndim == n) for n in (2, 1)]


def test_a_deeper_bottom_is_refused():
  x = jnp.ones((4, 3))
  weights = small_networks.drawn(nets.mlp(2, 1), x)
  view = views.ModelGradients(x, weights, weights, jnp.ones(4))
  with pytest.raises(ValueError, match='one linear layer'):
    residue_reconstruction().run(jax.random.key(0), view)


def test_the_sign_of_the_residue_agrees_with_scikit_learns_probabilities():
  """p - y of a fitted model, hidden in X^T (p - y), gives its labels back."""
  x, _ = sample(20, 40, seed=3)
  y = np.arange(20) % 2
  p = LogisticRegression(C=0.1).fit(x, y).predict_proba(x)[:, 1]
  found = reconstruct(jnp.float32(x), jnp.float32(x.T @ (p - y))[:, None])
  assert found.exact
  np.testing.assert_array_equal(np.asarray(found.values[:, 0]) < 0, y)
