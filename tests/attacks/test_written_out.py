"""Steps of attacks by numbers worked out by hand."""
import sys
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from vfljax import algorithms, attacks, nets
from vfljax.attacks.cafe import FirstLinear, Recovery, begin, recover, third
from vfljax.attacks.inversion_shadow import DRAWS, sender
from vfljax.attacks.mixmatch import MixMatch, _averaged, _loss
from vfljax.attacks.mixmatch import complete as fit_with_guesses
from vfljax.attacks.model_inversion import (
    Inversion, invert, total_variation, train_shadow,
)
from vfljax.attacks.residual_scoring import residuals
from vfljax.attacks.residue_reconstruction import reconstruct
from vfljax.completion import Samples, Schedule, complete, optimizer
from vfljax.defense import Defense
from vfljax.types import Batch, Net
from vfljax.views import (
    ClassCenters, CutGradients, RecordedGradients, TrainedTop, WhiteBox,
)

KEY = jax.random.key(0)


# CAFE on one linear layer.

POOL, ROUNDS = 6, 3
LINEAR = FirstLinear(
    lambda w, x: (x, x @ w['kernel'] + w['bias']),
    lambda g: (g['kernel'], g['bias']),
)


def rounds_of_two():
  """Every sample is in one of the rounds; gradients are of the mean."""
  rng = np.random.default_rng(0)
  x, dz = rng.random((POOL, 4)), rng.normal(size=(POOL, 3))
  rows = np.arange(POOL).reshape(ROUNDS, 2)
  gradients = dict(
      kernel=np.stack([x[i].T @ dz[i] / 2 for i in rows]),
      bias=np.stack([dz[i].mean(0) for i in rows]),
  )
  weights = dict(kernel=rng.normal(size=(4, 3)), bias=np.zeros(3))
  return jax.tree.map(
      lambda a: jnp.asarray(a, jnp.int32 if a is rows else jnp.float32),
      WhiteBox(weights, gradients, rows, np.zeros((POOL, 4))),
  )


def test_cafe_takes_gradients_of_a_rounds_sum(monkeypatch):
  seen = []

  def ended(view, layer, start, recovery):
    seen.append(view.gradients)
    return start, jnp.zeros(())

  monkeypatch.setattr(sys.modules[begin.__module__], 'recover', ended)
  view = rounds_of_two()
  attacks.cafe(LINEAR, Recovery(1)).run(KEY, view)
  jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, 2 * b),
      seen[0], view.gradients,
  )


def test_cafe_believes_the_misfit_at_the_end():
  view = rounds_of_two()
  start = begin(KEY, view, LINEAR)
  misfit = lambda steps: jax.jit(lambda: recover(
      view, LINEAR, start, Recovery(steps, sample_rate=0.05)
  )[1])()
  assert misfit(60) < 0.9 * misfit(ROUNDS)


@pytest.mark.parametrize('smooth, cost', [(1.9, 3 * 2 * 2.0), (2.1, 0.0)])
def test_cafe_smoothes_images_that_are_rougher_than_usual(smooth, cost):
  """Both of the round's two images have an edge of 4 pixels times 0.5."""
  x = np.zeros((5, 4, 4, 1), np.float32)
  x[:, :, 2:] = 0.5
  flat = FirstLinear(
      lambda w, x: (x.reshape(len(x), -1), x.reshape(len(x), -1) @ w),
      lambda g: g,
  )
  w, rows = jnp.ones((16, 2)), jnp.array([1, 3])
  found = jax.jit(lambda x: third(
      x, jnp.zeros((5, 16)), jnp.zeros((5, 2)), rows, jnp.zeros((16, 2)), w,
      flat, Recovery(inputs=0.0, variation=3.0, smooth=smooth),
  ))(x)
  np.testing.assert_allclose(found, cost)


def test_cafe_explains_the_gradients_that_the_layer_has_a_part_in():
  """Also where all of them are below 0; of a later layer it says nothing."""
  x, dz = np.array([[1.0, 2], [3, 1]]), np.array([[-1.0, -2], [-3, -1]])
  own, given = x.T @ dz, np.full((2, 2), 0.5)
  assert (own < 0).all()
  weights = dict(kernel=np.ones((2, 2)), bias=np.zeros(2), later=np.ones(3))
  gradients = dict(kernel=given, bias=dz.sum(0), later=np.ones(3))
  found = jax.jit(lambda: third(
      *map(jnp.float32, (x, x + 1, dz)), jnp.arange(2),
      *jax.tree.map(jnp.float32, (gradients, weights)), LINEAR,
      Recovery(inputs=2.0, gradients=3.0),
  ))()
  np.testing.assert_allclose(
      found, 2 * 4 + 3 * ((own - given) ** 2).sum(), rtol=1e-6
  )


# Model inversion.


def top_view():
  x = jax.random.normal(KEY, (12, 3))
  labels = jax.nn.one_hot((x[:, 0] > 0).astype(int), 2)
  vfl = algorithms.vsnn([nets.mlp(2)], nets.mlp(2))
  u = jnp.zeros((12, 2))
  top = vfl.top.init(KEY, (None, u))
  return vfl, TrainedTop(
      dict(bottom=(), top=top), u, Batch((None, x), labels)
  )


def test_the_shadow_of_model_inversion_descends_the_federations_loss():
  vfl, view = top_view()
  shadow, known = nets.mlp(2), view.auxiliary

  def loss(params):
    u = shadow.apply(params, known.features[1])
    logits = vfl.top.apply(view.weights['top'], (None, u))
    return vfl.loss(logits, known.labels).mean()

  def after(steps):
    how = Inversion(steps, 12, 0.05)
    own = sender(shadow, vfl, known, None)
    return loss(train_shadow(KEY, vfl, own, view, how))

  first, last = jax.jit(lambda: (after(1), after(40)))()
  assert last < first - 0.1


def test_model_inversion_descends_what_it_says():
  """|f(x) - u|^2 + variation, within [0, 1]."""
  net = SimpleNamespace(apply=lambda params, x: x.sum((1, 2, 3))[:, None])
  shadow: Any = net
  start = jnp.full((1, 2, 2, 1), 0.5).at[0, 0, 0, 0].set(0.9)
  how = Inversion(steps=200, learning_rate=0.02, variation=0.1)
  run = jax.jit(lambda u: invert(shadow, (), u, start, how))
  found = run(jnp.array([[1.2]]))
  np.testing.assert_allclose(found, 0.3, atol=0.05)  # Smooth, and of that sum.
  np.testing.assert_array_equal(run(jnp.array([[99.0]])), 1)
  np.testing.assert_allclose(total_variation(start), 0.8)


def test_smooth_images_change_little_from_each_pixel_to_the_next():
  """Two steps down of 1 and 3 in each of two columns, two to the right of 2."""
  column = jnp.array([0.0, 1.0, 4.0])[:, None]
  image = column + jnp.array([0.0, 2.0])
  np.testing.assert_allclose(total_variation(image[None, ..., None]), 8 + 6)


def test_what_a_random_message_is_expected_to_be():
  """The mean of eight draws of it, none of them its penalty."""
  net = Net(lambda key, x: (), lambda params, x: x)
  noisy = Defense(send=lambda own, key, u: (
      u + jax.random.normal(key, u.shape), jnp.ones_like(u)
  ))
  vfl, view = top_view()
  own = sender(net, vfl, view.auxiliary, noisy)
  x = jnp.full((50, 60), 3.0)
  off = own.expected(dict(net=(), defense=()), x) - x
  np.testing.assert_allclose(off.mean(), 0, atol=0.03)
  np.testing.assert_allclose(off.std(), DRAWS**-0.5, rtol=0.05)


@pytest.mark.parametrize('made, expected', [
    (attacks.constant_image, [[5.5, 5.5]]), (attacks.mean_image, [[4.0, 7.0]]),
])
def test_guesses_without_embeddings_have_the_features_shape(made, expected):
  x = np.array([[[2.0, 5.0]], [[6.0, 9.0]]])
  view = TrainedTop({}, np.zeros((3, 4)), Batch((None, x), np.ones((2, 2))))
  np.testing.assert_array_equal(made().run(KEY, view), [expected] * 3)


# MixMatch.


def test_the_loss_of_unlabeled_samples_comes_in_with_time():
  how = MixMatch(batch_size=2, unlabeled=8.0)
  table = SimpleNamespace(run=lambda params, key, x: (x, ()))
  own: Any = table
  logits = np.array([[0.0, 1], [2, 0], [0, 0], [3, 0]])
  y = np.array([[1.0, 0], [1, 0], [0.2, 0.8], [0.5, 0.5]])
  p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
  fit = -np.log(p[:2, 0]).mean()
  gap = ((p[2:] - y[2:]) ** 2).mean()
  for share in (0.0, 0.25):
    found, _ = _loss(how, own)(
        (), KEY, jnp.asarray(logits), jnp.asarray(y), share
    )
    np.testing.assert_allclose(found, fit + 8 * share * gap, rtol=1e-5)


def test_the_moving_average_keeps_more_of_the_old_with_time():
  how = MixMatch(average=0.9)
  one = lambda i: float(_averaged(
      how, jnp.float32(i), jnp.float32(1.0), jnp.float32(0.0)
  ))
  np.testing.assert_allclose(
      [one(0), one(8), one(10000)], [0.1, 0.5, 0.9], rtol=1e-6
  )


# Scores, and what noise is.


def centers(means, medians):
  x = jnp.array([[1.0], [9.0]])
  one = jnp.ones(2)
  return ClassCenters(
      x, x, x, one, 0 * one, jnp.array(means), jnp.array(medians)
  )


def test_mean_and_median_go_by_their_own_centers():
  view = centers([[0.0], [10.0]], [[10.0], [0.0]])
  np.testing.assert_array_equal(attacks.mean_scoring().run(KEY, view), [0, 1])
  np.testing.assert_array_equal(
      attacks.median_scoring().run(KEY, view), [1, 0]
  )
  soft = attacks.median_scoring(soft=True).run(KEY, view)
  np.testing.assert_allclose(soft, [8, -8])


def test_residuals_are_scored_along_their_largest_component():
  rng = np.random.default_rng(0)
  rest = rng.normal(size=(30, 2)) * [0.1, 3.0]
  view = CutGradients(
      np.zeros((30, 1), 'f4'), np.ones((30, 1), 'f4'), rest.astype('f4'),
      np.ones(30, 'f4'),
  )
  scores = jax.jit(attacks.residual_scoring().run)(KEY, view)
  centered = rest[:, 1] - rest[:, 1].mean()
  np.testing.assert_allclose(
      np.corrcoef(scores, -centered)[0, 1], 1, atol=1e-2
  )


def test_residuals_are_the_same_in_every_unit_of_the_embedding():
  rng = np.random.default_rng(0)
  sent = rng.normal(size=(30, 1)).astype(np.float32)
  received = (sent**5 + rng.normal(size=(30, 2))).astype(np.float32)
  found, moved = (
      residuals(x, received, np.ones(30, np.float32), 5)
      for x in (sent, 1 + sent / 64)
  )
  assert np.abs(found).max() > 0.01
  np.testing.assert_allclose(moved, found, atol=1e-4)


def test_parties_who_add_noise_draw_their_own():
  x = jnp.zeros((2000, 3))
  backdoor = attacks.noisy_sample(1.0, 2.0, None, parties=(1, 2))
  for who in backdoor.inference, backdoor.training:
    one, other = who.features((), KEY, (x, x))
    np.testing.assert_allclose(one.std(), 2, rtol=0.05)
    together = np.corrcoef(np.ravel(one), np.ravel(other))[0, 1]
    assert abs(together) < 0.1
  assert len(np.unique(one)) > 5900  # Nor do rows or columns share it.


# Completion by gradient descent, of one linear layer.


def completed(**schedule):
  """(the last guess, what it should be after 3 steps at such rates)."""
  rng = np.random.default_rng(0)
  x, y = rng.normal(size=(8, 3)), np.eye(2)[rng.integers(0, 2, 8)]
  rates = schedule.pop('rates', (0.5, 0.5, 0.5))
  found = complete(
      KEY, Schedule(3, 0, learning_rate=0.5, optimizer='sgd', **schedule),
      lambda w, x: x @ w, jnp.zeros((3, 2)),
      Samples(*(jnp.asarray(a, jnp.float32) for a in (x, y, x))),
  )[-1]
  w = np.zeros((3, 2))
  for rate in rates:
    w -= rate * x.T @ (special.softmax(x @ w, 1) - y) / 8
  return found, x @ w


@pytest.mark.parametrize('schedule', [
    dict(stages=1), dict(stages=2),  # An epoch comes before two stages.
    dict(stages=1, rate='cosine', rates=0.25 * (1 + np.cos(
        np.pi * np.arange(3) / 3
    ))),
], ids=['one stage', 'two stages', 'cosine'])
def test_completion_takes_every_step_at_its_rate(schedule):
  found, expected = completed(**schedule)
  np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_the_stolen_network_alone_has_a_rate_of_its_own():
  """Whatever it is called among the parameters."""
  schedule = Schedule(learning_rate=0.5, optimizer='sgd', bottom_rate=0.1)
  tx = optimizer(schedule, 1, 'b')
  params = {name: jnp.ones(()) for name in 'abc'}
  moved, _ = tx.update(params, tx.init(params), params)
  assert moved == dict(
      a=-0.5, b=pytest.approx(-0.05), c=-0.5
  )


def test_a_learned_gradient_is_read_whatever_is_beside_it():
  """Its scale is that of the known ones, and its length does not count."""
  d = jax.random.normal(KEY, (12, 3)) + jnp.arange(12)[:, None]
  view = RecordedGradients(d[:6], jnp.eye(2)[jnp.arange(6) % 2], d)
  attack = attacks.learned_gradient((), Schedule(epochs=3, stages=1))
  longer = d[:2] * jnp.array([[1e3], [1e-3]])
  one, two, long = jax.jit(lambda: [
      attack.run(KEY, view._replace(received=x)) for x in (d, d[:2], longer)
  ])()
  np.testing.assert_allclose(one[:2], two, atol=1e-5)
  np.testing.assert_allclose(long, two, atol=1e-5)


def test_colluding_parties_trigger_the_same_samples():
  numbered = np.arange(50, dtype='f4')[:, None] * np.ones((1, 6), 'f4')
  made = attacks.label_replacement(
      0, jnp.array([0]), tuple(map(jnp.asarray, (numbered, numbered))),
      parties=(1, 2), per_round=8,
  )
  own = (np.full((10, 6), -1, np.float32),) * 2
  run = jax.jit(lambda own: made.training.features((), KEY, own))
  one, other = map(np.asarray, run(own))
  np.testing.assert_array_equal(one[-8:, 0], other[-8:, 0])
  assert len(np.unique(one[-8:, 0])) > 4 and (one[:2] == -1).all()


def test_mixmatch_shrinks_its_weights():
  """Steps are too small to see, the decay is not: 0.9 a step."""
  how = MixMatch(
      2, 1, batch_size=2, stages=1, learning_rate=1e-5, decay=1e4, average=0.0
  )
  linear = Net(lambda key, x: {}, lambda w, x: x @ w)
  w, x = jnp.array([[1.0, 2.0], [3.0, -1.0]]), jnp.eye(2)
  run = jax.jit(lambda: fit_with_guesses(KEY, how, linear, w, x, x, x, x))
  np.testing.assert_allclose(run()[-1], 0.81 * w, atol=1e-3)


def test_a_bias_is_one_equation_more():
  """Four samples of three features: with their sum there is one solution."""
  rng = np.random.default_rng(0)
  x, d = rng.normal(size=(4, 3)), rng.normal(size=(4, 2))
  x, d = jnp.asarray(x, jnp.float32), jnp.asarray(d, jnp.float32)
  found = reconstruct(x, x.T @ d, d.sum(0))
  assert found.exact and not reconstruct(x, x.T @ d).exact
  np.testing.assert_allclose(found.values, d, rtol=1e-3, atol=1e-4)
