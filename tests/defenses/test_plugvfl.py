"""PlugVFL's losses, masks and errors, and heads for who stayed."""
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.perturbing import check_apart, check_unlike
from vfljax import algorithms, nets, protocol, sweep
from vfljax.defense import Defense
from vfljax.defenses import multi_head, plugvfl
from vfljax.types import Batch

SAMPLES, CLASSES, RATE = 12, 3, 0.05
REAL = np.arange(SAMPLES) < SAMPLES - 2  # Two rows of padding.
LABELS = jnp.asarray(
    np.eye(CLASSES, dtype=np.float32)[np.arange(SAMPLES) % CLASSES]
    * REAL[:, None].astype(np.float32)
)
KEY = jax.random.key(0)


def batch(parties=3):
  x = np.random.default_rng(0).normal(size=(parties, SAMPLES, 5))
  return Batch(tuple(map(jnp.asarray, x.astype(np.float32))), LABELS)


def federation(parties=3, own=True):
  bottoms = [nets.mlp(6, 4, final='relu')] * parties
  if own:
    return algorithms.vhnn(bottoms, nets.mlp(8, CLASSES))
  return algorithms.vsnn(bottoms[1:], nets.mlp(8, CLASSES))


@functools.cache
def play(make, parties=3):
  """(state, next state, round) of one round of SGD."""
  txs, key = (optax.sgd(RATE),) * parties, jax.random.key(3)
  defense, vfl, data = make(), federation(parties), batch(parties)
  # Outside of a program: weights of one shape are drawn by one for all tests.
  state = protocol.init(key, vfl, defense, txs, data)
  after, seen = jax.jit(lambda state: protocol.play_round(
      key, vfl, defense, txs, state, data
  ))(state)
  return state, after, seen


def log_p_of(weights, h):
  """log softmax of psi, written out: three layers, ReLU between."""
  for i in range(3):
    layer = weights[f'Dense_{i}']['Dense_0']
    h = h @ layer['kernel'] + layer['bias']
    h = jax.nn.relu(h) if i < 2 else h
  return jax.nn.log_softmax(h)


def batch_negatives():
  return plugvfl.plugvfl(
      0.3, 0.0, negatives='batch', psi_steps=2, psi_learning_rate=0.2,
      psi_hidden=(7, 5),
  )


def without_regularizer():
  return plugvfl.plugvfl(0.3, (0.4, 0.0), regularize=False, psi_hidden=(7, 5))


def test_psi_ascends_the_likelihood_of_the_labels_first():
  """Two gradient steps on -mean log q(y|h) over the real rows, by hand."""
  state, after, seen = play(batch_negatives)
  for k, h in enumerate(seen.messages.up):
    psi = state.defense['psi'][k]
    loss = lambda w, h: -(LABELS * log_p_of(w, h)).sum() / REAL.sum()
    grad = jax.jit(jax.grad(loss))
    for _ in range(2):
      psi = jax.tree.map(lambda w, g: w - 0.2 * g, psi, grad(psi, h))
    chex.assert_trees_all_close(after.defense['psi'][k], psi, atol=1e-5)


def written_out(after, seen, keep, lam, terms):
  """Losses of Eq. 6 from their parts, for autodiff to compare with.

  `terms(k, h, log_p)` is L_A + L_R of passive party k.
  """
  vfl = federation()

  def task(active, up):
    u0 = vfl.bottom(0).apply(active['bottom'], batch().features[0])
    masked = [m * h for m, h in zip(keep, up)]
    logits = vfl.top.apply(active['top'], (u0, *masked))
    return -(LABELS * jax.nn.log_softmax(logits)).sum() / REAL.sum()

  def passive(up, active):
    psi = after.defense['psi']
    extra = [
        terms(k, h, log_p_of(psi[k], h)) for k, h in enumerate(up)
    ]
    return (1 - lam) * task(active, up) + lam * sum(extra)

  return task, passive


def check_gradients(state, after, seen, keep, lam, terms):
  """theta_1, theta_S follow L_C; party k is sent the mixture's gradient."""
  task, passive = written_out(after, seen, keep, lam, terms)
  active = state.parties[0].params
  grads = jax.jit(jax.grad(task))(active, seen.messages.up)
  for name in ('top', 'bottom'):
    expected = jax.tree.map(
        lambda w, g: w - RATE * g, active[name], grads[name]
    )
    chex.assert_trees_all_close(
        after.parties[0].params[name], expected, atol=1e-5
    )
  down = jax.jit(jax.grad(passive))(seen.messages.up, active)
  chex.assert_trees_all_close(seen.messages.down, down, atol=1e-5)


def test_each_party_gets_its_own_gradient_without_the_regularizer():
  """Fig. 7's ablation and per-party dropout: L_A alone, mask as drawn."""
  state, after, seen = play(without_regularizer)
  likely = lambda k, h, log_p: (LABELS * log_p).sum() / REAL.sum()
  rows = range(SAMPLES)
  # Which samples of party 1 were dropped shows in the task's gradient alone.
  _, passive = written_out(
      after, seen, (jnp.zeros((SAMPLES, 1)), 1.0), 0.3, likely
  )
  active = state.parties[0].params
  alone = jax.jit(jax.grad(passive))(seen.messages.up, active)[0]
  dropped = [
      np.allclose(seen.messages.down[0][i], alone[i], atol=1e-7) for i in rows
  ]
  keep = 1.0 - jnp.asarray(dropped, jnp.float32)[:, None]
  assert 0 < keep.sum() < SAMPLES
  check_gradients(state, after, seen, (keep, 1.0), 0.3, likely)


def test_each_party_gets_its_own_gradient_with_the_regularizer():
  """The negatives are labels of the batch: solve for which, and check."""
  state, after, seen = play(batch_negatives)

  def negatives(k):
    """Each row's random class: the one that explains its gradient."""
    def grads(others):
      terms = lambda j, h, log_p: jnp.where(
          j == k, ((LABELS - others) * log_p).sum() / REAL.sum(), 0.0
      )
      _, passive = written_out(after, seen, (1.0, 1.0), 0.3, terms)
      up = seen.messages.up
      return jax.grad(passive)(up, state.parties[0].params)[k]
    candidates = jax.nn.one_hot(jnp.arange(CLASSES), CLASSES)
    tried = jax.jit(jax.vmap(lambda c: grads(
        jnp.broadcast_to(c, LABELS.shape) * REAL[:, None]
    )))(candidates)
    distance = np.abs(tried - seen.messages.down[k]).sum(-1)
    assert (distance.min(0)[REAL] < 1e-5).all()
    return candidates[distance.argmin(0)] * REAL[:, None]

  others = [negatives(0), negatives(1)]
  terms = lambda k, h, log_p: (
      ((LABELS - others[k]) * log_p).sum() / REAL.sum()
  )
  check_gradients(state, after, seen, (1.0, 1.0), 0.3, terms)


def test_negatives_from_all_labels_follow_their_counts():
  """Drawn from what has been seen so far, in its proportions."""
  counts = jnp.array([6.0, 0.0, 2.0])
  labels = jax.nn.one_hot(jnp.zeros(4_000, int), 3)
  drawn = plugvfl._others(jax.random.key(0), 'all', counts, labels)
  np.testing.assert_allclose(drawn.mean(0), [0.75, 0, 0.25], atol=0.03)
  state, after, seen = play(without_regularizer)
  np.testing.assert_array_equal(state.defense['counts'], 0)
  np.testing.assert_array_equal(after.defense['counts'], LABELS.sum(0))
  # The next round adds its own to those of all before.
  again = without_regularizer().adapt(
      after.defense, KEY, None, seen.messages.up, LABELS.at[:3].set(0)
  )
  expected = LABELS.sum(0) + LABELS[3:].sum(0)
  np.testing.assert_array_equal(again['counts'], expected)


@pytest.mark.parametrize('per', ['sample', 'round', 'element'])
def test_parties_are_dropped_with_their_own_probability(per):
  up = (jnp.ones((16, 3)), jnp.ones((16, 2, 2)))
  chances = (0.2, 0.7)
  draw = jax.jit(jax.vmap(lambda key: tuple(
      m * u for m, u in zip(plugvfl.masks(key, up, chances, per), up)
  )))
  kept = draw(jax.random.split(jax.random.key(0), 2_000))
  for chance, m in zip(chances, kept):
    assert abs(float(1 - m.mean()) - chance) < 0.03
    flat = np.asarray(m).reshape(2_000, 16, -1)
    whole_rows = (flat == flat[..., :1]).all()
    whole_rounds = (flat == flat[:, :1, :1]).all()
    assert whole_rows == (per != 'element')
    assert whole_rounds == (per == 'round')
  if per == 'round':  # Parties draw apart, too.
    check_apart(np.stack([m.reshape(2_000, -1)[:, 0] for m in kept], 1))


def test_every_party_has_its_own_psi_and_every_subset_its_own_head():
  state, _, _ = play(batch_negatives)
  check_unlike(*state.defense['psi'])
  u = np.zeros((2, 6), np.float32)
  top = federation(2).top
  heads = multi_head.heads(top).init(KEY, (u, u, u))
  assert len(heads) == 4
  check_unlike(heads[3], heads[2])


def test_without_any_embedding_there_is_no_head_and_no_loss():
  """Where the active party has none, and all others are left out."""
  up = tuple(
      np.random.default_rng(k).normal(size=(SAMPLES, 6)).astype(np.float32)
      for k in (1, 2)
  )
  top, defense = federation(own=False).top, multi_head.multi_head()
  net = multi_head.heads(top)
  params = net.init(KEY, (None, *up))
  assert params[0] == ()
  predict = lambda us: net.run(params, KEY, (None, *us))[0]
  expected = 0
  for own, us in (
      (params[1], (up[0], None)), (params[2], (None, up[1])), (params[3], up),
  ):
    log_p = jax.nn.log_softmax(top.apply(own, (None, *us)))
    expected -= float((LABELS * log_p).sum() / REAL.sum())
  found = defense.objective((), KEY, predict, up, LABELS)
  np.testing.assert_allclose(found, expected, rtol=1e-5)
  assert expected > 3


def test_nobody_is_dropped_at_inference():
  defense = plugvfl.plugvfl(0.0, 0.9)
  up = (jnp.ones((4, 3)),)
  got, penalty = defense.receive((), (), jax.random.key(0), up, None)
  chex.assert_trees_all_equal(got, up)
  assert penalty == 0


def test_no_weight_and_no_drop_is_plain_training():
  _, after, seen = play(lambda: plugvfl.plugvfl(0.0, 0.0))
  _, plain, undefended = play(Defense)
  for a, b in zip(after.parties, plain.parties):
    for name in b.params.keys() - {'defense'}:
      chex.assert_trees_all_close(a.params[name], b.params[name], atol=1e-6)
  chex.assert_trees_all_close(
      seen.messages, undefended.messages, atol=1e-7
  )


def test_lambda_may_be_an_array_of_jaxs_in_a_program():
  """As a number is: with psi, or at 0 without it. By tracing alone."""
  for weight, count in (0.5, 2), (0.0, 0):
    own = plugvfl.plugvfl(jnp.float32(weight), 0.1)
    state = jax.eval_shape(lambda own=own: protocol.init(
        KEY, federation(), own, (optax.sgd(RATE),) * 3, batch()
    ))
    assert len(state.defense['psi'] if state.defense else ()) == count


@pytest.mark.slow
def test_every_lambda_and_p_is_one_program():
  """A sweep over pairs (lambda, p) and seeds traces once; a cell of it is the
  same training alone, and a traced lambda of 0 is party dropout."""
  traces, txs, data = [], (optax.sgd(RATE),) * 3, batch()

  # Outside of the programs, and the same for all: only rounds are swept.
  state = protocol.init(
      KEY, federation(), plugvfl.plugvfl(0.5, 0.5, psi_hidden=(7, 5)), txs, data
  )

  def losses(key, defense):
    step = lambda state, key: protocol.play_round(
        key, federation(), defense, txs, state, data
    )
    _, seen = jax.lax.scan(step, state, jax.random.split(key, 3))
    return seen.loss

  def run(key, strength):
    traces.append(1)
    defense = plugvfl.plugvfl(*strength, psi_hidden=(7, 5))
    return losses(key, defense)

  found = sweep.sweep(run, 2, [(0.0, 0.5), (0.5, 0.0), (0.5, 0.5)])
  assert found.shape == (3, 2, 3) and len(traces) == 1
  assert len(np.unique(np.round(found[..., -1], 5))) == 6

  def alone(*strength):
    defense = plugvfl.plugvfl(*strength, psi_hidden=(7, 5))
    return jax.jit(losses, static_argnums=1)(jax.random.key(1), defense)

  np.testing.assert_allclose(found[0, 1], alone(0.0, 0.5), rtol=1e-4)
  np.testing.assert_allclose(found[2, 1], alone(0.5, 0.5), rtol=1e-4)


@pytest.mark.parametrize('arguments, word', [
    (dict(weight=-0.1), 'weight'),
    (dict(weight=1.1), 'weight'),
    (dict(weight=float('nan')), 'weight'),
    (dict(weight=0.5, drop=1.0), 'drop'),
    (dict(weight=0.5, drop=-0.1), 'drop'),
    (dict(weight=0.5, drop=(0.1, 1.5)), 'drop'),
    (dict(weight=0.5, per='party'), 'per'),
    (dict(weight=0.5, negatives='none'), 'negatives'),
    (dict(weight=0.5, psi_steps=0), 'psi_steps'),
    (dict(weight=0.5, psi_learning_rate=0), 'psi_learning_rate'),
])
def test_arguments_out_of_range(arguments, word):
  with pytest.raises(ValueError, match=word):
    plugvfl.plugvfl(**arguments)


def test_drop_needs_one_number_per_party():
  with pytest.raises(ValueError, match='3 entries; there are 2'):
    play(lambda: plugvfl.plugvfl(0.5, (0.1, 0.2, 0.3)))


@functools.cache
def predictor(make, own=True, parties=3):
  """present -> (state, logits), the latter compiled once."""
  vfl, txs = federation(parties, own), (optax.sgd(RATE),) * parties
  data = batch(parties)
  if not own:
    data = data._replace(features=(None, *data.features[1:]))

  key, defense = jax.random.key(0), make()
  state = protocol.init(key, vfl, defense, txs, data)
  predict = jax.jit(lambda state, present: protocol.predict(
      key, vfl, defense, state, data.features, present
  ))
  return lambda present: (state, predict(state, present))


def some():
  return plugvfl.plugvfl(0.5, 0.1)


def refused(own=True, **kwargs):
  """What `predict` says before it computes anything."""
  vfl, features = federation(own=own), batch().features
  state = protocol.State((None,) * 3, ())
  protocol.predict(
      jax.random.key(0), vfl, some(), state, features, **kwargs
  )


@pytest.mark.parametrize('present', [(1, 0), (0, 0)])
def test_who_is_absent_arrives_as_zeros(present):
  state, logits = predictor(some)(jnp.array(present))
  vfl, params = federation(), [p.params for p in state.parties]
  us = [
      vfl.bottom(k).apply(params[k]['bottom'], batch().features[k]) * there
      for k, there in enumerate((1, *present))
  ]
  expected = vfl.top.apply(params[0]['top'], tuple(us))
  np.testing.assert_allclose(logits, expected, atol=1e-5)


def test_present_must_fit_the_federation():
  with pytest.raises(ValueError, match='1 entries; there are 2'):
    refused(present=(1,))
  for odd in (2, 0.5):
    with pytest.raises(ValueError, match='0 or 1'):
      refused(present=(1, odd))
  with pytest.raises(ValueError, match='nobody'):
    refused(own=False, present=(0, 0))
  with pytest.raises(ValueError, match='nobody'):
    refused(own=False, present=jnp.zeros(2))


def test_every_head_learns_its_own_task():
  """One round of multi-head training is SGD on the sum of all heads' losses."""
  state, after, seen = play(multi_head.multi_head)
  vfl = federation()

  def loss(active, up):
    u0 = vfl.bottom(0).apply(active['bottom'], batch().features[0])
    total = 0.0
    for subset in range(4):
      stayed = [u for k, u in enumerate(up) if subset >> k & 1]
      x = jnp.concatenate([u0, *stayed], -1)
      log_p = jax.nn.log_softmax(
          nets.mlp(8, CLASSES).apply(active['top'][subset], x)
      )
      total = total - (LABELS * log_p).sum() / REAL.sum()
    return total

  active = state.parties[0].params
  grads, down = jax.jit(jax.grad(loss, (0, 1)))(active, seen.messages.up)
  for name in ('top', 'bottom'):
    expected = jax.tree.map(
        lambda w, g: w - RATE * g, active[name], grads[name]
    )
    chex.assert_trees_all_close(
        after.parties[0].params[name], expected, atol=1e-5
    )
  chex.assert_trees_all_close(seen.messages.down, down, atol=1e-5)


@pytest.mark.parametrize('present', [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_the_head_for_who_stayed_answers(present):
  state, logits = predictor(multi_head.multi_head)(jnp.array(present))
  vfl, params = federation(), [p.params for p in state.parties]
  stayed = [0, *(k for k in (1, 2) if present[k - 1])]
  x = jnp.concatenate([
      vfl.bottom(k).apply(params[k]['bottom'], batch().features[k])
      for k in stayed
  ], -1)
  head = params[0]['top'][present[0] + 2 * present[1]]
  expected = nets.mlp(8, CLASSES).apply(head, x)
  np.testing.assert_allclose(logits, expected, atol=1e-5)


def test_heads_of_a_label_only_active_party():
  """It has no head for nobody, and trains the other three."""
  state, logits = predictor(multi_head.multi_head, False)(jnp.array((1, 0)))
  params = [p.params for p in state.parties]
  assert params[0]['top'][0] == ()
  h = federation(own=False).bottom(1).apply(
      params[1]['bottom'], batch().features[1]
  )
  expected = nets.mlp(8, CLASSES).apply(params[0]['top'][1], h)
  np.testing.assert_allclose(logits, expected, atol=1e-5)


def test_too_many_heads_are_refused():
  with pytest.raises(ValueError, match='128 heads'):
    predictor(multi_head.multi_head, parties=8)(jnp.ones(7))
