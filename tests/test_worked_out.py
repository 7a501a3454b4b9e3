"""Small formulas by numbers worked out by hand: CLUB, metrics, a round, epochs.
"""
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import special

from vfljax import (
    algorithms, club, epochs, measure, metrics, nets, protocol, tuning,
)
from vfljax.adversary import Adversary
from vfljax.attack import Attack
from vfljax.defense import Defense, none, slots
from vfljax.plan import Best, Run
from vfljax.types import Batch, Messages, Net, Round, State
from vfljax.views import CutGradients

KEY = jax.random.key(0)


def test_a_class_is_as_likely_as_the_softmax_of_its_row():
  logits = np.array([[0.0, 1.0, 3.0], [2.0, 0.0, -1.0]])
  y = np.array([[0, 0, 1], [0.5, 0.5, 0]])
  expected = (y * special.log_softmax(logits, 1)).sum(1)
  found = club.log_categorical(jnp.asarray(logits), jnp.asarray(y))
  np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize('weights', [None, [1.0] * 200, [0.0, 1.0] * 100])
def test_negatives_are_drawn_for_each_row(weights):
  y = np.arange(200)
  found = np.asarray(club.negatives(
      KEY, y, None if weights is None else jnp.array(weights)
  ))
  rare = weights is not None and 0 in weights
  assert len(np.unique(found)) > (60 if rare else 100)
  assert not rare or (found % 2 == 1).all()


def test_the_signals_range_is_squared_as_the_noise_is():
  x = jnp.zeros((8, 8, 1))
  np.testing.assert_allclose(
      metrics.psnr(x, x + 0.5, data_range=5.0), 20, rtol=1e-6
  )


@pytest.mark.parametrize('best, sign', [('score', 1.0), ('-score', -1.0)])
def test_of_equally_good_epochs_the_first_is_kept(best, sign):
  kept = Best(jnp.array(2 * sign), jnp.array(3), jnp.array(3))
  plan: Any = SimpleNamespace(best=best)

  def after(score):
    run = Run(KEY, jnp.array(4), (), kept)
    return epochs._keep_best(plan, run, dict(score=jnp.array(score)), 4).best

  assert after(2.0).epoch == after(2.0).state == 3
  assert after(2 - 0.1 * sign).epoch == 3
  better = after(2 + 0.1 * sign)
  assert better.epoch == better.state == 4
  np.testing.assert_allclose(better.score, 2 * sign + 0.1)


def test_no_errors_are_fewer_than_one_in_numbers_without_a_sign():
  kept = Best(jnp.array(-1.0), jnp.array(3), jnp.array(3))
  plan: Any = SimpleNamespace(best='-errors')
  run = Run(KEY, jnp.array(4), (), kept)
  for errors, epoch in (0, 4), (2, 3):
    measured = dict(errors=jnp.uint32(errors))
    assert epochs._keep_best(plan, run, measured, 4).best.epoch == epoch


def test_every_party_steps_by_its_own_optimizer():
  vfl = algorithms.vsnn([nets.mlp(2)], nets.mlp(2))
  x = np.random.default_rng(0).normal(size=(6, 3)).astype('f4')
  labels = np.eye(2, dtype=np.float32)[np.arange(6) % 2]
  data = Batch((None, jnp.asarray(x)), jnp.asarray(labels))
  txs = (optax.sgd(5.0), optax.sgd(0.1))

  @jax.jit
  def both():
    state = protocol.init(KEY, vfl, none(), txs, data)
    return state, *protocol.play_round(KEY, vfl, none(), txs, state, data)

  before, after, played = both()
  jax.tree.map(
      lambda old, new, g: np.testing.assert_allclose(
          new, old - 0.1 * g, rtol=1e-5, atol=1e-7
      ), before.parties[1].params['bottom'], after.parties[1].params['bottom'],
      played.gradients[0],
  )


# How attacks are measured.


def test_the_loss_of_a_model_is_its_mean():
  logits = np.float32([[0, 1, 3], [2, 0, 1]])
  labels = np.eye(3, dtype=np.float32)[[0, 0]]
  expected = -special.log_softmax(logits, 1)[:, 0].mean()
  found = jax.jit(measure.of_model)(logits, labels)
  np.testing.assert_allclose(found['loss'], expected, rtol=1e-6)


@pytest.mark.parametrize('pool', ['epoch', 'round'])
def test_facts_are_averaged_over_rounds(pool):
  attack = Attack(
      CutGradients, lambda key, view: view.valid,
      facts=lambda view: dict(size=view.received.mean()),
  )
  watch, digest = measure.watcher(dict(a=attack), none(), pool=pool)
  labels = jnp.asarray(np.eye(2, dtype=np.float32)[np.arange(4) % 2])

  def row(size):
    d = (jnp.full((4, 1), size),)
    return watch(KEY, Round(
        State((), ()), Batch((None, *d), labels), Messages(d, d),
        jnp.zeros(()), (),
    ))

  @jax.jit
  def digests():
    rows = jax.vmap(row)(jnp.array([1.0, 2.0, 6.0]))
    smaller = jax.vmap(row)(jnp.array([7.0]))
    return digest(rows), digest(rows, smaller)

  alone, both = digests()
  np.testing.assert_allclose(alone['a']['size'], 3)
  np.testing.assert_allclose(both['a']['size'], 4)


def test_a_nan_of_a_row_that_does_not_count_is_no_divergence():
  guessed = measure.Guessed(
      np.float32([[0.1, 0.9, np.nan]]),
      np.float32([[[1, 0], [0, 1], [0, 0]]]), np.float32([[1, 1, 0]]),
  )
  _, digest = measure.watcher(dict(a=None), none(), pool='round')
  found = jax.jit(digest)(dict(a=measure.Watched(guessed, {})))
  assert found['a']['leak_auc'] == 1


# Choosing a strength.


def test_a_strength_is_tried_on_parts_of_its_own(monkeypatch):
  """Of 20 numbers, 5 in a part: what is trained on, and what is scored."""
  asked = []

  def fit(key, vfl, defense, txs, part, **how):
    asked.append((how['epochs'], how['batch_size'], how['every']))
    mine, = part.features
    leaks = jnp.stack([jnp.zeros(()), (2.0**mine).sum()])
    return mine, dict(watch=dict(a=dict(leak_auc=leaks)))

  def predict(key, vfl, defense, mine, features):
    asked.append(features[0].shape == mine.shape == (5,))
    return jnp.stack([-mine, mine], 1)  # Right of all: those from 10 on.

  monkeypatch.setattr(tuning.train, 'fit', fit)
  monkeypatch.setattr(tuning.protocol, 'predict', predict)
  numbers = np.arange(20, dtype=np.float32)
  labels = np.eye(2, dtype=np.float32)[(numbers >= 10).astype(int)]
  data = Batch((jnp.asarray(numbers),), jnp.asarray(labels))
  found = tuning.least_ratio(
      KEY, lambda strength: none(), np.array([3.0, 2.0]), None, (), data,
      dict(a=None),
      tuning.Trial(0.25, repeats=4, epochs=7, batch_size=2),
  )
  assert asked == [(7, 2, 7), True] * (len(asked) // 2)
  parts = found.leak[..., 0].astype(int)
  assert [f'{part:b}'.count('1') for part in parts[0]] == [5] * 4
  assert len({*parts[0]}) == 4  # Another part each time,
  np.testing.assert_array_equal(parts[0], parts[1])  # not each strength.


def test_one_class_of_one_round_that_diverged_is_enough():
  """Among full rounds, where the smaller one's are numbers."""
  fine = measure.Guessed(
      np.float32([[[0.1, 0.9], [0.9, 0.1]]]), np.float32([[[0, 1], [1, 0]]]),
      np.ones((1, 2), np.float32),
  )
  gone = fine._replace(scores=np.float32([[[np.nan, 0.9], [0.9, 0.1]]]))
  _, digest = measure.watcher(dict(a=None), none(), pool='round')
  found = jax.jit(lambda *rounds: digest(
      *(dict(a=measure.Watched(guessed, {})) for guessed in rounds)
  )['a']['accuracy'])
  assert found(fine, fine) == 1
  assert np.isnan(found(gone, fine))


def test_scores_are_of_the_second_class_and_of_rows_that_count():
  """A mixed row is of the class that it is mostly of; the last is known."""
  scores = np.float32([[.9, .1], [.2, .5], [.4, .5], [.8, .3], [0, 9]])
  labels = np.float32([[1, 0], [.3, .7], [.6, .4], [0, 1], [1, 0]])
  found = jax.jit(measure.of_labels)(
      measure.Guessed(scores, labels, np.float32([1, 1, 1, 1, 0]))
  )
  # .3 and -.5 against -.8 and .1: three of four pairs are in order.
  np.testing.assert_allclose(found['leak_auc_raw'], 0.75)
  np.testing.assert_allclose(found['accuracy'], 0.5)


@pytest.mark.parametrize('low, high', [
    (np.uint8(0), np.uint8(1)), (np.int8(-128), np.int8(127)), (False, True),
])
def test_whole_numbers_are_scores(low, high):
  """The difference of unsigned ones wraps around: what was right was wrong."""
  labels = np.eye(2, dtype=np.float32)[[0, 1, 0, 1]]
  scores = np.where(labels > 0, high, low)
  found = measure.of_labels(measure.Guessed(scores, labels, np.ones(4)))
  assert found['leak_auc_raw'] == found['accuracy'] == 1
  stages = measure.of_completion(scores[None], labels)
  assert stages['auc_last'] == stages['accuracy_last'] == 1


def test_the_auc_of_a_model_is_that_of_its_second_class():
  logits = np.float32([[0, 1], [3, 0], [0, 0], [0, -1]])
  labels = np.eye(2, dtype=np.float32)[[1, 0, 0, 1]]
  found = jax.jit(measure.of_model)(logits, labels)
  np.testing.assert_allclose(found['auc'], 0.75)  # -1 is below 0.
  np.testing.assert_allclose(found['accuracy'], 0.75)


def test_the_first_of_several_attackers_has_no_number():
  assert [measure.label('a', k, (2, 1)) for k in (2, 1)] == ['a', 'a@1']


# Federations.


@pytest.mark.parametrize('name, expected', [
    ('concat', [[1, 2, 3, -4]]), ('sum', [[4, -2]]), ('mean', [[2, -1]]),
    ('max', [[3, 2]]), ('product', [[3, -8]]),
])
def test_embeddings_are_put_together_as_named(name, expected):
  us = (None, jnp.array([[1.0, 2]]), jnp.array([[3.0, -4]]))
  np.testing.assert_array_equal(
      algorithms.plain(name).apply((), us), expected
  )


IDENTITY = Net(lambda key, x: jnp.zeros(()), lambda w, x: x + w)


def played(net, defense=none(), adversary=Adversary()):
  """The data of a round of three parties that add up, what is after it, and
  the round: as `(features, labels), state, round`."""
  x = np.random.default_rng(0).normal(size=(3, 6, 2)).astype('f4')
  labels = np.eye(2, dtype=np.float32)[np.zeros(6, int)]
  data = Batch(tuple(x), jnp.asarray(labels))
  vfl = algorithms.vhnn([net] * 3, net, 'sum')
  txs = (optax.sgd(0.1),) * 3

  @jax.jit
  def both(data):
    state = protocol.init(KEY, vfl, defense, txs, data, adversary)
    return protocol.play_round(KEY, vfl, defense, txs, state, data, adversary)

  return data, *both(data)


def test_everyone_absorbs_statistics_of_its_own_pass():
  net = IDENTITY._replace(
      train=lambda w, key, x: (x + w, x.sum()), absorb=lambda w, stat: stat
  )
  data, state, _ = played(net)
  for x, party in zip(data.features, state.parties):
    np.testing.assert_allclose(party.params['bottom'], x.sum(), rtol=1e-5)
  np.testing.assert_allclose(
      state.parties[0].params['top'], sum(x.sum() for x in data.features),
      rtol=1e-5,
  )


def test_an_attacker_goes_on_with_what_it_made_of_its_gradient():
  liar = Adversary(
      (2,), receive=lambda state, key, own: tuple(2 * d for d in own)
  )
  _, _, round_ = played(IDENTITY, none(), liar)
  down = [d.sum() for d in round_.messages.down]
  np.testing.assert_allclose(
      round_.gradients, [down[0], 2 * down[1]], rtol=1e-5
  )


@pytest.mark.parametrize('own', [False, True])
def test_who_is_told_which_labels_and_which_memory(own):
  """`adapt` and the loss get what `label` made, `gradient` the true labels;
  what `adapt` left is what the hooks after it have."""
  defense = Defense(
      init=lambda key, spec: slots(spec, state=jnp.array(0.0)),
      label=lambda state, key, labels: labels[:, ::-1],
      adapt=lambda state, key, predict, up, labels: 1 + 10 * labels[0, 0],
      receive=lambda active, state, key, up, labels: (up, 2 * state),
      objective=(lambda state, *others: state) if own else None,
      gradient=lambda state, key, cut, labels: (cut, state + 20 * labels[0, 0]),
  )
  data, state, round_ = played(IDENTITY, defense)
  logits = np.sum(data.features, axis=0)
  task = 1 if own else -special.log_softmax(logits, 1)[:, 1].mean()
  np.testing.assert_allclose(round_.loss, 2 + task, rtol=1e-5)
  np.testing.assert_allclose(state.defense, 21)
