"""Metrics against scikit-learn, scikit-image, dcor and SciPy."""
import pathlib
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import sklearn.metrics
from scipy import stats
from skimage import metrics as images

from vfljax import likeness, measure, metrics

GOLDEN = pathlib.Path(__file__).parent / 'golden'
roc_auc = jax.jit(metrics.roc_auc)
leak_auc, psnr = jax.jit(metrics.leak_auc), jax.jit(metrics.psnr)
accuracy = jax.jit(metrics.accuracy)
top_k = jax.jit(metrics.top_k, static_argnums=2)
dcor = jax.jit(metrics.distance_correlation)
dcor_and_gradient = jax.jit(jax.value_and_grad(metrics.distance_correlation))
ssim = jax.jit(
    metrics.ssim,
    static_argnames=('window', 'gaussian', 'sample_covariance', 'data_range'),
)


def ranked(seed, decimals, n=400):
  """Scores with ties, labels and 0/1 weights."""
  rng = np.random.default_rng(seed)
  labels = (rng.random(n) < 0.2).astype(np.float32)
  scores = (rng.normal(size=n) + labels).round(decimals).astype(np.float32)
  return scores, labels, (rng.random(n) < 0.7).astype(np.float32)


@pytest.mark.parametrize('decimals', [8, 1, 0])
def test_roc_auc_is_sklearns_with_and_without_ties(decimals):
  for seed in range(5):
    scores, labels, weights = ranked(seed, decimals)
    expected = sklearn.metrics.roc_auc_score(labels, scores)
    np.testing.assert_allclose(roc_auc(scores, labels), expected, rtol=1e-6)
    left_out = sklearn.metrics.roc_auc_score(
        labels, scores, sample_weight=weights
    )
    found = roc_auc(scores, labels, weights)
    np.testing.assert_allclose(found, left_out, rtol=1e-6)


def test_roc_auc_of_special_floats():
  scores = np.array([-np.inf, -0.0, 0.0, 1e-30, np.inf, -1e30, 3, -2, 0])
  labels = np.array([0, 1, 0, 1, 1, 0, 0, 1, 1])
  ranks = stats.rankdata(scores)  # scikit-learn refuses infinities.
  u = ranks[labels == 1].sum() - 5 * 6 / 2
  found = roc_auc(scores.astype(np.float32), labels)
  np.testing.assert_allclose(found, u / 20, rtol=1e-6)


def test_roc_auc_is_exact_for_many_samples():
  n = 150_000
  rng = np.random.default_rng(0)
  labels = np.arange(n) % 2
  scores = (rng.normal(size=n) + 0.5 * labels).astype(np.float32)
  expected = sklearn.metrics.roc_auc_score(labels, scores)
  np.testing.assert_allclose(roc_auc(scores, labels), expected, rtol=3e-7)


@pytest.mark.parametrize('share', [0.5, 0.9])
def test_roc_auc_of_millions_of_samples_does_not_overflow(share):
  n = 2_500_000  # Of half of them low parts, 2047 on average, pass 2^31.
  rng = np.random.default_rng(0)
  labels = rng.random(n) < share
  scores = (rng.normal(size=n) + labels).astype(np.float32)
  expected = sklearn.metrics.roc_auc_score(labels, scores)
  np.testing.assert_allclose(roc_auc(scores, labels), expected, rtol=1e-6)
  # Ties of all with all are the largest sums.
  same = roc_auc(np.zeros(n, np.float32), labels)
  np.testing.assert_allclose(same, 0.5, rtol=1e-6)


@pytest.mark.parametrize('label', [0, 1])
def test_roc_auc_of_one_class_is_nan(label):
  labels, scores = np.full(5, label), np.arange(5, dtype=np.float32)
  assert np.isnan(roc_auc(scores, labels))
  assert np.isnan(leak_auc(scores, labels))
  mixed, weights = np.array([0, 1, 1, 0]), np.array([1, 0, 0, 1])
  weights = weights if label == 0 else 1 - weights
  assert np.isnan(roc_auc(scores[:4], mixed, weights))


@pytest.mark.parametrize('labels, weights, said', [
    ([1, 2, 2, 1], None, 'here they are 1 and 2: type labels == 2'),
    ([0, 1, 1, 0], [0.1, 3.0, 1.0, 1.0], 'weights must be 0 or 1'),
])
def test_roc_auc_misreads_neither_labels_nor_weights(labels, weights, said):
  scores = np.array([0.1, 0.2, 0.4, 0.3], np.float32)
  weights = weights and np.array(weights)
  with pytest.raises(ValueError, match=said):
    metrics.roc_auc(scores, np.array(labels), weights)


def test_lists_and_columns_of_data_frames_are_measured():
  scores, labels = [0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]
  assert metrics.roc_auc(scores, labels) == 0.75
  odd = pd.Series(labels, index=[3, 1, 0, 2])  # Rows stay in their order.
  assert metrics.roc_auc(pd.Series(scores), odd, [1, 1, 1, 1]) == 0.75
  logits = [[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.3, 0.7]]
  for given in logits, pd.DataFrame(logits):
    assert metrics.accuracy(given, odd) == 0.75
    assert metrics.top_k(given, labels, 1, [0, 1, 1, 1]) == np.float32(2 / 3)


def test_roc_auc_of_nan_scores():
  scores = np.array([0.1, np.nan, 0.3, 0.2], np.float32)
  labels = np.array([0, 1, 1, 0])
  assert np.isnan(roc_auc(scores, labels))
  assert roc_auc(scores, labels, np.array([1, 0, 1, 1])) == 1


def test_roc_auc_under_vmap_and_in_64_bits():
  scores, labels, weights = zip(*[ranked(s, 1) for s in range(3)])
  stacked = map(np.stack, (scores, labels, weights))
  found = jax.jit(jax.vmap(metrics.roc_auc))(*stacked)
  alone = [roc_auc(*x) for x in zip(scores, labels, weights)]
  np.testing.assert_array_equal(found, alone)
  with jax.enable_x64(True):
    close = 1 + np.arange(4) * 1e-12  # Equal in 32 bits.
    area = roc_auc(jnp.asarray(close), jnp.array([0, 0, 1, 1]))
    assert area.dtype == jnp.float64 and area == 1


def test_leak_auc_folds():
  scores, labels, _ = ranked(0, 8)
  area = sklearn.metrics.roc_auc_score(labels, scores)
  for sign in (1, -1):
    found = leak_auc(sign * scores, labels)
    np.testing.assert_allclose(found, max(area, 1 - area), rtol=1e-6)


def test_what_has_diverged_has_no_accuracy():
  """`argmax` of NaN is the first class: 0.75 here, from nothing learned."""
  labels = np.array([0, 0, 0, 1])
  gone = np.full((4, 2), np.nan, np.float32)
  one = np.eye(2, dtype=np.float32)[labels]
  one[3, 0] = np.nan
  unseen = np.array([1, 1, 1, 0], np.float32)
  for found in (accuracy, lambda *x: top_k(*x[:2], 1, *x[2:])):
    assert np.isnan(found(gone, labels)) and np.isnan(found(one, labels))
    assert np.isnan(found(gone, labels, unseen))
    assert found(one, labels, unseen) == 1  # It is not counted.
  assert accuracy(np.array([[-np.inf, 0]], np.float32), labels[3:]) == 1


@pytest.mark.parametrize('dtype', [jnp.float16, jnp.bfloat16])
def test_a_model_in_half_precision_is_measured_in_full(dtype):
  rng = np.random.default_rng(0)
  classes = rng.integers(2, size=100_000)
  labels = jnp.eye(2, dtype=dtype)[classes]
  logits = jnp.asarray(rng.normal(size=(100_000, 2)) + labels, dtype)
  found = jax.jit(measure.of_model)(logits, labels)
  read = np.asarray(logits, np.float64)
  chance = 1 / (1 + np.exp(read[:, 0] - read[:, 1]))
  expected = dict(
      accuracy=sklearn.metrics.accuracy_score(classes, read.argmax(1)),
      loss=sklearn.metrics.log_loss(classes, chance),
      auc=sklearn.metrics.roc_auc_score(classes, read[:, 1] - read[:, 0]),
  )
  for name, value in expected.items():
    np.testing.assert_allclose(found[name], value, rtol=1e-4)


def test_the_best_stage_is_one_that_has_not_diverged():
  right = np.eye(2, dtype=np.float32)[[0, 1, 1]]
  stages = np.stack([right, 1 - right, np.full_like(right, np.nan)])
  found = jax.jit(measure.of_completion)(stages, right)
  assert found['accuracy_best'] == found['auc_best'] == 1
  assert np.isnan(found['accuracy_last']) and np.isnan(found['auc_last'])
  gone = jax.jit(measure.of_completion)(stages[2:], right)
  assert np.isnan(gone['accuracy_best']) and np.isnan(gone['auc_best'])


def test_accuracy_and_top_k_are_sklearns():
  rng = np.random.default_rng(1)
  logits = rng.normal(size=(200, 10)).astype(np.float32)
  labels = rng.integers(10, size=200)
  weights = rng.random(200).astype(np.float32)
  onehot = np.eye(10, dtype=np.float32)[labels]
  guesses = logits.argmax(1)
  for weight in (None, weights):
    expected = sklearn.metrics.accuracy_score(
        labels, guesses, sample_weight=weight
    )
    for given in (labels, onehot):
      found = accuracy(logits, given, weight)
      np.testing.assert_allclose(found, expected, rtol=1e-5)
    for k in (1, 4, 10):
      expected = sklearn.metrics.top_k_accuracy_score(
          labels, logits, k=k, sample_weight=weight, labels=np.arange(10)
      ) if k < 10 else 1.0
      found = top_k(logits, onehot, k, weight)
      np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_samples_may_have_two_axes():
  """As the words of sentences; each has its own weight."""
  labels = np.array([[0, 2, 1], [3, 0, 2]])
  logits = np.eye(4, dtype=np.float32)[labels]
  weights = np.array([[1, 0, 1], [1, 2, 0]], np.float32)
  logits[0, 2] = logits[1, 2] = [1, 0, 0, 0]  # Wrong; the second for nothing.
  np.testing.assert_allclose(accuracy(logits, labels, weights), 4 / 5)
  with pytest.raises(ValueError, match=r'one a sample, \(2, 3\); got \(2,\)'):
    accuracy(logits, labels, weights[:, 0])


def test_constant_logits_earn_nothing():
  labels, logits = np.eye(4, dtype=np.float32), np.zeros((4, 4), np.float32)
  assert accuracy(logits, labels) == 0.25
  assert top_k(logits, labels, 2) == 0.5
  assert top_k(logits, labels, 9) == 1
  with pytest.raises(ValueError, match='k must be an integer of at least 1'):
    top_k(logits, labels, 0)


def pictures(shape):
  rng = np.random.default_rng(2)
  x = rng.random(shape)
  noisy = np.clip(x + 0.1 * rng.normal(size=shape), 0, 1)
  return x.astype(np.float32), noisy.astype(np.float32)


@pytest.mark.parametrize('shape', [(14, 17), (12, 16, 3)])
@pytest.mark.parametrize('kind', ['uniform', 'wide', 'gaussian', 'wang'])
def test_ssim_is_skimages(shape, kind):
  ours, theirs = dict(
      uniform=({}, {}),
      wide=(dict(window=9, data_range=2.0), dict(win_size=9, data_range=2.0)),
      gaussian=(dict(gaussian=True), dict(gaussian_weights=True)),
      wang=(
          dict(gaussian=True, sample_covariance=False),
          dict(gaussian_weights=True, use_sample_covariance=False),
      ),
  )[kind]
  theirs = dict(data_range=1.0) | theirs
  x, y = pictures(shape)
  axis = 2 if len(shape) == 3 else None
  for other in (y, 1 - x):
    expected = images.structural_similarity(
        x.astype(float), other.astype(float), channel_axis=axis, **theirs
    )
    found = ssim(x, other, **ours)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_images_in_a_batch_and_their_psnr():
  x, y = pictures((5, 9, 8, 1))
  for ours, theirs in (
      (ssim, images.structural_similarity),
      (psnr, images.peak_signal_noise_ratio),
  ):
    expected = [theirs(a[..., 0], b[..., 0], data_range=1.0)
                for a, b in zip(x, y)]
    found = ours(x, y)
    assert found.shape == (5,)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
  assert np.isinf(psnr(x[0], x[0]))


def test_images_that_do_not_fit():
  with pytest.raises(ValueError, match='one shape'):
    metrics.ssim(jnp.zeros((8, 8)), jnp.zeros((8, 9)))
  with pytest.raises(ValueError, match='fit into the image'):
    metrics.ssim(jnp.zeros((6, 8)), jnp.zeros((6, 8)))
  with pytest.raises(ValueError, match='odd'):
    metrics.ssim(jnp.zeros((9, 9)), jnp.zeros((9, 9)), window=6)


@pytest.mark.parametrize('metric', [metrics.ssim, metrics.psnr])
def test_images_beyond_their_range_are_refused(metric):
  """Those of 8 bits would look alike, or far apart."""
  x = np.arange(64, dtype='uint8').reshape(8, 8)
  with pytest.raises(ValueError, match='255 in 8 bits, 2 from -1'):
    metric(x, x + 1)
  assert np.isfinite(metric(x, x + 1, 255.0))
  assert np.isfinite(metric(x, x / 64))  # A guess may be anything.


CASES = [
    'n32', 'indep', 'labels', 'identical', 'n2', 'n1', 'const_x', 'const_y',
    'one_class', 'tiny', 'dupes',
]


@pytest.mark.parametrize('case', CASES)
def test_distance_correlation_is_dcors(case):
  golden = np.load(GOLDEN / 'distance_correlation.npz')
  x, y = golden[f'{case}_x'], golden[f'{case}_y']
  expected = golden[f'{case}_dcor_distance_correlation']
  found, gradient = dcor_and_gradient(
      x.astype(np.float32), y.astype(np.float32)
  )
  np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-7)
  assert np.isfinite(gradient).all()


def test_distance_correlation_and_its_gradient_in_64_bits():
  golden = np.load(GOLDEN / 'distance_correlation.npz')
  with jax.enable_x64(True):
    x, y = jnp.asarray(golden['n32_x']), jnp.asarray(golden['n32_y'])
    found, gradient = dcor_and_gradient(x, y)
  expected = golden['n32_dcor_distance_correlation']
  np.testing.assert_allclose(found, expected, rtol=1e-9)
  expected = golden['n32_vflair_grad_x_float64']
  np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize('clusters', [0.0, 1.0])
def test_distances_of_many_rows_are_those_of_few(clusters, monkeypatch):
  """A CPU computes them row by row; clusters make differences small."""
  rng = np.random.default_rng(5)
  x = (0.01**clusters * rng.normal(size=(40, 6))).astype(np.float32)
  x[:20] += clusters
  y, real = np.eye(2, dtype=np.float32)[rng.integers(0, 2, 40)], np.ones(40)
  real[3:5], x[7] = 0, x[8]
  given = x, y, real.astype(np.float32)
  found = []
  for most in (40, 39):
    monkeypatch.setattr(metrics, 'AT_ONCE', most)
    of = lambda *given: metrics.distance_correlation(*given)  # Traced anew.
    both = jax.vmap(jax.value_and_grad(of), (0, None, None))
    program = jax.jit(both).lower(np.stack([x, 2 * x]), *given[1:])
    assert ('while' in program.as_text()) == (most < 40)
    found.append(program.compile()(np.stack([x, 2 * x]), *given[1:]))
  (one, slope), (other, rows) = found
  np.testing.assert_allclose(one, other, rtol=2e-6)
  np.testing.assert_allclose(rows, slope, rtol=1e-5, atol=1e-6)


def test_distance_correlation_ignores_scale_and_shape():
  rng = np.random.default_rng(3)
  x = rng.normal(size=(20, 2, 3)).astype(np.float32)
  y = rng.normal(size=20).astype(np.float32)
  one = dcor(x, y)
  assert 0 < one < 1
  for scale in (1e-25, 1e25):
    other = dcor(x * scale, y[:, None])
    np.testing.assert_allclose(other, one, rtol=1e-5)
  with pytest.raises(ValueError, match='20 samples against 19'):
    metrics.distance_correlation(x, y[1:])


def test_distance_correlation_leaves_out_samples_without_weight():
  x, y = np.random.default_rng(3).normal(size=(2, 20, 3)).astype(np.float32)
  some = (np.arange(20) % 3 > 0).astype(np.float32)
  left = some > 0
  np.testing.assert_allclose(dcor(x, y, some), dcor(x[left], y[left]), 1e-5)
  assert abs(dcor(x, y) - dcor(x, y, some)) > 0.01


def test_mean_interval_is_students():
  values = np.random.default_rng(4).normal(size=(7, 2))
  mean, half = metrics.mean_interval(values)
  low, high = stats.t.interval(
      0.95, 6, loc=values.mean(0), scale=stats.sem(values, axis=0)
  )
  np.testing.assert_allclose(mean, values.mean(0))
  np.testing.assert_allclose(half, (high - low) / 2)
  mean, half = metrics.mean_interval([1.0, 3.0])  # t(1, .975) = 12.7062.
  assert mean == 2 and abs(half - 12.7062) < 1e-4


def test_mean_interval_of_one_and_of_no_values():
  mean, half = metrics.mean_interval([0.5])
  assert mean == 0.5 and np.isnan(half)
  with warnings.catch_warnings():
    warnings.simplefilter('error')
    assert np.isnan(metrics.mean_interval([1.0, np.nan])).all()
  with pytest.raises(ValueError, match='no values'):
    metrics.mean_interval([])


def test_metrics_need_no_implicit_casts():
  """By tracing alone, on labels and weights of every usual kind."""
  x = jnp.zeros((6, 2))
  image = jnp.zeros((2, 9, 9, 1))
  with (
      jax.numpy_dtype_promotion('strict'), jax.numpy_rank_promotion('raise'),
  ):
    for kind in bool, jnp.int32, jnp.float32:
      some = jnp.zeros(6, kind)
      jax.eval_shape(metrics.leak_auc, x[:, 0], some, some)
    for weights in None, jnp.zeros(6):
      jax.eval_shape(metrics.accuracy, x, x, weights)
      jax.eval_shape(lambda w: metrics.top_k(x, x, 1, w), weights)
      jax.eval_shape(metrics.distance_correlation, x, x, weights)
    jax.eval_shape(metrics.ssim, image, image)
    jax.eval_shape(metrics.psnr, image, image)
    jax.eval_shape(likeness.finds_its_own, image, image)


def test_a_second_call_outside_of_jit_traces_no_loop(monkeypatch):
  """Each that is traced is compiled, too, and its program is kept."""
  scores, labels, _ = ranked(0, 1)
  x = np.random.default_rng(0).normal(size=(metrics.AT_ONCE + 1, 2))
  calls = [
      lambda i: metrics.leak_auc(scores + i, labels),
      lambda i: metrics.distance_correlation(x + i, x**2),
  ]
  known = [call(0) for call in calls]
  monkeypatch.setattr(jax.lax, 'fori_loop', None)
  monkeypatch.setattr(jax.lax, 'map', None)
  again = [call(1) for call in calls]
  np.testing.assert_allclose(again, known, rtol=1e-5)


def test_roc_auc_of_scores_that_a_cpu_takes_for_zero():
  """As another program's probabilities in 32 bits may be."""
  scores, labels, _ = ranked(0, 1)
  tiny = (scores / np.abs(scores).max()).astype(np.float32) * np.float32(1e-39)
  expected = sklearn.metrics.roc_auc_score(labels, tiny.astype(np.float64))
  np.testing.assert_allclose(roc_auc(tiny, labels), expected, rtol=1e-6)


@pytest.mark.parametrize('fn', [
    metrics.accuracy, lambda u, y, weights: metrics.top_k(u, y, 1, weights),
], ids=['accuracy', 'top_k'])
@pytest.mark.parametrize('columns, labels, weights, said', [
    (1, [[1.0], [0.0]], None, r'two classes or more; got \(2, 1\)'),
    (1, [0, 0], None, r'two classes or more; got \(2, 1\)'),
    (2, [0, 1], [[1.0], [0.0]], r'one a sample, \(2,\); got \(2, 1\)'),
    (2, [0, 1], [1.0], r'one a sample, \(2,\); got \(1,\)'),
    (None, [0, 1], None, r'must be \[samples, classes\]; got \(2,\)'),
])
def test_accuracy_stretches_no_column(fn, columns, labels, weights, said):
  logits = np.ones((2, columns) if columns else 2)  # Else class numbers.
  weights = weights and np.array(weights)
  with pytest.raises(ValueError, match=said):
    fn(logits, np.array(labels), weights)


@pytest.mark.parametrize('share', [
    metrics.accuracy, lambda *given: metrics.top_k(*given[:2], 1, *given[2:])
])
def test_a_row_of_padding_is_no_sample_of_the_first_class(share):
  """Its labels are zeros, of which the largest is the first."""
  logits = np.eye(3, dtype='f4')[[0, 1, 2, 0, 0]]
  labels = np.eye(3, dtype='f4')[[0, 1, 0, 0, 0]] * [[1], [1], [1], [0], [0]]
  np.testing.assert_allclose(share(logits, labels), 2 / 3, rtol=1e-6)
  np.testing.assert_allclose(jax.jit(share)(logits, labels), 2 / 3, rtol=1e-6)
  assert share(logits, labels, np.ones(5)) == np.float32(0.8)  # As was said.
  assert np.isnan(share(logits, 0 * labels))
  logits[3] = np.nan  # Of a row that does not count.
  np.testing.assert_allclose(share(logits, labels), 2 / 3, rtol=1e-6)
  assert np.isnan(share(logits, labels.argmax(-1)))
