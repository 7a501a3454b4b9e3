"""Where there is nothing to go by: no label, no difference, no number.

What follows says so, or leaves it out; it is no NaN for good, no class that
`argmax` makes of NaN, and no search that diverged for the best one.
"""
from functools import partial
import sys
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from vfljax import (
    algorithms, attacks, backdoor, descent, measure, nets, numerics, protocol,
    tuning,
)
from vfljax.attacks.cafe import FirstLinear, Recovery
from vfljax.attacks.gradient_inversion import Search
from vfljax.attacks.mixmatch import MixMatch
from vfljax.attacks.model_completion import model_completion, standardized
from vfljax.attacks.residual_scoring import residuals
from vfljax.completion import Schedule
from vfljax.defense import Defense, each
from vfljax.defenses import rvfr
from vfljax.measure import Guessed
from vfljax.mpc import bilinear
from vfljax.report import reading
from vfljax.report.reading import Results
from vfljax.runner.compiled import replay
from vfljax.runner.experiment import division
from vfljax.types import Batch, Net
from vfljax.views import ModelGradients, TrainedBottom, WhiteBox

KEY = jax.random.key(0)
KEYS = jax.random.split(KEY)
NAN = np.nan
ECHO = Net(lambda key, u: (), lambda p, u: u)
ROWS = jnp.asarray(np.random.default_rng(0).normal(size=(9, 4)), jnp.float32)


def test_the_least_is_no_nan():
  assert descent.least(jnp.array([NAN, 2.0, 1.0, NAN, 3.0])) == 2
  assert descent.least(jnp.array([jnp.inf, NAN, 4.0])) == 2
  assert 0 <= descent.least(jnp.array([NAN, NAN])) < 2


def test_a_median_of_nothing_is_no_nan_on_the_way():
  """Outside of `jit`, where `jax_debug_nans` looks at every operation."""
  with jax.debug_nans(True), jax.disable_jit():
    found = numerics.masked_median(ROWS, jnp.zeros(9, bool))
  np.testing.assert_array_equal(found, 0)
  np.testing.assert_array_equal(
      numerics.masked_median(ROWS, jnp.arange(9) < 4),
      np.median(ROWS[:4], axis=0),
  )


def far_of(x):
  """Of what was drawn: a number, and NaN for half of all draws."""
  return jnp.where(x > 0, NAN, -x)


def test_a_search_for_labels_that_diverged_is_not_believed(monkeypatch):
  def invert(bottom, weights, features, gradients, start, *rest):
    return start, far_of(start.labels[0, 0])

  monkeypatch.setattr(sys.modules[Search.__module__], 'invert', invert)
  net = nets.mlp(2)
  weights = net.init(KEY, ROWS)
  view = ModelGradients(ROWS, weights, weights, jnp.ones(9))
  attack = attacks.gradient_inversion(net, 2, Search(1, restarts=8))
  guesses = jax.jit(jax.vmap(attack.run, (0, None)))(KEYS, view)
  assert (guesses[:, 0, 0] <= 0).all()


def test_a_search_for_samples_that_diverged_is_not_believed(monkeypatch):
  def recover(view, layer, start, recovery):
    return start, far_of(start.samples[0, 0] - 0.5)

  monkeypatch.setattr(sys.modules[Recovery.__module__], 'recover', recover)
  layer = FirstLinear(
      lambda w, x: (x, x @ w['bottom']), lambda g: (g['bottom'], jnp.ones(2))
  )
  weights, seen = (dict(bottom=jnp.ones(s)) for s in ((4, 2), (2, 4, 2)))
  view = WhiteBox(weights, seen, jnp.zeros((2, 3), jnp.int32), 0 * ROWS)
  attack = attacks.cafe(layer, Recovery(1, restarts=8))
  guesses = jax.jit(jax.vmap(attack.run, (0, None)))(KEYS, view)
  assert (guesses[:, 0, 0] <= 0.5).all()


def test_a_strength_that_diverges_is_not_chosen():
  labels = jnp.eye(2)[jnp.arange(40) % 2]
  x = labels[:, 1:] + jax.random.normal(KEY, (40, 2))
  vfl = algorithms.vlr(2, 2)

  def make(share):
    share = jnp.where(share < 0, NAN, share)
    return Defense(gradient=each(lambda key, d, labels: d * share))

  choose = partial(
      tuning.least_ratio, KEY, make, vfl=vfl, txs=(optax.sgd(0.1),) * 2,
      data=Batch((x, x), labels), attacks=dict(norm=attacks.norm_scoring()),
      trial=tuning.Trial(0.5, repeats=2, epochs=2, batch_size=20),
  )
  found = choose((-1.0, 1.0))
  assert np.isnan(found.ratios[0]) and found.strength == 1
  with pytest.raises(ValueError, match='no strength has a ratio'):
    choose((-1.0, -2.0))


def test_of_scores_that_are_no_numbers_no_class_is_matched():
  labels = jnp.eye(2)[jnp.array([0, 0, 0, 1])]
  found = jax.jit(
      lambda scores: replay._measured(Guessed(scores, labels, jnp.ones(4)))
  )
  one = labels.at[3, 0].set(NAN)
  assert np.isnan(found(one)['matched']) and np.isnan(found(one)['accuracy'])
  assert found(1 - labels)['matched'] == 1 and found(0 * labels)[
      'matched'] == 0.75


def test_a_network_that_diverged_takes_nothing_for_the_target():
  labels = jnp.eye(3)[jnp.array([0, 1, 1, 2])]
  for target in range(3):  # `argmax` makes the first class of NaN.
    aimed = backdoor.Backdoor(protocol.HONEST, protocol.HONEST, target)
    found = backdoor.measured(aimed, labels, labels * NAN, labels)
    assert np.isnan(found['backdoor_accuracy']) and np.isnan(found['drop'])
    assert found['untriggered'] == 0


def test_a_row_without_a_label_is_no_sample_of_another_class():
  labels = jnp.eye(3)[jnp.array([0, 1, 1, 2])].at[0].set(0)
  aimed = backdoor.Backdoor(protocol.HONEST, protocol.HONEST, 2)
  found = backdoor.measured(
      aimed, labels, labels[jnp.array([3, 3, 0, 3])], labels
  )
  assert found['backdoor_accuracy'] == 0.5


@pytest.mark.parametrize('classes', [2, 3])
def test_a_model_is_measured_by_the_rows_that_have_a_label(classes):
  logits = jnp.asarray(ROWS[:, :classes])
  labels = jnp.eye(classes)[jnp.arange(9) % classes].at[5:].set(0)

  @jax.jit
  def both(logits, labels):
    found = measure.of_model(logits, labels)
    stages = measure.of_completion(jnp.stack([-logits, logits]), labels)
    return found | stages | backdoor.measured(
        backdoor.Backdoor(protocol.HONEST, protocol.HONEST), -logits, logits,
        labels,
    )

  found, want = both(logits, labels), both(logits[:5], labels[:5])
  chex.assert_trees_all_close(found, want, rtol=1e-6)
  assert ('auc' in found) == (classes == 2)
  assert all(map(np.isnan, both(logits, 0 * labels).values()))


def test_who_knows_all_of_a_class_is_told_no_more_of_the_others():
  """Three labels of each class, of which one has two samples."""
  classes = jnp.array([0, 0, 0, 0, 0, 0, 0, 1, 1])
  training = Batch((ROWS, ROWS), jnp.eye(2)[classes])
  for seed in range(5):
    known = division.known(jax.random.key(seed), training, 3)
    np.testing.assert_array_equal(known.labels.sum(0), [3, 2])
    assert (known.labels.sum(1) == 0).sum() == 1
    told = known.features[1][known.labels.sum(1) > 0]
    assert len(np.unique(told, axis=0)) == 5


def test_mixmatch_draws_no_row_without_a_label(monkeypatch):
  seen, module = [], sys.modules[MixMatch.__module__]

  def watched(key, x, y, alpha):
    jax.debug.callback(seen.append, y)
    return x, y

  monkeypatch.setattr(module, 'mixed', watched)
  labels = jnp.array([[0.0, 0], [0, 1], [0, 0], [1, 0], [0, 0]])
  how = MixMatch(1, 20, batch_size=4, stages=1)
  linear = Net(lambda key, x: {}, lambda w, x: x @ w)
  guess = jax.jit(lambda labels: module.complete(
      KEY, how, linear, jnp.ones((5, 2)), jnp.eye(5), labels, jnp.eye(5),
      jnp.eye(5),
  ))
  guess(labels)
  jax.effects_barrier()
  drawn = np.concatenate([y[:4] for y in seen])
  assert (drawn.sum(1) == 1).all() and 0.3 < drawn[:, 0].mean() < 0.7
  assert np.isfinite(guess(0 * labels)).all()


def test_embeddings_that_tell_nothing_have_no_scale():
  """Equal but for rounding, as of a bottom network that has died."""
  known = jnp.full((7, 3), 0.1).at[0].multiply(1 + 1e-7)
  found = standardized(ECHO, known).apply((), jnp.full((2, 3), 0.4))
  np.testing.assert_array_equal(found, 0)
  bottom, labels = nets.mlp(5, 3), jnp.eye(2)[jnp.arange(9) % 2]
  attack = model_completion(
      bottom, nets.mlp(4, 2), Schedule(3, stages=1, learning_rate=0.1),
      standardize=True,
  )
  weights = jax.tree.map(jnp.zeros_like, bottom.init(KEY, ROWS))
  view = TrainedBottom(weights, ROWS, labels, 5 * ROWS)
  assert np.isfinite(jax.jit(attack.run)(KEY, view)).all()


@pytest.mark.parametrize('where', [slice(None), (slice(None), 1)])
def test_embeddings_that_diverged_are_no_constants(where):
  """A head guessed on them, and a defense that diverged looked perfect."""
  known = jnp.asarray(ROWS).at[where].set(jnp.nan)
  found = np.asarray(standardized(ECHO, known).apply((), known))
  assert np.isnan(found[where]).all()


def test_a_unit_that_known_samples_do_not_tell_apart_is_left_out():
  """Dead in them and alive in others, of which a head knows nothing."""
  known = jnp.asarray(ROWS).at[:, 1].set(0.5)
  found = standardized(ECHO, known).apply((), known.at[:, 1].set(0.9))
  np.testing.assert_array_equal(found[:, 1], 0)
  np.testing.assert_allclose(found.std(0), [1, 0, 1, 1], rtol=1e-4)


def test_however_little_embeddings_vary_it_is_their_scale():
  known = 1 + 1e-5 * jnp.asarray(ROWS)
  found = standardized(ECHO, known).apply((), known)
  np.testing.assert_allclose(found.std(0), 1, rtol=1e-2)


def test_padding_that_is_far_off_leaves_residuals_of_samples():
  """Samples alike but for rounding, on whose scale padding is 1e10 away."""
  sent = jnp.ones((9, 1)).at[0].multiply(1 + 1.2e-7).at[7:].set(1e3)
  valid = (jnp.arange(9) < 7).astype(jnp.float32)
  got = ROWS[:, :2] * valid[:, None]
  find = jax.jit(partial(residuals, degree=5))
  found = find(sent, got, valid)
  alone = find(sent[:7], got[:7], valid[:7])
  np.testing.assert_allclose(found[:7], alone, atol=1e-5)
  assert not np.asarray(found[7:]).any()


def test_equal_embeddings_have_a_gradient_in_a_subspace():
  """Of which all are where the subspace is: a distance of 0."""
  basis, rest = jnp.eye(4)[:, :2], jnp.zeros(4)

  @jax.jit
  @jax.grad
  def slopes(us):
    found = rvfr.purify((None, *us), jnp.zeros(4), basis, rest, 3)
    return sum(u.sum() for u in found[1:])

  for us in [(jnp.zeros((3, 2)),) * 2, (jnp.ones((3, 2)), jnp.zeros((3, 2)))]:
    for slope in jax.tree.leaves(slopes(us)):
      assert np.isfinite(slope).all()


@pytest.mark.parametrize('stages', [(0.6, NAN), (NAN, 0.6)])
def test_a_stage_without_a_number_may_have_been_the_worst(stages):
  cell: Any = 'iso', 1.0
  name = 'leak_auc_{}'.format
  values: Any = {
      (cell, 'learned_gradient', name(when), 'train'): {0: value, 1: 0.7}
      for when, value in zip(('start', 'end'), stages)
  }
  results = Results(
      ('e', 'd', 'a'), [cell], ['learned_gradient'], [], 'auc', values, {}, 2,
      splits=('train',),
      measured={
          'learned_gradient': frozenset([name('start'), name('end')])
      },
  )
  found = reading.leakage(results, cell, 'learned_gradient')
  assert np.isnan(found[0])
  np.testing.assert_allclose(found[1], 20)


@pytest.mark.parametrize('shape, weights', [
    ((0, 3), (3, 2)), ((2, 0, 3), (3, 2)), ((2, 3), (3, 0)), ((2, 0), (0, 2)),
])
def test_a_layer_of_nothing_has_transposes(shape, weights):
  f = bilinear.dense(shape, weights)
  with jax.enable_x64(True):
    x, w, g = (jnp.zeros(s, jnp.int64) for s in (shape, weights, f.y_shape))
    assert f.forward(x, w).shape == f.y_shape
    assert f.input_gradient(g, w).shape == shape
    assert f.weight_gradient(x, g).shape == weights
