"""Gradient inversion: what a passive party learns from the gradient of its own
weights."""
import functools
from pathlib import Path
import sys

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.vlr_rounds import vlr_round
from vfljax import algorithms, metrics, nets, protocol, views
from vfljax.attacks import gradient_inversion
from vfljax.attacks.gradient_inversion import (
    Dummies, Search, added, fuse_of, invert,
)
from vfljax.defense import none
from vfljax.defenses import fedpass
from vfljax.measure import Guessed
from vfljax.runner.compiled import replay
from vfljax.scene import Scene
from vfljax.types import Batch, Net

GOLDEN = (
    Path(__file__).parents[1] / 'golden/bli_gradient_matching_secretflow.npz'
)
KEY = jax.random.key(0)


def peer_bottom(golden, case):
  """The peer's network, Linear, tanh, Linear, with weights as it names them."""
  names = ('base_0.weight', 'base_0.bias', 'base_2.weight', 'base_2.bias')
  weights = [jnp.asarray(golden[f'{case}_{name}']) for name in names]

  def apply(w, x):
    return jnp.tanh(x @ w[0].T + w[1]) @ w[2].T + w[3]

  return Net(lambda key, x: weights, apply), weights


@pytest.mark.parametrize('case', ['sum_b8c4', 'sum_b1c3'])
def test_dummy_labels_follow_the_peers(case):
  with np.load(GOLDEN) as file:
    golden = dict(file)
  bottom, weights = peer_bottom(golden, case)
  real = [jnp.asarray(golden[f'{case}_realgrad_{i}']) for i in range(4)]
  start = Dummies(
      golden[f'{case}_init_dummy_hidden'], golden[f'{case}_init_dummy_label']
  )
  for steps in (5, 500):
    found, _ = jax.jit(
        lambda start, steps=steps: invert(
            bottom, weights, golden[f'{case}_x'], real, start, Search(steps)
        )
    )(start)
    expected = golden[f'{case}_dummy_label_after{steps}']
    np.testing.assert_allclose(found.labels, expected, atol=1e-4)


def test_gradient_inversion_beats_guessing_and_knows_its_best_restart():
  vfl, played = vlr_round(2, 6, 12)
  view = views.model_gradients(jax.random.key(0), 1, none(), played)
  attack = gradient_inversion(vfl.bottom(1), 2, Search(300, 3, 0.05))
  guess = jax.jit(attack.run)(jax.random.key(1), view)
  assert guess.shape == (6, 2)
  assert metrics.accuracy(guess, played.batch.labels) >= 5 / 6


def test_padding_is_not_searched_for():
  vfl, played = vlr_round(2, 6, 12)
  view = views.model_gradients(jax.random.key(0), 1, none(), played)
  start = Dummies(jnp.ones((6, 1)), jnp.ones((6, 2)))
  real = jnp.arange(6) < 4

  @jax.jit
  def both(start):
    search = lambda x, start, valid: invert(
        vfl.bottom(1), view.weights, x, view.gradients, start, Search(5),
        valid=valid,
    )
    whole = search(view.features, start, real)
    few = jax.tree.map(lambda x: x[:4], start)
    return whole, search(view.features[:4], few, None)

  whole, few = both(start)
  np.testing.assert_allclose(whole[1], few[1], rtol=1e-4)
  np.testing.assert_allclose(whole[0].labels[:4], few[0].labels, atol=1e-4)


def test_the_restart_that_explains_the_gradient_best_is_believed(monkeypatch):
  """Searches that end where they began, and say so of how far they came."""
  seen = []

  def invert(bottom, weights, features, gradients, start, *rest):
    far = (start.labels ** 2).sum()
    jax.debug.callback(lambda *x: seen.append(x), start, far)
    return start, far

  module = sys.modules[Search.__module__]
  monkeypatch.setattr(module, 'invert', invert)
  vfl, played = vlr_round(2, 6, 12)
  view = views.model_gradients(jax.random.key(0), 1, none(), played)
  attack = gradient_inversion(vfl.bottom(1), 2, Search(1, 5))
  guess = attack.run(jax.random.key(1), view)
  jax.effects_barrier()
  starts, distances = zip(*seen)
  assert len({float(far) for far in distances}) == 5  # Each its own start.
  np.testing.assert_array_equal(guess, starts[np.argmin(distances)].labels)
  hidden = np.ravel(starts[0].hidden)
  labels = np.ravel(starts[0].labels)[: len(hidden)]
  assert np.corrcoef(hidden, labels)[0, 1] < 0.999


def test_a_search_is_given_its_round_and_what_it_supposes(monkeypatch):
  seen, fuse = [], lambda u, hidden: u * hidden

  def invert(bottom, weights, features, gradients, start, *rest):
    seen.extend(rest)
    return start, jnp.zeros(())

  monkeypatch.setattr(sys.modules[Search.__module__], 'invert', invert)
  vfl, played = vlr_round(2, 6, 12)
  view = views.model_gradients(jax.random.key(0), 1, none(), played)
  how = Search(3, 1, 0.7)
  gradient_inversion(vfl.bottom(1), 2, how, fuse).run(KEY, view)
  assert seen[:2] == [how, fuse]
  np.testing.assert_array_equal(seen[2], view.valid)


def test_a_search_says_how_far_it_is_where_it_ends():
  """After one step, Adam's first, which is as long as its rate."""
  vfl, played = vlr_round(2, 6, 12)
  view = views.model_gradients(jax.random.key(0), 1, none(), played)
  start = Dummies(jnp.ones((6, 1)), jnp.eye(2)[jnp.arange(6) % 2])

  @jax.jit
  def both(start):
    search = lambda start, how: invert(
        vfl.bottom(1), view.weights, view.features, view.gradients, start, how
    )
    found, far = search(start, Search(1, 1, 0.3))
    return found, far, search(found, Search(0))[1], search(start, Search(0))[1]

  found, far, there, before = both(start)
  np.testing.assert_allclose(
      np.abs(found.labels - start.labels), 0.3, rtol=1e-3
  )
  np.testing.assert_allclose(far, there, rtol=1e-4)
  assert abs(far - before) > 0.01 * far


# One linear layer, whose embeddings pass a map before they are summed.
LINEAR, MAP = nets.mlp(3), np.float32([[-0.5, 2, 1], [0.5, -1, 2], [2, 1, 0]])


def behind_a_map(batch=24, columns=64):
  """(what the attacker sees, the truth), by hand."""
  draw = np.random.default_rng(2).normal
  x, hidden = draw(size=(batch, columns)), 2 * draw(size=(batch, 3))
  labels = np.eye(3)[np.arange(batch) % 3]
  kernel, bias = 0.1 * draw(size=(columns, 3)), draw(size=3)
  logits = np.exp((x @ kernel + bias) @ MAP + hidden)
  sent = (logits / logits.sum(1, keepdims=True) - labels) @ MAP.T / batch
  tree = lambda *leaves: jax.tree.map(
      lambda w: jnp.float32(leaves[w.ndim == 1]),
      jax.eval_shape(LINEAR.init, KEY, jnp.float32(x)),
  )
  view = views.ModelGradients(
      jnp.float32(x), tree(kernel, bias), tree(x.T @ sent, sent.sum(0)),
      jnp.ones(batch),
  )
  return view, Dummies(
      jnp.float32(hidden), jnp.float32(30 * labels), jnp.asarray(MAP)
  )


def test_a_map_between_is_the_one_that_embeddings_pass():
  view, truth = behind_a_map()

  @jax.jit
  def off(between):
    return invert(
        LINEAR, view.weights, view.features, view.gradients,
        truth._replace(between=between), Search(0),
    )[1]

  assert off(MAP) < 1e-12
  for other in MAP.T, 1.1 * MAP, ():
    assert off(other) > 1e-4


def test_who_searches_for_a_map_reads_labels_behind_it():
  (view, truth), key = behind_a_map(), jax.random.key(1)

  @functools.partial(jax.jit, static_argnums=0)
  def matched(between):
    how = Search(400, 2, between=between)
    guess = gradient_inversion(LINEAR, 3, how).run(key, view)
    return replay._measured(Guessed(guess, truth.labels / 30, view.valid))

  plain, adaptive = (matched(b)['matched'] for b in ('nothing', 'linear'))
  assert plain < 0.8 < 0.9 < adaptive


def test_a_map_begins_small_with_luck_of_its_own(monkeypatch):
  seen = []

  def invert(bottom, weights, features, gradients, start, *rest):
    jax.debug.callback(seen.append, start)
    return start, jnp.zeros(())

  monkeypatch.setattr(sys.modules[Search.__module__], 'invert', invert)
  view, _ = behind_a_map()
  how = Search(1, 4, between='linear')
  jax.jit(gradient_inversion(LINEAR, 3, how).run)(KEY, view)
  jax.effects_barrier()
  maps = np.array([start.between for start in seen]).reshape(4, 9)
  assert len(set(maps[:, 0].tolist())) == 4 and 0.05 < maps.std() < 0.2
  for start, own in zip(seen, maps):
    for other in start.hidden, start.labels:
      assert np.corrcoef(own, np.ravel(other)[:9])[0, 1] < 0.999


def test_what_stands_between_is_nothing_or_linear():
  with pytest.raises(ValueError, match="between must be .*'linear'; got 'mlp'"):
    gradient_inversion(nets.mlp(1), 2, Search(between='mlp'))


def test_a_search_needs_a_step_and_a_start():
  for search, name in (Search(0, 1), 'steps'), (Search(1, 0), 'restarts'):
    with pytest.raises(ValueError, match=f'{name} must be .* at least 1'):
      gradient_inversion(nets.mlp(1), 2, search)


def a_batch():
  x = np.random.default_rng(9).normal(size=(2, 8, 4)).astype(np.float32)
  labels = np.eye(2, dtype=np.float32)[np.arange(8) % 2]
  return Batch(tuple(map(jnp.asarray, x)), jnp.asarray(labels))


@pytest.fixture(scope='module')
def passports():
  """A round under FedPass that starts at weights of a plain network."""
  vfl = algorithms.vhnn([nets.mlp(3, 2)] * 2, nets.mlp(2))
  vfl = vfl._replace(top=algorithms.plain())
  data, defense = a_batch(), fedpass.fedpass(side='passive')
  txs = (optax.sgd(0.1),) * 2
  state = protocol.init(KEY, vfl, defense, txs, data)
  play = jax.jit(
      lambda state: protocol.play_round(KEY, vfl, defense, txs, state, data)[1]
  )
  return vfl, defense, play(state)


def mismatch(vfl, played, view):
  """What gradient inversion gets for the true labels and embeddings."""
  own = played.state.parties[0].params['bottom']
  u = vfl.bottoms[0].apply(own, played.batch.features[0])
  truth = Dummies(u, 1e3 * played.batch.labels)
  return invert(
      vfl.bottom(1), view.weights, view.features, view.gradients, truth,
      Search(0), valid=view.valid,
  )[1]


def test_gradients_match_at_the_truth_with_the_weights_that_are_read(passports):
  vfl, defense, played = passports
  view = views.model_gradients(KEY, 1, defense, played)
  off = jax.jit(functools.partial(mismatch, vfl, played))
  assert off(view) < 1e-10
  raw = played.state.parties[1].params['bottom']
  trained, = played.gradients
  for other in (
      view._replace(weights=raw), view._replace(gradients=trained),
      view._replace(weights=raw, gradients=trained),
  ):
    assert off(other) > 1e-4


def test_a_white_box_has_the_same_network_and_gradients(passports):
  _, defense, played = passports
  x, one = played.batch.features[1], views.own_gradients(1, played)
  rows = jnp.arange(len(x))[None]
  box = views.white_box(KEY, 1, defense, played.state, one, rows, x)
  view = views.model_gradients(KEY, 1, defense, played)
  chex.assert_trees_all_equal(box.weights['bottom'], view.weights)
  chex.assert_trees_all_equal(box.gradients['bottom'], view.gradients)
  assert not box.blank.any()


def test_of_averaged_embeddings_it_supposes_the_average():
  """At the truth its gradient is the round's: the others' sum is `hidden`."""
  net, classes = nets.mlp(4), 4
  vfl = algorithms.vhnn([net] * 3, net)._replace(top=algorithms.plain('mean'))
  rng = np.random.default_rng(0)
  draw = lambda *shape: jnp.asarray(rng.normal(size=shape), jnp.float32)
  labels, txs = jnp.eye(classes)[jnp.arange(6) % classes], (optax.sgd(0.1),) * 3
  scene = Scene(classes, trainable_top=False, aggregation='mean')

  @jax.jit
  def misfits(data):
    state = protocol.init(KEY, vfl, none(), txs, data)
    played = protocol.play_round(KEY, vfl, none(), txs, state, data)[1]
    view = views.model_gradients(KEY, 1, none(), played)
    own = net.apply(state.parties[0].params['bottom'], data.features[0])
    truth = Dummies(own + played.messages.up[1], 40 * data.labels)
    return [invert(
        net, view.weights, view.features, view.gradients, truth,
        Search(1, 1, 1e-9), fuse,
    )[1] for fuse in (fuse_of(scene, vfl), added)]

  right, wrong = misfits(Batch(tuple(draw(6, 5) for _ in range(3)), labels))
  assert right < 1e-9 and wrong > 1e-3
