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
    algorithms, club, epochs, measure, metrics, nets, protocol,
)
from vfljax.attack import Attack
from vfljax.defense import none
from vfljax.plan import Best, Run
from vfljax.types import Batch, Messages, Round, State
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
  y = jnp.arange(200)
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


def test_every_party_steps_by_its_own_optimizer():
  vfl = algorithms.vsnn([nets.mlp(2)], nets.mlp(2))
  x = jax.random.normal(KEY, (6, 3))
  data = Batch((None, x), jnp.eye(2)[jnp.arange(6) % 2])
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
  logits = jnp.array([[0.0, 1.0, 3.0], [2.0, 0.0, 1.0]])
  labels = jnp.eye(3)[jnp.array([0, 0])]
  expected = optax.softmax_cross_entropy(logits, labels).mean()
  np.testing.assert_allclose(
      measure.of_model(logits, labels)['loss'], expected, rtol=1e-6
  )


@pytest.mark.parametrize('pool', ['epoch', 'round'])
def test_facts_are_averaged_over_rounds(pool):
  attack = Attack(
      CutGradients, lambda key, view: view.valid,
      facts=lambda view: dict(size=view.received.mean()),
  )
  watch, digest = measure.watcher(dict(a=attack), none(), pool=pool)
  labels = jnp.eye(3)[jnp.arange(4) % 3]

  def row(size):
    d = (jnp.full((4, 1), size),)
    return watch(KEY, Round(
        State((), ()), Batch((None, *d), labels), Messages(d, d),
        jnp.zeros(()), (),
    ))

  rows = jax.vmap(row)(jnp.array([1.0, 2.0, 6.0]))
  smaller = jax.vmap(row)(jnp.array([7.0]))
  np.testing.assert_allclose(digest(rows)['a']['size'], 3)
  np.testing.assert_allclose(digest(rows, smaller)['a']['size'], 4)


def test_a_nan_of_a_row_that_does_not_count_is_no_divergence():
  guessed = measure.Guessed(
      jnp.array([[0.1, 0.9, jnp.nan]]),
      jnp.array([[[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]]),
      jnp.array([[1.0, 1.0, 0.0]]),
  )
  _, digest = measure.watcher(dict(a=None), none(), pool='round')
  assert digest(dict(a=measure.Watched(guessed, {})))['a']['leak_auc'] == 1
