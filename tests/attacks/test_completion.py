"""Completing a network: batches, their keys, statistics."""
import math
import sys

import jax
from jax.experimental import checkify
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.small_networks import drawn
from vfljax import algorithms, attacks, completion, nets
from vfljax.attack import recipe_of
from vfljax.attacks import local_model, model_completion, scratch
from vfljax.attacks.model_completion import mlp_head
from vfljax.completion import Samples, Schedule, complete
from vfljax.nets.heads import normalized_head
from vfljax.scene import Scene
from vfljax.types import Net
from vfljax.views import TrainedBottom

KEY = jax.random.key(0)
X = jnp.asarray(np.eye(8, 3, dtype=np.float32))
Y = jnp.asarray(np.eye(2, dtype=np.float32)[np.arange(8) % 2])
NORMED = nets.mlp(4, 2, norm='batch')


def in_batches(key, net=None):
  """Two epochs of three batches, by a linear network."""
  linear = lambda w, x: x @ w
  return complete(
      key, Schedule(2, 3, 1), linear, jnp.zeros((3, 2)), Samples(X, Y, X), net
  )


@pytest.mark.parametrize('seed', range(4))
def test_rows_that_fill_up_a_batch_are_no_samples(seed):
  """Of three known samples the second batch of two has one."""
  key, x, y = jax.random.key(seed), np.eye(3), np.eye(2)[[0, 1, 0]]
  found = complete(
      key, Schedule(1, 2, 1, 0.5, 'sgd'), lambda w, x: x @ w,
      jnp.zeros((3, 2)), Samples(*map(jnp.float32, (x, y, x))),
  )
  order = jax.random.permutation(jax.random.split(key, 1)[0], 3)
  w = np.zeros((3, 2))
  for rows in (order[:2], order[2:]):
    odds = np.exp(x[rows] @ w)
    miss = odds / odds.sum(-1, keepdims=True) - y[rows]
    w -= 0.5 * x[rows].T @ miss / len(rows)
  np.testing.assert_allclose(found[0], x @ w, rtol=1e-5)


def test_checkify_takes_no_padding_for_a_mistake():
  learn = lambda carry, key, x, y: carry + y.sum()
  epoch = completion._epoch(learn, Samples(X, Y, X), 3)
  error, (seen, _) = checkify.checkify(epoch, checkify.index_checks)(0.0, KEY)
  error.throw()
  assert seen == len(Y)


def test_each_batch_is_trained_with_a_key_of_its_own(monkeypatch):
  """Nor is it, or what it was split from, one that drew the epoch's order."""
  seen, taken, permutation = [], [], jax.random.permutation

  def ordered(key, n):
    parts = jax.random.split(key)
    parts = [parts, *map(jax.random.split, parts)]
    jax.debug.callback(
        lambda *data: taken.extend(k.tobytes() for d in data for k in d),
        *map(jax.random.key_data, parts)
    )
    return permutation(key, n)

  def train(w, key, x):
    jax.debug.callback(
        lambda k: seen.append(k.tobytes()), jax.random.key_data(key)
    )
    return x @ w, ()

  with monkeypatch.context() as patch:
    patch.setattr(jax.random, 'permutation', ordered)
    in_batches(KEY, Net(lambda key, x: {}, lambda w, x: x @ w, train))
    jax.effects_barrier()
  assert len(seen) == len(set(seen)) == 6
  assert taken and not set(taken) & set(seen)
  core = pytest.importorskip('jax.experimental.key_reuse._core')
  core.check_key_reuse(in_batches, KEY)


def test_rows_that_fill_up_a_batch_are_in_no_statistic():
  params, tx = drawn(NORMED, X), optax.sgd(0.1)

  @jax.jit
  def after(x, y):
    carry = params, tx.init(params)
    return completion._learn(NORMED.apply, NORMED, tx, carry, KEY, x, y)[0]

  real, padded = after(X[:3], Y[:3]), after(
      X[:5].at[3:].set(9.0), Y[:5].at[3:].set(0.0)
  )
  jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), real, padded
  )
  assert not np.allclose(*(  # They were measured.
      jax.tree.leaves(p['batch_stats'])[0] for p in (params, real)
  ))


def centered():
  """A network whose statistics have no name: its weights are a tuple."""

  def train(params, key, x):
    return (x - x.mean(0)) @ params[0], x.mean(0)

  return Net(
      lambda key, x: (jnp.ones((x.shape[1], 2)), jnp.zeros(x.shape[1])),
      lambda params, x: (x - params[1]) @ params[0], train,
      lambda params, mean: (params[0], mean),
  )


@pytest.mark.parametrize('make', [model_completion, scratch, local_model])
def test_samples_without_labels_are_skipped(make):
  """Loss, gradients and statistics are those of the labeled ones alone.

  By SGD: Adam makes steps of what rounding leaves of gradients that are zero.
  """
  bottom = nets.make('vgg13', width=4, channels=(2,), hidden=(3,))
  head = nets.mlp(5, 3, norm='batch')
  rng = np.random.default_rng(0)
  x = rng.normal(size=(9, 4, 2, 1)).astype(np.float32)
  labels, told = np.eye(3, dtype=np.float32)[np.arange(9) % 3], [0, 4, 5, 8]
  schedule = Schedule(3, stages=3, learning_rate=0.5, optimizer='sgd')
  attack = (
      local_model(nets.then(bottom, head), schedule) if make is local_model
      else make(bottom, head, schedule)
  )
  weights = drawn(bottom, x)
  alone = TrainedBottom(weights, x[told], labels[told], x)
  blank = np.zeros_like(labels)
  blank[told] = labels[told]
  few, among = jax.jit(lambda *views: [
      attack.run(jax.random.key(1), view) for view in views
  ])(alone, alone._replace(labeled_features=x, labeled=blank))
  np.testing.assert_allclose(few, among, rtol=1e-3, atol=1e-3)
  assert np.abs(few[0] - few[2]).max() > 0.01


@pytest.mark.parametrize('head, trains', [
    (NORMED, True), (nets.mlp(2), False), (normalized_head(2), True),
    (centered(), True), (nets.mlp(4, 2, dropout=0.5), False),
])
def test_networks_with_statistics_are_trained_by_their_training_pass(
    head, trains, monkeypatch
):
  """Of a frozen bottom its head, else both, and a model of one's own."""
  seen = []

  def noted(*given):
    net, params = given[5], given[3]
    seen.append(net.run(params, KEY, given[4].known)[1] if net else ())
    return jnp.zeros((1, 8, 2))

  monkeypatch.setattr(
      sys.modules['vfljax.attacks.model_completion'], 'complete', noted
  )
  bottom = nets.mlp(3)
  view = TrainedBottom(drawn(bottom, X), X, Y, X)
  for attack in (
      model_completion(bottom, head, tune=True),
      model_completion(bottom, head, tune=False), local_model(head),
  ):
    jax.eval_shape(attack.run, KEY, view)
  assert len(seen) == 3
  assert [bool(jax.tree.leaves(stats)) for stats in seen] == [trains] * 3


def test_statistics_by_any_name_are_measured_and_not_learned():
  """Two steps at a high rate: each is of the batch, by hand."""
  net, rate = centered(), 3.0
  start = net.init(KEY, X)
  run = lambda x: completion.best(
      KEY, Schedule(2, 0, 1, rate, 'sgd'), net, start, Samples(x, Y, x),
      lambda guess: guess[0, 0],
  )
  w, x, y = np.ones((3, 2)), *map(np.asarray, (X, Y))
  for _ in range(2):
    z = np.exp((x - x.mean(0)) @ w)
    z /= z.sum(1, keepdims=True)
    w -= rate * (x - x.mean(0)).T @ (z - y) / len(y)
  found = jax.jit(run)(X)
  np.testing.assert_allclose(found, (x - x.mean(0))[0] @ w[:, 0], rtol=1e-5)


def test_no_gradient_moves_the_statistics_of_an_inference_head():
  head = normalized_head(2)
  params = jax.tree.map(
      lambda s: np.ones(s.shape, 'f4'), jax.eval_shape(head.init, KEY, X)
  )
  pull = jax.jit(jax.grad(lambda p: head.apply(p, X).sum()))
  slope = jax.tree.map(np.asarray, pull(params)[0])
  assert not slope['mean'].any() and not slope['var'].any()
  assert slope['scale'].any()


@pytest.mark.parametrize('field', ['bottom_rate', 'weight_decay'])
@pytest.mark.parametrize('value', [math.inf, math.nan])
def test_a_schedule_is_of_finite_numbers(field, value):
  with pytest.raises(ValueError, match=field):
    completion.check(Schedule()._replace(**{field: value}))


@pytest.mark.parametrize('net, epochs, stages', [
    pytest.param(NORMED, 7, 3, marks=pytest.mark.slow), (NORMED, 4, 4),
    (nets.mlp(4, 2), 7, 3),
    pytest.param(nets.mlp(4, 2), 4, 4, marks=pytest.mark.slow),
])
def test_the_best_is_the_largest_score_of_all_guesses(net, epochs, stages):
  """Of networks with statistics, too; the first epoch of 7 has no guess."""
  how = Schedule(epochs, 3, stages, 0.5, 'sgd')
  given = KEY, how, net.apply, drawn(net, X), Samples(X, Y, X[:5])
  score = lambda guess: (guess - Y[:5]).std()
  # The smallest, too, whose negative is below zero.
  scores = score, lambda guess: -score(guess)

  @jax.jit
  def of_all():
    best = [completion.best(KEY, how, net, *given[3:], s) for s in scores]
    return best, complete(*given, completion.with_statistics(
        net, given[3], X
    ))

  found, guesses = of_all()
  assert len(guesses) == stages
  np.testing.assert_allclose(
      found, [max(map(s, guesses)) for s in scores], rtol=1e-5
  )


def test_a_stage_without_a_score_hides_no_others():
  net = nets.mlp(4, 2)
  given = KEY, Schedule(3, 3, 3, 0.5, 'sgd'), net, drawn(net, X)
  samples, score = Samples(X, Y, X[:5]), lambda guess: (guess - Y[:5]).std()

  @jax.jit
  def both():
    guesses = complete(*given[:2], net.apply, given[3], samples)
    first = lambda guess: jnp.abs(guess - guesses[0]).max() < 1e-4
    broken = lambda guess: jnp.where(first(guess), jnp.nan, score(guess))
    nothing = lambda guess: jnp.nan * score(guess)
    return guesses, [
        completion.best(*given, samples, s) for s in (broken, nothing)
    ]

  guesses, (found, none) = both()
  np.testing.assert_allclose(found, max(map(score, guesses[1:])), rtol=1e-5)
  assert np.isnan(none)


def test_so_many_epochs_are_those_of_a_schedule_that_has_no_more():
  """A cosine ends with them, too; nothing after them counts."""
  net = nets.mlp(4, 2)
  begun, samples = drawn(net, X), Samples(X, Y, X)
  how = lambda n: Schedule(n, 3, n, 0.5, 'sgd', 'cosine')
  last = lambda guess: guess[0, 0]
  found = jax.jit(lambda n: completion.best(
      KEY, how(9), net, begun, samples, last, epochs=n
  ))
  for epochs in (1, 4, 9):
    guesses = complete(KEY, how(epochs), net.apply, begun, samples)
    np.testing.assert_allclose(
        found(epochs), max(map(last, guesses)), rtol=1e-5
    )
  with pytest.raises(ValueError, match='9 epochs it has 3 stages'):
    completion.best(
        KEY, how(9)._replace(stages=3), net, begun, samples, last, epochs=3
    )


def test_a_local_model_needs_a_network_of_its_own():
  made = recipe_of(attacks.REGISTRY['local_model'])
  vfl = algorithms.vsnn([nets.mlp(4)], nets.mlp(2))
  with pytest.raises(ValueError, match='local_model needs a network: `Scene.o'):
    made.make(made.options(), Scene(2), vfl)


@pytest.mark.parametrize('hidden', [(), (5, 3)])
def test_an_inference_head_ends_in_the_classes(hidden):
  shapes = jax.eval_shape(
      mlp_head(4, *hidden).init, jax.random.key(0),
      jnp.ones((2, 6)),
  )
  found = [w.shape for w in jax.tree.leaves(shapes) if w.ndim == 2]
  assert found == [*zip((6, *hidden), (*hidden, 4))]
