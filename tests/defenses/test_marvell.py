"""Marvell against its authors' optimum, closed forms and random search."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import linalg

from tests.perturbing import (
    GOLDEN, KEY, check_apart, draws, gradients, raw,
)
from vfljax import defenses, target
from vfljax.defenses import marvell

solve = jax.jit(marvell.solve)
AT_4 = jax.jit(raw(defenses.REGISTRY['marvell'](4.0)))  # Traced once a shape.


def golden_marvell(scale, dtype):
  data = np.load(GOLDEN / 'marvell_solver.npz')
  inputs = [data[k] * (scale if k in 'uvgP' else 1) for k in 'uvdgpP']
  return data, inputs, [jnp.asarray(x, dtype) for x in inputs]


def solve_for_a_gpu(*inputs):
  with target.tracing_for('cuda'):
    return jax.jit(lambda *xs: marvell.solve(*xs))(*inputs)


@pytest.mark.parametrize('scale', [1.0, 1e7, 1e13])
@pytest.mark.parametrize('solve', [solve, solve_for_a_gpu])
@pytest.mark.parametrize('x64', [False, True])
def test_marvell_is_the_authors_optimum(scale, solve, x64):
  with jax.enable_x64(x64):
    dtype = jnp.float64 if x64 else jnp.float32
    data, (u, v, d, g, p, power), inputs = golden_marvell(scale, dtype)
    found = solve(*inputs)
    assert found.sum_kl.dtype == dtype
    found = marvell.Allocation(*(np.asarray(x, float) for x in found))
  tolerance = 1e-11 if x64 else 1e-5
  np.testing.assert_allclose(found.sum_kl, data['sumKL'], rtol=tolerance)
  lam = np.stack(found[:4]) / scale
  theirs = np.stack([data[k] for k in ('lam10', 'lam20', 'lam11', 'lam21')])
  largest = theirs.max(0)  # Optima are flat, and 0 has no relative error.
  np.testing.assert_allclose(lam / largest, theirs / largest, atol=1e-5)
  used = p * (found.lam11 + (d - 1) * found.lam21)
  used += (1 - p) * (found.lam10 + (d - 1) * found.lam20)
  np.testing.assert_allclose(used, power, rtol=1e-12 if x64 else 1e-6)


def test_a_second_search_outside_of_jit_is_not_traced(monkeypatch):
  """Another batch's and another power's: each would be compiled."""
  cut = jax.random.normal(KEY, (8, 3))
  labels = jnp.eye(2)[jnp.arange(8) % 2]
  sent = lambda power, x: raw(marvell.marvell(power))(KEY, x, labels)
  sent(2.0, cut)
  monkeypatch.setattr(jax.lax, 'fori_loop', None)
  assert jnp.isfinite(sent(3.0, 2 * cut)).all()


def test_marvells_bounds():
  data = np.load(GOLDEN / 'marvell_solver.npz')
  found = marvell.error_lower_bound(data['sumKL'])
  known = data['error_prob_lower_bound'].clip(0)  # Theirs goes below it.
  np.testing.assert_allclose(found, known, atol=1e-5)
  small = data['sumKL'] < 4
  found = np.asarray(marvell.auc_upper_bound(data['sumKL']))
  np.testing.assert_allclose(found[small], data['auc_upper_bound'][small],
                             rtol=1e-6)
  assert (found[~small] == 1).all()


def gaussian_sum_kl(u, v, d, g, lam10, lam20, lam11, lam21):
  """KL both ways between two Gaussians, from the textbook's formula."""
  cov0 = np.diag([lam10 + u] + [lam20 + u] * (d - 1))
  cov1 = np.diag([lam11 + v] + [lam21 + v] * (d - 1))
  gap = np.zeros(d)
  gap[0] = g**0.5

  def kl(a, b):
    inverse = np.linalg.inv(b)
    logdet = np.linalg.slogdet(b)[1] - np.linalg.slogdet(a)[1]
    return (np.trace(inverse @ a) - d + gap @ inverse @ gap + logdet) / 2

  return kl(cov1, cov0) + kl(cov0, cov1)


@pytest.mark.parametrize('d', [1, 2, 5])
def test_no_random_allocation_beats_marvells(d):
  rng = np.random.default_rng(d)
  with jax.enable_x64(True):
    for _ in range(10):
      u, v, g = rng.uniform(0.1, 2, 3)
      p, power = rng.uniform(0.05, 0.95), g * rng.uniform(0.1, 10)
      found = solve(u, v, d, g, p, power)
      *lam, best = (float(x) for x in found)
      expected = gaussian_sum_kl(u, v, d, g, *lam)
      np.testing.assert_allclose(best, expected, rtol=1e-9)
      for width in (1.0, 0.1, 0.01):  # Random ones, far from ours and near.
        for _ in range(30):
          moved = np.abs(np.array(lam) + width * power * rng.normal(size=4))
          moved[[0, 2]] = np.maximum(moved[[0, 2]], moved[[1, 3]])
          spent = p * (moved[2] + (d - 1) * moved[3])
          spent += (1 - p) * (moved[0] + (d - 1) * moved[1])
          moved *= power / spent
          assert gaussian_sum_kl(u, v, d, g, *moved) >= best * (1 - 1e-9)


def test_marvell_in_one_dimension_is_the_closed_form():
  rng = np.random.default_rng(7)
  u, v, g = rng.uniform(0, 2, (3, 50))
  p, power = rng.uniform(0.05, 0.95, 50), rng.uniform(0.01, 5, 50)
  total = power + p * v + (1 - p) * u
  e = np.sqrt((total + (1 - p) * g) / (total + p * g))
  lam10 = np.clip(
      (power / p + v - e * u) / (e + (1 - p) / p), 0, power / (1 - p)
  )
  lam11 = (power - (1 - p) * lam10) / p
  static = jax.jit(lambda *x: marvell.solve(x[0], x[1], 1, *x[2:]))
  ones = np.ones(50, np.float32)
  for found in (static(u, v, g, p, power), solve(u, v, ones, g, p, power)):
    np.testing.assert_allclose(found.lam10, lam10, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.lam11, lam11, rtol=1e-4, atol=1e-5)
    assert not found.lam20.any() and not found.lam21.any()


def test_a_width_may_be_known_when_marvell_is_traced():
  inputs = [(0.3, 1.5), (1.2, 0.4), (2.0, 0.7), (0.3, 0.6), (1.5, 0.2)]
  u, v, g, p, power = map(np.float32, inputs)
  known = jax.jit(lambda: marvell.solve(u, v, 2, g, p, power))()
  traced = solve(u, v, np.full(2, 2, np.float32), g, p, power)
  np.testing.assert_allclose(np.stack(known), np.stack(traced), rtol=1e-5)
  assert (known.lam20 + known.lam21 > 0.05).all()


def test_marvell_at_the_end_of_32_bits():
  """What it divides by squares of variances does not overflow."""
  found, tiny = (
      np.stack(solve(1e-4 * x, x, 3.0, x, 0.3, 1e-4 * x)) for x in (1.0, 1e-31)
  )
  assert found[1] > 2e-6
  np.testing.assert_allclose(tiny[:4] / 1e-31, found[:4], rtol=1e-3, atol=1e-7)
  np.testing.assert_allclose(tiny[4], found[4], rtol=1e-4)


@pytest.mark.parametrize('power', [4.0, 0.0])
@pytest.mark.parametrize('d', [
    np.ones((4, 3)), np.zeros((4, 3)), np.eye(4)[:, :3], np.eye(4)[:, :1],
], ids=['equal', 'zero', 'apart', 'narrow'])
def test_nothing_on_the_way_is_nan(d, power):
  """Outside of `jit`, where `jax_debug_nans` looks at every operation."""
  add = defenses.REGISTRY['marvell'](power).gradient
  labels = [np.eye(2)[np.array(y)] for y in (
      (0, 1, 0, 1), (0, 0, 0, 0), (0, 0, 0, 1), (1, 1, 0, 1)
  )]
  one_each = labels[0] * np.array([1, 1, 0, 0])[:, None]  # The rest is padding.
  d = jnp.asarray(d, jnp.float32)
  with jax.debug_nans(True):
    for y in (*labels, one_each):
      (noisy,), _ = add((), KEY, (d,), jnp.asarray(y, jnp.float32))
      assert np.isfinite(noisy).all()


def test_more_power_for_what_is_zero_is_no_more_noise():
  """Its slope is 0, not NaN: a root has none at 0."""
  d, labels = (jnp.zeros((4, 3)),), jnp.eye(2)[jnp.array([0, 1, 0, 1])]
  noise = lambda power: marvell.marvell(power).gradient((), KEY, d, labels)
  slope = jax.jit(jax.jacrev(lambda power: noise(power)[0][0]))(4.0)
  np.testing.assert_array_equal(slope, 0)


def test_marvell_of_nothing():
  for inputs in ((0, 0, 3, 0, 0.5, 0), (1, 1, 3, 0, 0.5, 0),
                 (1, 2, 3, 0, 0.5, 1), (2, 1, 1, 1, 0.5, 0)):
    assert all(np.isfinite(x) for x in solve(*map(float, inputs))), inputs
  assert solve(0.0, 0.0, 3.0, 1.0, 0.5, 0.0).sum_kl == np.inf
  assert solve(0.0, 1.0, 1.0, 1.0, 0.5, 0.0).sum_kl == np.inf


@pytest.mark.parametrize('scale', [1e-3, 1e-24])
def test_marvells_noise_has_the_covariances_it_solved_for(scale):
  d, labels = gradients(batch=24, width=3, scale=scale, seed=2)
  positive = labels[:, 1] > 0
  x = d.astype(float) / scale
  centers = x[positive].mean(0), x[~positive].mean(0)
  gap = centers[0] - centers[1]
  expected = solve(
      x[~positive].var(0).mean(), x[positive].var(0).mean(), 3.0, gap @ gap,
      positive.mean(), 2.0 * gap @ gap,
  )
  sent = draws(defenses.REGISTRY['marvell'](2.0), d, labels, 3000)
  noise = (sent.astype(float) - d) / scale
  axis = gap / np.linalg.norm(gap)
  along = noise @ axis
  across = ((noise**2).sum(-1) - along**2) / 2
  for rows, first, second in ((positive, expected.lam11, expected.lam21),
                              (~positive, expected.lam10, expected.lam20)):
    np.testing.assert_allclose((along[:, rows] ** 2).mean(), first, rtol=0.05)
    np.testing.assert_allclose(across[:, rows].mean(), second, rtol=0.05,
                               atol=1e-6)
  assert expected.lam20 + expected.lam21 > 0.1
  # All covariances: along the gap and across it, and none between rows.
  flat = noise.reshape(len(noise), -1)
  blocks = [
      float(first - second) * np.outer(axis, axis) + float(second) * np.eye(3)
      for first, second in (
          (expected.lam11, expected.lam21) if y
          else (expected.lam10, expected.lam20) for y in positive
      )
  ]
  wanted = linalg.block_diag(*blocks)
  np.testing.assert_allclose(
      flat.T @ flat / len(flat), wanted, atol=0.12 * wanted.max()
  )
  rows = positive if expected.lam21 > expected.lam20 else ~positive
  aside = np.linalg.svd(axis[None])[2][1]  # Some direction across.
  check_apart((noise @ aside)[:, rows])
  np.testing.assert_allclose(noise.mean((0, 1)), 0, atol=0.1)


@pytest.mark.parametrize('kind', [
    'negatives', 'positives', 'one row', 'zero', 'same center', 'empty',
])
def test_marvell_leaves_batches_without_a_gap_alone(kind):
  d, labels = gradients(batch=8)
  if kind in ('negatives', 'positives'):
    labels[:] = [1, 0] if kind == 'negatives' else [0, 1]
  elif kind == 'one row':
    d, labels = d[:1], labels[:1]
  elif kind == 'zero':
    d[:] = 0
  elif kind == 'same center':
    d[4:], labels[:4], labels[4:] = d[:4], [1, 0], [0, 1]
  else:
    labels[:] = 0
  np.testing.assert_array_equal(AT_4(KEY, d, labels), d)


@pytest.mark.parametrize('width', [1, 4])
def test_marvell_with_one_positive_and_with_identical_gradients(width):
  d, labels = gradients(batch=8, width=width)
  labels[:], labels[0] = [1, 0], [0, 1]
  same = np.where(labels[:, 1:] > 0, -1.0, 1.0) * np.ones_like(d)  # u = v = 0.
  for x in (d, same.astype(np.float32)):
    found = np.asarray(AT_4(KEY, x, labels))
    assert np.isfinite(found).all() and (found != x).all()


def test_marvell_does_not_see_padding():
  d, labels = gradients(batch=8)
  blank = np.concatenate([d, np.full_like(d, 7.0)])
  none = np.concatenate([labels, np.zeros_like(labels)])
  defense = defenses.REGISTRY['marvell'](4.0)
  sent = draws(defense, blank, none, 3000)
  np.testing.assert_array_equal(sent[:, 8:] - blank[8:], 0)
  alone = draws(defense, d, labels, 3000)
  np.testing.assert_allclose(sent[:, :8].std(0), alone.std(0), rtol=0.1)


def test_marvell_refuses_ten_classes():
  cut, labels = (jnp.ones((8, 3)),), jax.nn.one_hot(jnp.arange(8), 10)
  with pytest.raises(ValueError, match='binary labels .* have 10'):
    defenses.REGISTRY['marvell'](4.0).gradient((), KEY, cut, labels)
  assert defenses.REGISTRY['marvell'].binary


def test_a_gradient_that_is_not_a_number_passes_as_inside_jit():
  """`solve` would blame an argument that nobody gave."""
  d, labels = gradients(8, 2)
  found = raw(defenses.REGISTRY['marvell'](4.0))(
      KEY, jnp.asarray(d).at[0, 0].set(jnp.nan), jnp.asarray(labels)
  )
  assert jnp.isnan(found).any()
