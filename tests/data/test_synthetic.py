"""The generator's Bayes accuracy, against closed forms and a fitted model."""
import tracemalloc

import numpy as np
import pytest
from scipy import stats
from sklearn import linear_model, metrics

from vfljax import data
from vfljax.data import files, split, synthetic


@pytest.mark.parametrize('signal', [(0.3,), (1.0, 0.5), (2.0, 0.0, 1.0)])
def test_binary_closed_form(signal):
  s = np.sqrt(np.sum(np.square(signal)))
  assert synthetic.bayes_accuracy(signal) == pytest.approx(
      stats.norm.cdf(s), abs=1e-12
  )
  # Unequal classes: the likelihood-ratio test's threshold moves by t.
  p = 1 / (1 + 4)  # The last class, with imbalance 4.
  t = np.log((1 - p) / p) / (2 * s)
  want = (1 - p) * stats.norm.cdf(s + t) + p * stats.norm.cdf(s - t)
  got = synthetic.bayes_accuracy(signal, imbalance=4)
  assert got == pytest.approx(want, abs=1e-12)


def test_without_signal_the_best_is_the_most_frequent_class():
  assert synthetic.bayes_accuracy((0.0, 0.0)) == 0.5
  assert synthetic.bayes_accuracy((0.0,), 4) == 0.25
  assert synthetic.bayes_accuracy((0.0,), imbalance=9) == pytest.approx(0.9)
  assert synthetic.bayes_accuracy((1e-3,), imbalance=9) == pytest.approx(0.9)


def test_simplex_is_regular():
  for classes in (2, 3, 7):
    corners = synthetic.simplex(classes)
    want = np.full((classes, classes), -1 / (classes - 1))
    np.fill_diagonal(want, 1)
    np.testing.assert_allclose(corners @ corners.T, want, atol=1e-12)


@pytest.mark.parametrize('classes, imbalance', [(2, 1), (2, 5), (4, 1), (3, 6)])
def test_bayes_accuracy_is_what_the_best_classifier_gets(classes, imbalance):
  # The posterior of Gaussian classes is a logistic regression: with 30 000
  # samples it is as good as Bayes's, up to the error of counting (0.3 %).
  signal = (1.0, 0.5)
  table = data.load(
      'synthetic', samples=60_000, columns=4, signal=signal, classes=classes,
      imbalance=imbalance, seed=1,
  )
  parts = split.apply(table, split.Spec(2))
  x, y = np.concatenate(parts, 1), table.labels
  assert x.shape == (60_000, 8)
  for own, known in ((parts[0], (1.0,)), (parts[1], (0.5,)), (x, signal)):
    model = linear_model.LogisticRegression().fit(own[::2], y[::2])
    got = model.score(own[1::2], y[1::2])
    want = synthetic.bayes_accuracy(known, classes, imbalance)
    assert got == pytest.approx(want, abs=0.01)
    if classes == 2:
      auc = metrics.roc_auc_score(
          y[1::2], model.decision_function(own[1::2])
      )
      assert auc == pytest.approx(synthetic.bayes_auc(known), abs=0.01)


def test_class_frequencies_and_determinism():
  p = synthetic.priors(3, 4.0)
  np.testing.assert_allclose(p, np.array([4, 2, 1]) / 7)
  options = dict(samples=20_000, classes=3, imbalance=4.0)
  a, b = (data.load('synthetic', **options) for _ in range(2))
  np.testing.assert_allclose(np.bincount(a.labels) / 20_000, p, atol=0.015)
  np.testing.assert_array_equal(a.features, b.features)
  c = data.load('synthetic', **options, seed=1)
  assert not np.array_equal(a.features, c.features)
  assert a.names[0] == 'p0_x0' and a.names[-1] == 'p1_x4'


@pytest.mark.parametrize('options, message', [
    (dict(path='x'), 'reads no file'),
    (dict(samples=1), 'samples must be at least 2'),
    (dict(columns=1, classes=4), '4 classes need at least 3 columns'),
    (dict(signal=()), 'one number >= 0 a party'),
    (dict(signal=(1, -1)), 'one number >= 0 a party'),
    (dict(signal=(1, np.nan)), 'signal must be a finite number'),
    (dict(classes=1), 'at least 2 classes'),
    (dict(imbalance=0), 'imbalance above 0'),
])
def test_synthetic_refuses(options, message):
  with pytest.raises(ValueError, match=message):
    data.load('synthetic', **options)


@pytest.mark.parametrize('columns, parties', [(1, 1), (1, 5), (20, 1), (5, 2)])
def test_what_does_not_fit_is_refused_before_it_is_drawn(
    columns, parties, monkeypatch
):
  signal = (1.0,) * parties
  load = lambda n: data.load(
      'synthetic', samples=n, columns=columns, signal=signal
  )
  tracemalloc.start()  # NumPy tells it what it takes.
  try:
    load(100_000)
    _, peak = tracemalloc.get_traced_memory()
    monkeypatch.setattr(files, 'memory', lambda: peak)
    load(90_000)
    tracemalloc.reset_peak()
    for samples in (110_000, 2**31 - 1):
      with pytest.raises(ValueError, match='so many samples, .* would take'):
        load(samples)
    assert tracemalloc.get_traced_memory()[1] < peak / 2
  finally:
    tracemalloc.stop()
