"""Formulas of the defenses against golden vectors, NumPy and closed forms."""
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import devices
from tests.perturbing import (
    GOLDEN, KEY, check_apart, draws, gradients, perturb, raw,
)
from vfljax import check, defenses
from vfljax.defenses import (
    clipping, discrete_sgd, gradient_compression, iso, max_norm, ppdl,
)

discretize = jax.jit(discrete_sgd.discretize)
release = jax.jit(ppdl.release)
compress = jax.jit(gradient_compression.compress, static_argnames='signed')


# Noise in proportion to nothing: DP.


@pytest.mark.parametrize('name', ['dp_laplace', 'dp_gaussian'])
def test_dp_noise_has_its_distribution(name):
  d, labels = gradients(batch=30)
  noise = draws(defenses.REGISTRY[name](0.02, clip_norm=None), d, labels, 600)
  check_apart(noise - d)  # One for every element.
  noise = (noise - d).ravel() / 0.02
  # Moments (E z^2, E |z|) of the unit Laplace and normal distributions.
  square, absolute = (2, 1) if name == 'dp_laplace' else (1, (2 / np.pi) ** 0.5)
  np.testing.assert_allclose(noise.mean(), 0, atol=0.03)
  np.testing.assert_allclose((noise**2).mean(), square, rtol=0.04)
  np.testing.assert_allclose(np.abs(noise).mean(), absolute, rtol=0.02)


@pytest.mark.parametrize('name', ['dp_laplace', 'dp_gaussian'])
def test_dp_clips_first(name):
  d, labels = gradients()
  norms = np.linalg.norm(d, axis=1)
  bound = np.median(norms)
  for form, factor in dict(
      sample=np.minimum(1, bound / norms), batch=bound / norms.max()
  ).items():
    defense = defenses.REGISTRY[name](0.0, bound, clip=form)
    expected = d * np.broadcast_to(factor, norms.shape)[:, None]
    found = perturb(defense, KEY, d, labels)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
  clip = jax.jit(clipping.clip, static_argnums=2)
  np.testing.assert_allclose(clip(d, 99.0, 'batch'), d)
  zero = clip(np.zeros((2, 3), 'f4'), 1.0, 'sample')
  np.testing.assert_array_equal(zero, np.zeros((2, 3)))


# Noise in proportion to the largest gradient: ISO, Max-Norm.


def test_iso_deviation_is_equation_14():
  d, labels = gradients(width=16)
  expected = 2.75 * np.linalg.norm(d.astype(float), axis=1).max() / 4
  np.testing.assert_allclose(iso.noise_std(jnp.asarray(d), 2.75), expected,
                             rtol=1e-6)
  noise = draws(defenses.REGISTRY['iso'](2.75), d, labels, 200) - d
  np.testing.assert_allclose(noise.std(), expected, rtol=0.02)
  check_apart(noise)


def test_max_norm_deviations_are_equation_15():
  d, _ = gradients()
  d[3] = 0
  squares = (d.astype(float) ** 2).sum(1)
  with np.errstate(divide='ignore'):
    expected = np.sqrt(squares.max() / squares - 1)
  expected[3] = 0
  found = max_norm.noise_std(jnp.asarray(d))
  np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)
  assert found[squares.argmax()] == 0
  tiny = max_norm.noise_std(jnp.asarray(d) * 1e-25)  # Squares underflow.
  np.testing.assert_allclose(tiny, found, rtol=1e-4, atol=1e-6)


def test_max_norm_is_finite_however_far_apart_norms_are():
  """A ratio of 1e41 is beyond float32; one of 1e30 is not."""
  d = np.array([[3e3, 4e3], [3e-38, 4e-38], [3e-27, 4e-27]], np.float32)
  found = np.asarray(max_norm.noise_std(jnp.asarray(d)))
  assert 1e36 < found[1] < 1e38
  np.testing.assert_allclose(found[2], 1e30, rtol=1e-5)
  sent = draws(defenses.REGISTRY['max_norm'](), d, np.eye(2)[[0, 1, 1]], 200)
  assert np.isfinite(sent).all() and sent[:, 1].std() > 1e-2


@pytest.mark.usefixtures('optimized')
def test_max_norm_noise_is_along_the_gradient_and_evens_the_norms():
  d, labels = gradients(batch=12)
  sent = draws(defenses.REGISTRY['max_norm'](), d, labels, 4000)
  factor = sent / d
  same = factor[..., :1] * np.ones(3)
  atol = 0 if devices.KIND == 'cpu' else 1e-7  # Of a draw that nearly cancels.
  np.testing.assert_allclose(factor, same, rtol=1e-4, atol=atol)
  squares = (sent.astype(float) ** 2).sum(-1).mean(0)
  largest = (d.astype(float) ** 2).sum(-1).max()
  np.testing.assert_allclose(squares, largest, rtol=0.12)
  check_apart(factor[..., 0])  # One for every row.


# Pruning: gradient compression, DiscreteSGD, residue mask.


def golden_cases(name):
  data = np.load(GOLDEN / f'{name}.npz')
  return data, [k[3:] for k in data.files if k.startswith('in_')]


@pytest.mark.parametrize('keep', [0.1, 0.25, 0.5, 0.75, 0.9, 1.0])
def test_compression_keeps_exactly_the_largest(keep):
  data, cases = golden_cases('gradient_compression_fuchong')
  for case in cases:
    x = data[f'in_{case}']
    kept = int(np.ceil(round(keep * x.size, 6)))
    largest = np.argsort(-np.abs(x).ravel(), kind='stable')[:kept]
    expected = np.zeros(x.size, x.dtype)
    expected[largest] = x.ravel()[largest]
    found = np.asarray(compress(x, keep))
    np.testing.assert_array_equal(found.ravel(), expected)


@pytest.mark.parametrize('keep', [0.1, 0.25, 0.5, 0.75, 0.9])
@pytest.mark.parametrize('case', ['b8d4', 'b32d10', 'b5d3', 'b1d8'])
def test_compression_is_fu_et_als_and_the_threshold_itself(case, keep):
  data, _ = golden_cases('gradient_compression_fuchong')
  if int(data[f'in_{case}'].size * keep) == 0:  # Theirs raises IndexError.
    assert str(data[f'error_keep{keep}_{case}']) == 'IndexError'
    return
  x, theirs = data[f'in_{case}'], data[f'out_keep{keep}_{case}']
  ours = np.asarray(compress(x, keep))
  np.testing.assert_array_equal(ours[theirs != 0], theirs[theirs != 0])
  more = np.abs(ours[(ours != 0) & (theirs == 0)])
  threshold = data[f'thr_keep{keep}_{case}']
  assert np.isclose(more.max(), threshold)
  # ... and one below it, where keep * elements is not whole and we round up.
  assert len(more) == 1 + (x.size * keep % 1 > 1e-9)


def test_signed_compression_ranks_by_value():
  x = np.array([[-9.0, 3.0, 1.0], [2.0, -1.0, 0.5]], np.float32)
  expected = [[0, 3, 0], [2, 0, 0]]
  np.testing.assert_array_equal(compress(x, 1 / 3, signed=True), expected)
  expected = [[-9, 3, 0], [0, 0, 0]]
  np.testing.assert_array_equal(compress(x, 1 / 3), expected)


@pytest.mark.parametrize('make', [
    lambda **of: gradient_compression.compress(np.ones((2, 2)), **of),
    gradient_compression.gradient_compression,
])
@pytest.mark.parametrize('wrong', [
    dict(keep=0), dict(keep=1.5), dict(keep=0.5, signed='no'),
])
def test_compression_refuses_what_it_would_misread(make, wrong):
  """A word is true, and of a share of 0 one element was kept."""
  with pytest.raises(ValueError, match=f'{[*wrong][-1]} must be'):
    make(**wrong)


def test_a_residual_is_asked_for_or_not():
  with pytest.raises(ValueError, match='residual must be one of True, False'):
    gradient_compression.gradient_compression(0.5, residual='no')


def test_compression_of_equal_elements_and_of_padding():
  same = np.full((4, 4), 0.3, np.float32)
  assert (np.asarray(compress(same, 0.25)) != 0).sum() == 4
  d, labels = gradients(batch=10, width=4)
  d[6:], labels[6:] = 0, 0
  defense = defenses.REGISTRY['gradient_compression'](0.5)
  found = np.asarray(perturb(defense, KEY, d, labels))
  np.testing.assert_array_equal(found[:6], compress(d[:6], 0.5))
  assert (found != 0).sum() == 12


def test_discrete_sgd_of_fu_et_al():
  data, cases = golden_cases('discrete_sgd_fuchong')
  for case in cases:
    for bins in (4, 6, 12, 18, 24):
      for bound in (0.03, 0.001):
        x, interval = data[f'in_{case}'], 2 * bound / bins
        found = np.asarray(discretize(x, bins, bound))
        expected = data[f'out_bins{bins}_bound{bound}_{case}']
        # Rounding in x / interval decides exact halves; either way is nearest.
        half = np.abs(np.abs(x) / interval % 1 - 0.5) < 1e-4
        half &= case == 'halves'
        np.testing.assert_allclose(found[~half], expected[~half], rtol=1e-5,
                                   atol=1e-9)
        assert (np.abs(found - x) <= interval * 0.501).all()


@pytest.mark.parametrize('bins', [18, 12, 6, 4, 1])
@pytest.mark.parametrize('scale', [1, 1e-25])
def test_discrete_sgd_is_equation_19(bins, scale):
  d, _ = gradients(seed=3, scale=1)
  x = d.astype(float)
  low, high = x.mean() - 2 * x.std(), x.mean() + 2 * x.std()
  ends = np.linspace(low, high, bins + 1)
  expected = ends[np.abs(x[..., None] - ends).argmin(-1)]
  expected[(x < low) | (x > high)] = 0
  assert (expected == 0).any()  # Some element is outside.
  found = discretize((d * scale).astype(np.float32), bins)
  np.testing.assert_allclose(found / np.float32(scale), expected, rtol=1e-4,
                             atol=1e-6)


def test_discrete_sgd_of_equal_elements_of_the_boundary_and_of_padding():
  same = jnp.full((7, 3), 0.1)
  np.testing.assert_array_equal(discretize(same, 4), same)
  zero = jnp.zeros((7, 3))
  np.testing.assert_array_equal(discretize(zero, 4), zero)
  one_of_five = jnp.array([[0.0], [0], [0], [0], [0.7]])  # mean + 2 deviations.
  found = discretize(one_of_five, 4)
  np.testing.assert_allclose(found[4], 0.7, rtol=1e-5)
  d, labels = gradients(batch=10)
  padded = np.concatenate([d, np.zeros_like(d)])
  labels = np.concatenate([labels, np.zeros_like(labels)])
  found = perturb(defenses.REGISTRY['discrete_sgd'](6), KEY, padded, labels)
  expected = discretize(d, 6)
  np.testing.assert_allclose(found[:10], expected, rtol=1e-5, atol=1e-9)


def check_laplace(noise, scale):
  """By the moments (E z, E z^2, E |z|) of the unit Laplace distribution."""
  unit = np.ravel(noise) / scale
  np.testing.assert_allclose(unit.mean(), 0, atol=0.03)
  np.testing.assert_allclose((unit**2).mean(), 2, rtol=0.05)
  np.testing.assert_allclose(np.abs(unit).mean(), 1, rtol=0.02)


def test_discrete_sgd_does_not_hide_that_a_gradient_diverged():
  d = np.ones((3, 2), np.float32)
  for bad in (np.nan, np.inf):
    d[1, 0] = bad
    assert np.isnan(discretize(jnp.asarray(d), 6)).all()


@pytest.mark.parametrize('bins, bound', [(1, None), (2, None), (1, 0.3)])
def test_discrete_sgd_adds_laplace_noise_to_every_element(bins, bound):
  d, labels = gradients(batch=30)
  sent = draws(
      defenses.REGISTRY['discrete_sgd'](bins, bound, 0.02), d, labels, 600
  )
  noise = sent - np.asarray(discretize(d, bins, bound))
  check_apart(noise)
  check_laplace(noise, 0.02)


def test_residue_mask_zeroes_its_share():
  d, labels = gradients()
  sent = draws(defenses.REGISTRY['residue_mask'](0.3), d, labels, 500)
  masked = sent == 0
  np.testing.assert_allclose(masked.mean(0), 0.3, atol=0.1)
  np.testing.assert_allclose(masked.mean(), 0.3, atol=0.01)
  shown = np.broadcast_to(d, sent.shape)[~masked]
  np.testing.assert_array_equal(sent[~masked], shown)
  check_apart(masked)


# PPDL.


def replay(scales, noises, n):
  """Golden draws in call order -> (threshold, query, answer) noise by visit.

  Each draw's scale tells its kind: the query's is twice the threshold's, the
  answer's four times.
  """
  out = np.zeros((3, n))
  visit = 0
  for scale, noise in zip(scales, noises):
    kind = int(round(np.log2(scale / min(scales))))
    if kind == 2:
      out[2, visit - 1] = noise
    else:
      out[kind, visit] = noise
    visit += kind == 1
  return out.astype(np.float32)


@pytest.mark.parametrize('theta', [0.1, 0.25, 0.5, 0.75])
@pytest.mark.parametrize('case', ['b4d3', 'b8d4', 'zero', 'small'])
def test_ppdl_is_fu_et_als(case, theta):
  data = np.load(GOLDEN / 'ppdl_fuchong.npz')
  x, name = data[f'in_{case}'].ravel(), f'theta{theta}_{case}'
  order = data[f'order_{name}']
  count = int(theta * x.size)
  if count == 0:  # Theirs divides the budget among none.
    assert ppdl.released_count(theta, x.size) == 1
    return
  assert ppdl.released_count(theta, x.size) == count
  scales = data[f'noise_scales_{name}']
  expected_scale = ppdl.noise_scale(1.8 * 8 / 9, count)
  np.testing.assert_allclose(scales[0], expected_scale, rtol=1e-6)
  expected_scale = ppdl.noise_scale(1.8 * 2 / 9, count)
  np.testing.assert_allclose(scales.max(), expected_scale, rtol=1e-6)

  noises = replay(scales, data[f'noise_draws_{name}'], x.size)
  answered = np.zeros(x.size, bool)
  answered[order] = noises[2] != 0
  passes = np.abs(x) >= 1e-4
  for theirs, noise, sent in (
      (f'out_noise_{name}', noises, answered),
      (f'out_nonoise_{name}', np.zeros_like(noises), passes),
  ):
    found = release(x, order, count, *noise)
    # Where too few elements pass, theirs sends all others in the clear.
    enough = sent.sum() >= count
    expected = np.where(enough | sent, data[theirs].ravel(), 0)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-10)


def test_ppdl_finds_what_a_loop_over_the_visits_finds():
  rng = np.random.default_rng(5)
  for n in (1, 2, 7, 64, 100):
    x, order = rng.normal(size=n) * 1e-3, rng.permutation(n)
    threshold, query, answer = rng.laplace(size=(3, n)) * 1e-3
    for count in {1, max(n // 3, 1), n}:
      expected, start, sent = np.zeros(n), 0, 0
      for visit, i in enumerate(order):
        seen = min(abs(x[i]), 1e-3) + query[visit]
        if sent < count and seen >= 1e-4 + threshold[start]:
          expected[i] = np.clip(x[i] + answer[visit], -1e-3, 1e-3)
          start, sent = visit + 1, sent + 1
      found = release(
          *(jnp.asarray(a) for a in (x, order, count, threshold, query, answer))
      )
      np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-9)


def test_ppdl_releases_at_most_its_share_of_the_real_rows():
  d, labels = gradients(batch=20, width=5)
  labels[12:] = 0
  sent = draws(defenses.REGISTRY['ppdl'](0.25), d, labels, 50)
  released = (sent != 0).reshape(50, -1).sum(1)
  assert released.max() == np.median(released) == 15
  assert np.abs(sent).max() <= np.float32(1e-3)
  assert (sent[:, :12] != 0).any((0, 2)).all()
  assert not sent[:, 12:].any()


def test_ppdl_takes_arrays_of_numpys():
  d, labels = gradients(batch=4, width=3)
  made = defenses.REGISTRY['ppdl'](0.5)
  plain = jax.jit(lambda: raw(made)(KEY, d, labels))()
  jaxs = perturb(made, KEY, d, labels)
  np.testing.assert_array_equal(plain, jaxs)


def test_ppdl_with_a_scale_has_its_noise_and_the_budgets_proportions():
  """PlugVFL says the noise's scale, Shokri and Shmatikov the budget."""
  d, labels = gradients(batch=30)
  plain = defenses.REGISTRY['ppdl'](1.0, gamma=1e3, tau=0.0, scale=0.02)
  sent = draws(plain, d + 1, labels, 600)  # Far above the threshold.
  assert (sent != 0).all()
  check_laplace(sent - (d + 1), 0.02)
  by_budget = ppdl.noise_scales(7.0, 1.8, 0.5)
  by_scale = ppdl.noise_scales(7.0, scale=by_budget[2])
  np.testing.assert_allclose(by_scale, by_budget, rtol=1e-6)
  np.testing.assert_allclose(by_budget[0], 2 * 7 * 0.5 / (8 / 9 * 1.8))


# All of them.


def test_a_word_for_which_a_number_stands_is_the_default_and_its_own_number():
  """Of each argument that a defense says so of, whichever they are."""
  for name, method in defenses.REGISTRY.items():
    given = method.strengths[:1]
    for argument, words in method.words.items():
      assert inspect.signature(method).parameters[argument].default == words[0]
      for number in range(len(words)):
        method(*given, **{argument: number})
      with pytest.raises(ValueError, match=f'{name}: {argument}'):
        method(*given, **{argument: len(words)})


def test_a_registered_defense_is_its_factory_with_what_sweeps_ask():
  method = defenses.REGISTRY['marvell']
  own = inspect.signature(defenses.marvell.marvell)
  assert inspect.signature(method) == own
  assert method.binary and method.strengths == (12, 8, 4, 2)
  assert inspect.signature(defenses.Method).parameters.keys() == {
      'factory', 'strengths', 'binary', 'words', 'sized', 'mixes',
      'keeps_shapes', 'light',
  }


@pytest.mark.parametrize('name, arguments, message', [
    ('dp_laplace', (-1.0,), 'scale must be a number of at least 0; got -1.0'),
    ('dp_laplace', (1.0, 0.0), 'clip_norm must be a number above 0'),
    ('dp_gaussian', (float('nan'),), 'std must be'),
    ('dp_gaussian', (0.1, 0.2, 'rows'), "clip must be one of 'sample', 'b"),
    ('iso', (-2,), 'amplifier must be'),
    ('iso', ('much',), "amplifier must be a number .* got 'much'"),
    ('marvell', (-1,), 'power must be'),
    ('gradient_compression', (0.0,), r'keep must be a number in \(0, 1\]'),
    ('gradient_compression', (1.5,), 'keep must be'),
    ('discrete_sgd', (0,), 'bins must be'),
    ('discrete_sgd', (4, 0.0), 'bound must be'),
    ('discrete_sgd', (4, None, -1.0), 'noise must be'),
    ('ppdl', (0.0,), 'share must be'),
    ('ppdl', (0.5, 1.8, 1e-3, 1e-4, 1.0, 0.0), 'scale must be'),
    ('ppdl', (0.5, 0.0), 'epsilon must be'),
    ('residue_mask', (1.1,), r'ratio must be a number in \[0, 1\]'),
])
def test_strengths_out_of_range(name, arguments, message):
  with pytest.raises(ValueError, match=message):
    defenses.REGISTRY[name](*arguments)


def test_checks_look_at_every_entry_and_let_traced_values_pass():
  check.at_least('x', np.array([0.0, 2.0]), 0, many=True)
  check.inside('x', 1, 0, 1)
  check.inside('x', jnp.bfloat16(0.5), 0, 1)
  for bad in (np.array([0.0, -2.0]), True, None, [[1], [-1]], np.inf):
    with pytest.raises(ValueError, match='x must be .* of at least'):
      check.at_least('x', bad, 0, many=True)
  with pytest.raises(ValueError, match='x must be'):
    check.inside('x', 1, 0, 1, open_high=True)
  traced = jax.jit(lambda x: check.at_least('x', x, 0) or x)
  assert traced(-1.0) == -1
