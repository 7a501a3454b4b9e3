"""The benchmark of layers' gradients, and what its record has to say."""
import json
from pathlib import Path

import numpy as np

from experiments.bench import product as bench
from vfljax.nets import product

RECORD = Path(bench.__file__).with_name('product.json')


def test_both_sides_compute_the_gradient(monkeypatch):
  # What other tests have traced, stays; here are no networks, traced once.
  monkeypatch.setattr(bench.jax, 'clear_caches', lambda: None)
  sums = []

  def make():
    call = bench.gradient(300, 60, 3)
    sums.append(np.asarray(call()))
    return call

  found = bench.both(make, bench.LOOPS, 1)
  assert set(found) == {'usual', 'ours', 'ratio', 'same'}
  rng = np.random.default_rng(0)
  x, d = (rng.normal(size=(300, s)).astype('f') for s in (60, 3))
  usual, ours = sums
  np.testing.assert_allclose(usual, bench.LOOPS * x.T @ d, rtol=1e-3, atol=.1)
  np.testing.assert_allclose(ours, usual, rtol=1e-3, atol=0.1)


def test_the_usual_side_has_no_way_of_its_own():
  x, w = np.ones((300, 60), np.float32), np.ones((60, 3), np.float32)
  assert product._way(x, w) == 'turned'
  with bench.USUAL:
    assert not product._way(x, w)


def test_what_is_computed_otherwise_is_quicker_in_the_record():
  record = json.loads(RECORD.read_text())
  shapes = [(g['rows'], g['k'], g['n']) for g in record['gradients']]
  assert shapes == list(bench.SHAPES)
  assert all(g['ratio'] > 1 for g in record['gradients'])
  assert record['trainings']['mnist']['same']
  assert all(t['ratio'] > 1 for t in record['trainings'].values())
