"""Clustering of gradients: k-means, beside scikit-learn's; what it reads."""
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from vfljax import algorithms, attacks, defenses, metrics, nets, protocol, views
from vfljax.attacks.gradient_clustering import (
    distances, kmeans, moved, names, nearness, spread,
)
from vfljax.types import Batch
from vfljax.views import RecordedGradients

KEY = jax.random.key(0)
LEAK_AUC = jax.jit(metrics.leak_auc)
KMEANS = jax.jit(kmeans, static_argnums=(2, 3, 4))


def apart(classes, n=60, width=6, noise=0.1, seed=0):
  """Gradients around one direction a class, of many lengths; and labels."""
  rng = np.random.default_rng(seed)
  axes = np.linalg.qr(rng.normal(size=(width, width)))[0][:classes]
  y = np.arange(n) % classes
  d = axes[y] + noise * rng.normal(size=(n, width)) / width**0.5
  return (d * rng.lognormal(0, 1, (n, 1))).astype(np.float32), y


def seen(d, y, classes, known=1):
  """The first `known` samples of each class are known."""
  rows = np.concatenate([
      np.flatnonzero(y == c)[:known] for c in range(classes)
  ])
  labels = np.eye(classes, dtype=np.float32)[y[rows]]
  return RecordedGradients(d[rows], labels, d)


@functools.cache
def attack(**options):
  return jax.jit(attacks.gradient_clustering(**options).run)


@pytest.mark.parametrize('classes', [2, 5])
def test_one_known_sample_a_class_is_enough_where_directions_differ(classes):
  d, y = apart(classes)
  scores = np.asarray(attack()(KEY, seen(d, y, classes)))
  assert scores.shape == (60, classes)
  np.testing.assert_array_equal(scores.argmax(1), y)


def test_it_reads_labels_that_lie_behind_a_trained_layer():
  """As `learned_gradient` does, with one known sample of each class."""
  rng = np.random.default_rng(0)
  y = rng.integers(0, 5, 600)
  p = rng.dirichlet(np.ones(5), 600)
  cut = ((p - np.eye(5)[y]) @ rng.normal(size=(5, 5))).astype(np.float32)
  guess = np.asarray(attack()(KEY, seen(cut, y, 5))).argmax(1)
  assert (guess == y).mean() > 0.6  # By chance 0.2.


@pytest.mark.parametrize('order', [(2, 0, 1), (1, 0, 2)])
def test_classes_in_another_order_are_other_columns(order):
  d, y = apart(3, noise=1.5)
  view = seen(d, y, 3, known=4)
  one = attack()(KEY, view)
  other = attack()(KEY, view._replace(
      known_labels=view.known_labels[:, list(order)]
  ))
  np.testing.assert_array_equal(one[:, list(order)], other)


def test_directions_are_compared_and_lengths_only_if_asked():
  d, y = apart(3)
  view, longer = seen(d, y, 3), np.float32(1 + np.arange(60)[:, None] ** 2)
  plain = np.asarray(attack()(KEY, view))
  stretched = attack()(KEY, seen(longer * d, y, 3))
  np.testing.assert_allclose(stretched, plain, atol=1e-5)
  raw = np.asarray(attack(unit=False)(KEY, view)).argmax(1)
  assert (raw == y).mean() < 0.9  # Here the longest are a cluster of their own.
  inner, outer = d / np.linalg.norm(d, axis=1)[:, None], 1 + np.arange(60) % 2
  line = np.float32(outer[:, None] * inner[:1])  # One direction, two lengths.
  found = np.asarray(attack(unit=False)(KEY, seen(line, outer - 1, 2)))
  np.testing.assert_array_equal(found.argmax(1), outer - 1)


@pytest.mark.parametrize('unit', [True, False])
@pytest.mark.parametrize('size', [1e-30, 1e30])
def test_the_size_of_all_gradients_does_not_matter(unit, size):
  d, y = apart(3)
  run = attack(unit=unit)
  small, plain = (
      run(KEY, seen(np.float32(s) * d, y, 3)) for s in (size, 1)
  )
  np.testing.assert_allclose(small, plain, atol=1e-4)


@pytest.mark.parametrize('unit', [True, False])
def test_what_all_gradients_have_in_common_hides_nothing(unit):
  """Directions a ten-thousandth apart: their squares are below rounding."""
  d, y = apart(3, noise=0.01)
  d = d / np.linalg.norm(d, axis=1)[:, None]
  d = np.float32(5000 * np.eye(6)[0] + d)
  found = np.asarray(attack(unit=unit)(KEY, seen(d, y, 3)))
  np.testing.assert_array_equal(found.argmax(1), y)


def test_images_are_clustered_as_rows():
  d, y = apart(3)
  flat, image = (
      attack()(KEY, seen(d.reshape(60, *s), y, 3)) for s in ((6,), (1, 3, 2))
  )
  np.testing.assert_array_equal(flat, image)


@pytest.mark.parametrize('unit', [True, False])
def test_gradients_of_16_bits_are_counted_in_32(unit):
  """In 16 bits 257 samples are 256."""
  d, y = apart(2, n=1200, noise=0.5)
  half = seen(jnp.asarray(d, jnp.bfloat16), y, 2)
  same = seen(np.float32(half.received), y, 2)
  scores = attack(unit=unit)(KEY, half)
  assert scores.dtype == jnp.float32
  np.testing.assert_array_equal(scores, attack(unit=unit)(KEY, same))


# What can go wrong.


@pytest.mark.parametrize('wrong', [np.nan, np.inf])
@pytest.mark.parametrize('unit', [True, False])
def test_gradients_that_diverged_have_no_score(unit, wrong):
  d, y = apart(3)
  d[7, 2] = wrong
  assert np.isnan(attack(unit=unit)(KEY, seen(d, y, 3))).all()


@pytest.mark.parametrize('unit', [True, False])
@pytest.mark.parametrize('value', [0, 2])
def test_gradients_that_are_all_alike_tell_nothing(unit, value):
  _, y = apart(3)
  d = np.full((60, 6), value, np.float32)
  scores = np.asarray(attack(unit=unit)(KEY, seen(d, y, 3)))
  assert np.isfinite(scores).all() and (scores == scores[:1]).all()


def test_fewer_samples_than_classes_are_no_error():
  d, y = apart(3)
  scores = attack()(KEY, seen(d[:2], y[:2], 3))
  np.testing.assert_array_equal(np.asarray(scores).argmax(1), y[:2])


def test_without_a_known_sample_a_class_is_never_guessed():
  d, y = apart(3)
  view = seen(d, y, 3, known=2)
  labels = view.known_labels * np.float32([1, 0, 1])
  scores = np.asarray(attack()(KEY, view._replace(known_labels=labels)))
  assert (scores.argmax(1) != 1).all() and np.isfinite(scores).all()
  np.testing.assert_array_equal(scores.argmax(1)[y != 1], y[y != 1])


def test_two_classes_need_no_names():
  """The folded AUC is the same; and nobody known is no error."""
  d, y = apart(2, noise=1.5)
  view = seen(d, y, 2, known=5)
  auc = []
  for labels in (1, np.float32([1, 0])[:, None], 0):
    given = view.known_labels
    if np.ndim(labels):  # The other way round.
      given = given[:, ::-1]
    elif not labels:
      given = 0 * given
    scores = attack()(KEY, view._replace(known_labels=given))
    auc.append(LEAK_AUC(scores[:, 1] - scores[:, 0], jnp.asarray(y)))
  assert 0.7 < auc[0] < 1
  np.testing.assert_allclose(auc[1:], auc[0], rtol=1e-6)


@pytest.mark.parametrize('option', ['starts', 'iterations'])
@pytest.mark.parametrize('value', [0, -1, 2.0, '3'])
def test_bad_numbers_are_refused_by_name(option, value):
  with pytest.raises(ValueError, match=f'gradient_clustering: {option} must'):
    attacks.gradient_clustering(**{option: value})


# The formulas.


def test_it_is_as_close_as_scikit_learns():
  """Its inertia, and its centers from the same start."""
  x = np.random.default_rng(0).normal(size=(300, 5)).astype(np.float32)
  x += 3 * np.eye(5, dtype=np.float32)[np.arange(300) % 4]
  theirs = KMeans(4, n_init=10, random_state=0).fit(x)
  centers, inertia = KMEANS(KEY, x, 4, 8, 50)
  np.testing.assert_allclose(inertia, theirs.inertia_, rtol=2e-3)
  again = KMeans(4, init=np.asarray(centers), n_init=1).fit(x)
  np.testing.assert_allclose(inertia, again.inertia_, rtol=1e-5)
  ordered = lambda c: c[np.lexsort(np.round(c, 2).T)]
  np.testing.assert_allclose(
      ordered(np.asarray(centers)), ordered(again.cluster_centers_), atol=1e-3
  )


def test_the_closest_start_counts():
  x, _ = apart(6, n=90, noise=0.6)
  each = [
      float(one_start(key, x)) for key in jax.random.split(KEY, 5)
  ]
  centers, inertia = KMEANS(KEY, x, 6, 5, 30)
  assert max(each) > 1.05 * min(each)
  np.testing.assert_allclose(inertia, min(each), rtol=1e-5)
  far = np.linalg.norm(x[:, None] - np.asarray(centers)[None], axis=-1)
  np.testing.assert_allclose((far.min(1) ** 2).sum(), inertia, rtol=1e-4)


@jax.jit
def one_start(key, x):
  """The inertia of one start, step by step."""
  centers = jax.lax.fori_loop(
      0, 30, lambda _, centers: moved(x, centers), spread(key, x, 6, 3)
  )
  return (distances(x, centers).min(1) ** 2).sum()


def test_a_step_moves_centers_to_their_samples_and_leaves_empty_ones():
  x = np.float32([[0, 0], [2, 0], [10, 4], [10, 8], [10, 6], [30, 4]])
  centers = np.float32([[1, 5], [9, 9], [50, 50], [29, 5]])
  np.testing.assert_allclose(
      jax.jit(moved)(x, centers), [[1, 0], [10, 6], [50, 50], [30, 4]],
      rtol=1e-6,
  )


def test_one_iteration_is_one_step():
  """From samples, 0 or 1 and 10 or 11, to the means: inertia 2, then 1."""
  x = np.float32([[0], [1], [10], [11]])
  centers, inertia = KMEANS(KEY, x, 2, 8, 1)
  np.testing.assert_allclose(np.sort(centers[:, 0]), [0.5, 10.5], rtol=1e-6)
  np.testing.assert_allclose(inertia, 1, rtol=1e-5)


def test_distances_are_euclidean():
  rng = np.random.default_rng(0)
  x, c = rng.normal(size=(7, 3)), rng.normal(size=(4, 3))
  want = np.linalg.norm(x[:, None] - c[None], axis=-1)
  np.testing.assert_allclose(
      jax.jit(distances)(np.float32(x), np.float32(c)), want, rtol=1e-4
  )


def test_starts_are_drawn_by_squared_distance():
  """The first evenly; the next by the distance to the nearest one drawn."""
  x = np.float32([[0], [1], [3]])
  draw = jax.jit(jax.vmap(lambda key: spread(key, x, 3, 1)[:, 0]))
  drawn = np.asarray(draw(jax.random.split(KEY, 3000)))
  share = lambda rows, value: (rows == value).mean()
  first, second = drawn[:, 0], drawn[:, 1]
  for value in (0, 1, 3):
    assert abs(share(first, value) - 1 / 3) < 0.04
  assert abs(share(second[first == 0], 3) - 0.9) < 0.04
  assert abs(share(second[first == 1], 3) - 0.8) < 0.05
  assert abs(share(second[first == 3], 0) - 9 / 13) < 0.06
  np.testing.assert_array_equal(np.sort(drawn), [[0, 1, 3]] * 3000)


def test_of_many_trials_the_one_that_leaves_all_closest_is_taken():
  """Beside 0 there are two at 10 and one at 11, further but alone."""
  x = np.float32([[0], [10], [10], [11], [0], [0]])
  draw = jax.jit(jax.vmap(lambda key: spread(key, x, 2, 20)[:, 0]))
  drawn = np.asarray(draw(jax.random.split(KEY, 100)))
  second = drawn[drawn[:, 0] == 0, 1]
  assert len(second) > 30 and (second == 10).all()


def test_of_equal_samples_some_are_drawn_twice():
  x = np.float32([[1, 1]] * 4)
  np.testing.assert_array_equal(jax.jit(
      lambda: spread(KEY, x, 3, 2)
  )(), [[1, 1]] * 3)


NAMES = jax.jit(names)
# Distances of known samples to the clusters; labels; classes; the names.
NAMED = {
    'majority': (
        [[1, 9], [1, 9], [9, 1], [9, 1], [1, 9]], [0, 0, 0, 1, 1], 2, [0, 1]),
    'majority, one far off': (  # By the mean distance the other way round.
        [[1, 2], [1, 2], [99, 1], [2, 3], [3, 2], [4, 3]], [0, 0, 0, 1, 1, 1],
        2, [0, 1]),
    'shares, as one class has fewer': (
        [[1, 9], [1, 9], [9, 1], [1, 9]], [0, 0, 0, 1], 2, [1, 0]),
    'equal shares': ([[1, 5], [3, 4]], [0, 1], 2, [0, 1]),
    'equal shares, one class nearer to both': (
        [[1, 3], [5, 6]], [0, 1], 2, [0, 1]),
    'a cluster without known samples': (
        [[1, 9, 7], [9, 1, 3]], [0, 1], 2, [0, 1, 1]),
    'a class without known samples': (  # Of distance 0, were it counted.
        [[1, 9, 7], [9, 1, 8]], [0, 2], 3, [0, 2, 0]),
    'no known samples': ([[1, 9], [9, 1]], [None, None], 2, [0, 1]),
    'rows of zeros': (
        [[1, 9], [9, 1], [1, 9], [1, 9]], [1, 0, None, None], 2, [1, 0]),
}


@pytest.mark.parametrize('case', NAMED)
def test_clusters_are_named_by_those_who_are_known(case):
  far, labels, classes, want = NAMED[case]
  one_hot = np.float32([
      np.zeros(classes) if y is None else np.eye(classes)[y] for y in labels
  ])
  named = np.asarray(NAMES(np.float32(far), one_hot))
  np.testing.assert_array_equal(named.sum(1), 1)
  np.testing.assert_array_equal(named.argmax(1), want)


def test_a_score_is_the_distance_to_the_nearest_cluster_of_the_class():
  far = np.float32([[1, 2, 3], [6, 5, 4]])
  named = np.float32([[1, 0, 0], [0, 0, 1], [0, 0, 1]])
  np.testing.assert_allclose(
      jax.jit(nearness)(far, named), [[-1, -4, -2], [-6, -7, -4]]
  )


def test_scores_of_many_classes_take_the_memory_of_one_row_a_sample():
  """And not of one for each class: 15 GiB of 4096 samples and 1000 classes."""
  far = jax.ShapeDtypeStruct((512, 200), jnp.float32)
  named = jax.ShapeDtypeStruct((200, 200), jnp.float32)
  made = jax.jit(nearness).lower(far, named).compile()
  assert made.memory_analysis().temp_size_in_bytes < 20 * 512 * 200


# In a federation.


def test_seeds_and_strengths_are_one_program():
  d, y = apart(3, noise=0.5)
  run, traced = attacks.gradient_clustering(starts=2).run, []

  @jax.jit
  @functools.partial(jax.vmap, in_axes=(None, 0))
  @functools.partial(jax.vmap, in_axes=(0, None))
  def grid(seed, std):
    traced.append(std)
    key, noise = jax.random.split(jax.random.key(seed))
    sent = d + std * jax.random.normal(noise, d.shape, jnp.float32)
    return run(key, RecordedGradients(sent[:6], jnp.eye(3)[y[:6]], sent))

  seeds, strengths = np.arange(2), np.float32([0, 0.1, 0.3])
  many = np.asarray(grid(seeds, strengths))
  grid(seeds + 2, strengths / 2)
  assert len(traced) == 1 and many.shape == (3, 2, 60, 3)
  for i, std in enumerate(strengths):  # Wherever and beside whatever it is.
    moved = grid(seeds[::-1], np.float32([9, std, 9]))
    np.testing.assert_allclose(moved[1, 0], many[i, 1], atol=1e-4)
  assert len(traced) == 1


@functools.cache
def digits():
  """A round of all of scikit-learn's digits, before training."""
  x, y = load_digits(return_X_y=True)
  x = np.float32(x / 16)
  batch = Batch((x[:, :32], x[:, 32:]), np.eye(10, dtype=np.float32)[y])
  vfl = algorithms.vhnn([nets.mlp(32, 16)] * 2, top=nets.mlp(32, 10))
  return vfl, batch, y


@pytest.mark.parametrize('name, strength, low, high', [
    ('none', None, 0.95, 1),
    pytest.param('gradient_compression', 0.25, 0.8, 1, marks=pytest.mark.slow),
    pytest.param('discrete_sgd', 12, 0.95, 1, marks=pytest.mark.slow),
    ('iso', 3.0, 0.05, 0.2),
])
def test_what_it_reads_through(name, strength, low, high):
  """Ten classes, behind a top: what the module's docstring says of defenses."""
  vfl, batch, y = digits()
  made = defenses.REGISTRY[name].factory
  defense = made() if strength is None else made(strength)

  @jax.jit
  def run():
    txs = (optax.sgd(0.1),) * 2
    k_init, k_play, k_see, k_run = jax.random.split(KEY, 4)
    state = protocol.init(k_init, vfl, defense, txs, batch)
    _, played = protocol.play_round(k_play, vfl, defense, txs, state, batch)
    rounds = jax.tree.map(lambda x: x[None], played._replace(state=()))
    return k_run, *views.recorded_gradients(k_see, 1, rounds, 4)

  key, view, known = run()
  scores = np.asarray(attack()(key, view))  # One program for all defenses.
  known = np.asarray(known)
  assert known.sum() == 40
  hit = (scores.argmax(1) == y)[known == 0]
  assert low <= hit.mean() <= high
