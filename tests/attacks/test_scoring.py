"""The attacks' formulas, their views, and how they are measured."""
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from tests import devices
from vfljax import (
    algorithms, attacks, completion, measure, nets, protocol, views,
)
from vfljax.attacks.model_completion import Schedule
from vfljax.defense import none
from vfljax.types import Batch, Messages, Round, State

SAMPLES, WIDTH = 40, 3
# Made once, so that they are compiled once.
NORM, DIRECTION = attacks.norm_scoring(), attacks.direction_scoring()
MEAN, MEDIAN = attacks.mean_scoring(), attacks.median_scoring()


def a_round(received, labels, features=None):
  """A round in which passive party 1 received these gradients."""
  if features is None:
    features = np.zeros((len(labels), 2), np.float32)
  sent = np.zeros(received.shape, np.float32)
  return Round(
      State((), ()), Batch((None, features), labels),
      Messages((sent,), (received,)), np.float32(0), (),
  )


@pytest.fixture(scope='module')
def separated():
  """Gradients whose two classes point apart, the positives' being longer."""
  rng = np.random.default_rng(0)
  y = rng.integers(0, 2, SAMPLES)
  noise = rng.normal(size=(SAMPLES, WIDTH))
  d = np.where(y[:, None], 3.0, -1.0) * np.array([1, 2, -1.0]) + noise
  return d.astype(np.float32), one_hot(y), y


def one_hot(y, classes=2):
  return np.eye(classes, dtype=np.float32)[y]


def guess(attack, played, key=0):
  """(scores, the view), as a training would find them: compiled."""
  scores, view = compiled(attack)(jax.random.key(key), played)
  return np.asarray(scores), jax.tree.map(np.asarray, view)


@functools.cache
def compiled(attack):
  def run(key, played):
    k_view, k_run = jax.random.split(key)
    view = views.in_training(attack.view, k_view, 1, none(), played)
    return attack.run(k_run, view), view

  return jax.jit(run)


def test_norm_scoring(separated):
  d, labels, _ = separated
  scores, _ = guess(NORM, a_round(d, labels))
  np.testing.assert_allclose(scores, np.linalg.norm(d, axis=1), rtol=1e-6)


def test_direction_scoring_is_the_cosine_with_a_known_positive(separated):
  d, labels, y = separated
  none = np.flatnonzero(y == 0)[0]  # A gradient of 0 has no direction.
  d = np.where(np.arange(len(y))[:, None] == none, 0, d)
  scores, view = guess(DIRECTION, a_round(d, labels))
  known = int(np.flatnonzero(view.known)[0])
  assert view.known.sum() == 1 and y[known] == 1
  lengths = np.linalg.norm(d, axis=1, keepdims=True)
  unit = np.where(lengths > 0, d, 0) / np.where(lengths > 0, lengths, 1)
  np.testing.assert_allclose(scores, unit @ unit[known], atol=1e-5)


@pytest.mark.parametrize('size', [1e-12, 1e-30])
def test_tiny_gradients_leak_as_much(size, separated):
  """Squares of what converged training sends are 0 in 32 bits."""
  d, labels, _ = separated
  for attack in (NORM, DIRECTION, MEAN, MEDIAN):
    large, _ = guess(attack, a_round(d, labels))
    small, _ = guess(attack, a_round(np.float32(size) * d, labels))
    np.testing.assert_array_equal(np.argsort(large), np.argsort(small))


def test_mixed_samples_are_of_the_class_they_are_mostly_of():
  labels = jnp.array([[0.7, 0.3], [0.4, 0.6], [0.0, 0.0], [0.0, 1.0]])
  np.testing.assert_array_equal(
      jax.jit(views.majority)(labels), [[1, 0], [0, 1], [0, 0], [0, 1]]
  )


def test_an_attack_draws_the_same_whatever_is_beside_it(separated):
  d, labels, _ = separated
  alone = dict(ds=attacks.direction_scoring())
  both = dict(norm=attacks.norm_scoring()) | alone
  seen = [
      jax.jit(watch)(jax.random.key(3), a_round(d, labels))['ds']
      for watch, _ in (measure.watcher(f, none()) for f in (alone, both))
  ]
  # On a GPU up to rounding: another draw differs by more.
  atol = 0 if devices.KIND == 'cpu' else 1e-6
  scores = (x.guessed.scores for x in seen)
  np.testing.assert_allclose(*scores, rtol=0, atol=atol)


def test_direction_scoring_without_a_positive_says_nothing(separated):
  d, labels, _ = separated
  negative = np.float32([1, 0]) + 0 * labels
  scores, view = guess(DIRECTION, a_round(d, negative))
  assert not view.known.any() and not scores.any()


def test_mean_and_median_use_centers_of_samples_they_do_not_score(separated):
  d, labels, y = separated
  for attack, center in ((MEAN, np.mean), (MEDIAN, np.median)):
    scores, view = guess(attack, a_round(d, labels))
    half = np.asarray(view.known) > 0
    assert 5 < half.sum() < 35
    centers = [center(np.asarray(d)[half & (y == c)], axis=0) for c in (0, 1)]
    given = view.means if center is np.mean else view.medians
    np.testing.assert_allclose(given, centers, rtol=1e-4, atol=1e-5)
    far = [np.linalg.norm(np.asarray(d) - c, axis=1) for c in centers]
    np.testing.assert_array_equal(scores, far[0] > far[1])


@pytest.mark.parametrize('soft', [False, True])
def test_centers_in_another_order_turn_the_scores_around(soft):
  """So that the folded AUC does not depend on which class is called 1."""
  rng = np.random.default_rng(0)
  d = rng.normal(size=(12, 3)).astype(np.float32)
  one, other = rng.normal(size=(2, 3)).astype(np.float32)
  centers = np.stack([one, -one]), np.stack([-other, other])
  view = views.ClassCenters(
      d, d, d, np.ones(12, 'f4'), np.zeros(12, 'f4'), *centers
  )
  turned = view._replace(means=view.means[::-1], medians=view.medians[::-1])
  for made in attacks.mean_scoring(soft), attacks.median_scoring(soft=soft):
    one, other = (made.run(None, x) for x in (view, turned))
    np.testing.assert_allclose(other, -one if soft else 1 - one, atol=1e-6)
    assert np.ptp(one) > 0


@pytest.mark.parametrize('classes', [1, 3])
def test_two_classes_are_told_apart_and_no_others(classes):
  """Of three, the third one's center was not looked at."""
  d = np.eye(4, dtype=np.float32)
  view = views.ClassCenters(
      d, d, d, np.ones(4, 'f4'), np.zeros(4, 'f4'), d[:classes], d[:classes]
  )
  for made in attacks.mean_scoring(), attacks.median_scoring():
    with pytest.raises(ValueError, match=f'got {classes} centers'):
      made.run(None, view)


@pytest.mark.parametrize('known, labels', [
    (3, np.arange(3)), (3, np.eye(2)), (0, np.eye(2)),
])
def test_known_labels_are_a_row_for_each_known_sample(known, labels):
  """Class numbers of three samples were taken for labels of three classes."""
  d = jnp.asarray(np.random.default_rng(0).normal(size=(6, 4)), 'f4')
  view = views.RecordedGradients(d[:known], jnp.asarray(labels), d)
  for made in attacks.learned_gradient(), attacks.gradient_clustering():
    with pytest.raises(ValueError, match='known labels must be .known, class'):
      made.run(jax.random.key(0), view)


def test_residuals_of_half_precision_are_found_in_float32():
  draw = np.random.default_rng(3).normal(size=(2, 20, 3))
  sent, got = (jnp.asarray(x, jnp.float16) for x in draw)
  view = views.CutGradients(sent, sent, got, jnp.ones(20))
  wide = view._replace(sent=sent.astype('f4'), received=got.astype('f4'))
  one, other = (
      attacks.residual_scoring(1).run(None, x) for x in (view, wide)
  )
  np.testing.assert_array_equal(one, other)


def test_residual_scoring_is_the_first_component_of_what_is_left():
  """Of three coordinates, by NumPy; the labels are in the third one's sign."""
  rng = np.random.default_rng(0)
  sent = rng.normal(size=(SAMPLES, 2))
  y = rng.integers(0, 2, SAMPLES)
  d = np.stack([sent[:, 0] ** 2, np.sin(sent[:, 1]), -sent[:, 0]], axis=1)
  d += 0.01 * rng.normal(size=d.shape) + np.outer(y - 0.5, [0.02, 0.05, -0.2])
  played = a_round(np.float32(d), one_hot(y))._replace(
      messages=Messages((np.float32(sent),), (np.float32(d),))
  )
  scores, _ = guess(attacks.residual_scoring(), played)
  design = np.hstack([sent**i for i in range(6)])
  rest = d - design @ np.linalg.lstsq(design, d, rcond=None)[0]
  axis = np.linalg.svd(rest)[2][0]
  want = -rest @ axis * np.sign(axis.sum()) / abs(d).max()
  np.testing.assert_allclose(scores, want, atol=1e-4)
  assert np.ptp(want) > 0.05 and roc_auc_score(y, scores) > 0.99


def test_noise_does_not_leak_the_labels_it_carries():
  """Centers that held the scored sample would find 0.77 here."""
  key, rounds = jax.random.key(0), 200
  rng = np.random.default_rng(0)
  d = rng.normal(size=(rounds, 32, 16)).astype(np.float32)
  labels = one_hot(rng.binomial(1, 0.4, (rounds, 32)))
  watch, digest = measure.watcher(dict(
      mean=attacks.mean_scoring(), median=attacks.median_scoring()
  ), none())
  results = jax.jit(lambda keys, d, labels: digest(
      jax.vmap(lambda k, d, y: watch(k, a_round(d, y)))(keys, d, labels)
  ))(jax.random.split(key, rounds), d, labels)
  for found in results.values():
    assert abs(found['leak_auc_raw'] - 0.5) < 0.02


def test_median_of_the_batch_has_the_authors_ceiling():
  """(1 + (1 - (.5-p)/(1-p))) / 2: 0.9125 at GAFM's 39.4 % positives."""
  y = (np.arange(2000) < 788).astype(int)
  d = np.where(y, 1.0, -1.0) + 0.01 * np.random.default_rng(
      0).normal(size=2000)
  d = d.astype(np.float32)[:, None]
  attack = attacks.median_scoring(center='batch')
  scores, _ = guess(attack, a_round(d, one_hot(y)))
  assert abs(roc_auc_score(y, scores) - 0.9125) < 1e-3
  with pytest.raises(ValueError, match='center'):
    attacks.median_scoring(center='mean')


def test_the_batch_median_leaves_padding_out():
  d = np.float32([[1], [2], [3], [0], [0], [0]])
  labels = one_hot(np.array([0, 1, 1, 0, 0, 0]))
  labels[3:] = 0
  scores, _ = guess(attacks.median_scoring(center='batch'), a_round(d, labels))
  np.testing.assert_array_equal(scores[:3], [0, 0, 1])


@pytest.mark.parametrize('classes', [2, 5])
def test_direct_labels_are_exact_without_a_top(classes):
  """Kang et al., Eq. 4: the gradient's only negative entry is the label."""
  vfl = algorithms.vlr(2, classes)
  y = np.arange(SAMPLES) % classes
  features = np.random.default_rng(0).normal(size=(2, SAMPLES, 4))
  batch = Batch(tuple(features.astype(np.float32)), one_hot(y, classes))
  txs = (optax.sgd(0.1),) * 2
  state = protocol.init(jax.random.key(1), vfl, none(), txs, batch)
  played = jax.jit(lambda state: protocol.play_round(
      jax.random.key(2), vfl, none(), txs, state, batch
  )[1])(state)
  scores, _ = guess(attacks.direct_label(), played)
  np.testing.assert_array_equal(scores.argmax(1), y)


@pytest.mark.parametrize('pool', ['epoch', 'round'])
def test_leakage_equals_scikit_learn_over_rounds(pool, separated):
  d, labels, y = separated
  noisy = np.stack([d, d[::-1] + 4, -d])
  truth = np.stack([labels, labels[::-1], labels])
  watch, digest = measure.watcher(
      dict(norm=attacks.norm_scoring()), none(), pool=pool
  )
  found = jax.jit(lambda noisy, truth: digest(jax.vmap(
      lambda d, y: watch(jax.random.key(0), a_round(d, y))
  )(noisy, truth)))(noisy, truth)['norm']
  scores = np.linalg.norm(noisy, axis=2)
  ys = truth[..., 1]
  expected = roc_auc_score(ys.ravel(), scores.ravel())
  if pool == 'round':
    expected = np.mean([roc_auc_score(a, b) for a, b in zip(ys, scores)])
  np.testing.assert_allclose(found['leak_auc_raw'], expected, rtol=1e-5)
  folded = max(expected, 1 - expected)
  if pool == 'epoch':
    np.testing.assert_allclose(found['leak_auc'], folded, rtol=1e-5)


def test_a_round_that_diverged_is_not_left_out_as_one_of_one_class_is(
    separated
):
  d, labels, y = separated
  watch, digest = measure.watcher(
      dict(norm=attacks.norm_scoring()), none(), pool='round'
  )
  played = jax.jit(lambda d, labels: digest(jax.vmap(
      lambda d, labels: watch(jax.random.key(0), a_round(d, labels))
  )(d, labels))['norm']['leak_auc_raw'])
  alone = one_hot(0 * y)
  expected = roc_auc_score(y, np.linalg.norm(d, axis=1))
  two = np.stack([labels, alone])
  np.testing.assert_allclose(played(np.stack([d, d]), two), expected, 1e-5)
  gone = np.stack([d, d])
  gone[1, 0] = np.nan
  assert np.isnan(played(gone, np.stack([labels, labels])))


def test_what_an_attacker_knows_is_not_scored(separated):
  """The known positive has cosine 1 with itself: it must not count."""
  d, labels, y = separated
  watch, digest = measure.watcher(
      dict(ds=attacks.direction_scoring()), none()
  )
  rows = jax.tree.map(
      lambda x: np.asarray(x)[None],
      jax.jit(watch)(jax.random.key(3), a_round(d, labels)),
  )
  guessed = rows['ds'].guessed
  left = np.asarray(guessed.weights[0]) > 0
  assert left.sum() == SAMPLES - 1
  expected = roc_auc_score(y[left], np.asarray(guessed.scores[0])[left])
  np.testing.assert_allclose(
      jax.jit(digest)(rows)['ds']['leak_auc_raw'], expected, rtol=1e-5
  )


def test_several_attackers_are_told_apart(separated):
  d, labels, _ = separated
  played = a_round(d, labels)._replace(
      batch=Batch((None, np.zeros((SAMPLES, 2), np.float32),
                   np.zeros((SAMPLES, 2), np.float32)), labels),
      messages=Messages((d, d), (d, 2 * d)),
  )
  watch, _ = measure.watcher(
      dict(norm=attacks.norm_scoring()), none(), (1, 2)
  )
  rows = jax.jit(watch)(jax.random.key(0), played)
  np.testing.assert_allclose(
      rows['norm@2'].guessed.scores,
      2 * np.asarray(rows['norm'].guessed.scores),
  )


@pytest.fixture(scope='module')
def stolen():
  """A bottom whose embedding is the label, and samples to complete it on."""
  rng = np.random.default_rng(1)
  x = rng.normal(size=(300, 6)).astype(np.float32)
  y = (x[:, 0] + x[:, 1] > 0).astype(int)
  bottom = nets.mlp(2)
  kernel = np.zeros((6, 2), np.float32)
  kernel[:2] = [[-2, 2], [-2, 2]]
  weights = jax.tree.map(
      lambda w: jnp.asarray(kernel if w.ndim == 2 else np.zeros(2, 'f')),
      jax.eval_shape(bottom.init, jax.random.key(0), jnp.asarray(x)),
  )
  labels = one_hot(y)
  view = views.TrainedBottom(
      weights, *map(jnp.asarray, (x[:16], labels[:16], x[16:]))
  )
  return bottom, view, y[16:]


SCHEDULE = Schedule(epochs=60, stages=3, learning_rate=0.05)


def accuracy(attack, view, y):
  guess = jax.jit(attack.run)(jax.random.key(0), view)
  assert guess.shape[0] == (1 if guess.shape[0] == 1 else 3)
  return [(np.asarray(g).argmax(1) == y).mean() for g in guess]


def test_completion_profits_from_the_stolen_weights(stolen):
  bottom, view, y = stolen
  frozen = attacks.model_completion(bottom, nets.mlp(2), SCHEDULE, tune=False)
  tuned = attacks.model_completion(bottom, nets.mlp(2), SCHEDULE)
  scratch = attacks.scratch(bottom, nets.mlp(2), SCHEDULE)
  kept = accuracy(frozen, view, y)[-1]
  assert kept > 0.93
  assert accuracy(tuned, view, y)[-1] > accuracy(scratch, view, y)[-1]
  assert kept > accuracy(scratch, view, y)[-1] + 0.05


def test_completion_without_a_head_reads_the_embedding(stolen):
  bottom, view, y = stolen
  attack = attacks.model_completion(bottom, None, SCHEDULE)
  assert accuracy(attack, view, y) == [1.0]


def test_a_frozen_bottom_stays_as_it_was(stolen):
  """A linear head on a frozen bottom is logistic regression on embeddings."""
  bottom, view, _ = stolen
  schedule = Schedule(epochs=3000, stages=1, learning_rate=0.05)
  attack = attacks.model_completion(bottom, nets.mlp(2), schedule, tune=False)
  guess = jax.jit(attack.run)(jax.random.key(0), view)[-1]
  embed = lambda x: np.asarray(bottom.apply(view.weights, x))
  peer = LogisticRegression(C=1e4).fit(
      embed(view.labeled_features), np.asarray(view.labeled).argmax(1)
  )
  same = np.asarray(guess).argmax(1) == peer.predict(embed(view.features))
  assert same.mean() > 0.97


def test_batches_of_an_epoch_cover_the_labels(stolen):
  """A learning rate of almost 0 leaves the guesses at their start, whatever the
  batches; stages that do not divide the epochs end with the last epoch."""
  bottom, view, _ = stolen
  schedule = Schedule(epochs=7, batch_size=3, stages=2, learning_rate=1e-9)
  attack = attacks.model_completion(bottom, nets.mlp(2), schedule)
  guess = np.asarray(jax.jit(attack.run)(jax.random.key(0), view))
  np.testing.assert_allclose(guess[0], guess[1], atol=1e-5)
  learned = attacks.local_model(
      nets.mlp(2), Schedule(epochs=200, batch_size=3, learning_rate=0.05)
  )
  known = view._replace(features=view.labeled_features)
  guess = jax.jit(learned.run)(jax.random.key(0), known)[-1]
  assert (guess.argmax(1) == view.labeled.argmax(1)).all()


@pytest.mark.parametrize('schedule, message', [
    (Schedule(epochs=0), 'epochs must be'),
    (Schedule(batch_size=-1), 'batch_size must be'),
    (Schedule(epochs=5, stages=6), 'stages'),
    (Schedule(optimizer='lion'), 'optimizer must be'),
    (Schedule(rate='linear'), 'rate must be one of'),
    (Schedule(bottom_rate=0.0), 'bottom_rate must be'),
    (Schedule(weight_decay=-1.0), 'weight_decay must be'),
])
def test_schedules_that_make_no_sense(schedule, message):
  with pytest.raises(ValueError, match=message):
    attacks.local_model(nets.mlp(2), schedule)
  with pytest.raises(ValueError, match=message):
    attacks.model_completion(nets.mlp(2), nets.mlp(2), schedule)


def test_completion_reports_the_best_and_the_last_stage():
  labels = one_hot(np.array([0, 1, 1, 0]))
  right, other = 2 * labels, 2 * labels
  other[0] = right[0, ::-1]
  guess = np.stack([right, other, -right])
  found = jax.jit(measure.of_completion)(guess, labels)
  assert found['accuracy_best'] == 1 and found['accuracy_last'] == 0
  assert found['auc_best'] == 1 and found['auc_last'] == 0


def test_momentum_decay_and_a_slower_bottom_are_pytorchs():
  """SGD(lr, momentum=0.9, weight_decay) and CosineAnnealingLR, step by step."""
  schedule = Schedule(
      5, 0, 1, 0.5, 'momentum', rate='cosine', bottom_rate=0.1,
      weight_decay=0.2,
  )
  tx = completion.optimizer(schedule, 5, 'first')
  params = dict(first=np.float32([1, -2]), second=np.float32([3]))
  state, plain = tx.init(params), dict(params)
  speed = jax.tree.map(np.zeros_like, plain)

  @jax.jit
  def stepped(state, params):
    slope = jax.tree.map(lambda p: 2 * p + 1, params)
    updates, state = tx.update(slope, state, params)
    return state, optax.apply_updates(params, updates)

  for step in range(5):
    state, params = stepped(state, params)
    rate = 0.5 * (1 + np.cos(np.pi * step / 5)) / 2
    for name, factor in dict(first=0.1, second=1.0).items():
      w = plain[name]
      speed[name] = 0.9 * speed[name] + (2 * w + 1) + 0.2 * w
      plain[name] = w - factor * rate * speed[name]
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5),
        params, plain,
    )


def test_completion_trains_the_stolen_network_at_its_own_rate(stolen):
  """So slow a bottom is a frozen one, and the head learns all the same."""
  bottom, view, y = stolen
  schedule = SCHEDULE._replace(bottom_rate=1e-9)
  slow = attacks.model_completion(bottom, nets.mlp(2), schedule)
  frozen = attacks.model_completion(bottom, nets.mlp(2), SCHEDULE, tune=False)
  run = lambda attack: jax.jit(attack.run)(jax.random.key(0), view)
  np.testing.assert_allclose(run(slow), run(frozen), rtol=1e-3, atol=1e-4)
