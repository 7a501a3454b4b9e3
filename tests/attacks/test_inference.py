"""MixMatch, learned gradients, residuals, RVFR, and faults of public code."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from vfljax import algorithms, attacks, metrics, nets, protocol, views
from vfljax.attacks.mixmatch import (
    MixMatch, mixed, mixmatch, normalized_head,
)
from vfljax.defense import Defense, Spec, chain, each, none
from vfljax.defenses import (
    dcor, discrete_sgd, gradient_compression, mid, rvfr,
)
from vfljax.numerics import sharpen
from vfljax.types import Batch, Messages, Round, State
from vfljax.views import RecordedGradients, UnlabeledBottom

KEY = jax.random.key(0)


# MixMatch.


def test_sharpening_and_mixing():
  p = jnp.array([[0.2, 0.8], [0.5, 0.5], [0.0, 1.0]])
  expected = np.array([[0.04 / 0.68, 0.64 / 0.68], [0.5, 0.5], [0, 1]])
  np.testing.assert_allclose(sharpen(p, 0.5), expected, rtol=1e-6)
  x, y = jnp.arange(6.0)[:, None], jnp.eye(6)
  a, b = mixed(KEY, x, y, 0.75)
  own = np.diag(np.asarray(b))
  assert (own >= 0.5).all()
  np.testing.assert_allclose(b.sum(-1), 1, rtol=1e-6)
  # Samples are mixed as their labels are.
  np.testing.assert_allclose(a[:, 0], b @ x[:, 0], rtol=1e-5)


def test_the_head_normalizes_in_training_and_remembers():
  head = normalized_head(3, layers=2)
  u = 5 + 2 * jax.random.normal(KEY, (400, 4))
  params = head.init(KEY, u)
  y, stats = head.run(params, KEY, u)
  np.testing.assert_allclose(y, y[:, :1] + 0 * y, rtol=1e-6)  # Ones: equal.
  np.testing.assert_allclose(stats[0]['mean'], 0.1 * u.mean(0), rtol=1e-5)
  for _ in range(60):
    params = head.absorb(params, head.run(params, KEY, u)[1])
  np.testing.assert_allclose(params[0]['mean'], u.mean(0), rtol=1e-2)
  np.testing.assert_allclose(head.apply(params, u), y, rtol=0.1, atol=0.1)


def moons(n, seed):
  """Two classes on interleaved arcs: few labels, but a shape to follow."""
  rng = np.random.default_rng(seed)
  t, label = rng.uniform(0, np.pi, n), rng.integers(0, 2, n)
  x = np.stack([np.cos(t), np.sin(t)], 1) * (1 - 2 * label)[:, None]
  x += np.stack([label, 0.5 * label], 1) + rng.normal(0, 0.08, (n, 2))
  return jnp.asarray(x, jnp.float32), label


def view_of(weights, seed=0, known=6):
  x, y = moons(600, seed)
  test, truth = moons(400, seed + 100)
  rows = np.concatenate([np.flatnonzero(y == c)[:known] for c in (0, 1)])
  return UnlabeledBottom(
      weights, x[rows], jax.nn.one_hot(y[rows], 2), test, x
  ), jax.nn.one_hot(truth, 2)


def test_a_frozen_bottom_and_one_that_is_tuned():
  """Tuning reaches the bottom network, as public code means to and does not:
  behind a bottom that lost what matters, only a tuned one can be completed."""
  bottom = nets.mlp(32, 16)
  weights = bottom.init(KEY, jnp.zeros((1, 2)))
  blind = jax.tree.map(lambda w: w.at[0].set(0.0), weights)
  blind = dict(weights, Dense_0=dict(Dense_0=dict(
      kernel=weights['Dense_0']['Dense_0']['kernel'].at[0].set(0.0),
      bias=weights['Dense_0']['Dense_0']['bias'],
  )))
  view, truth = view_of(blind)
  how = MixMatch(4, 150, stages=2, unlabeled=2.0)
  found = {}
  for tune in (False, True):
    attack = mixmatch(bottom, normalized_head(2), how, tune)
    guess = jax.jit(attack.run)(KEY, view)
    assert guess.shape == (2, 400, 2)
    found[tune] = float(metrics.accuracy(guess[-1], truth))
  assert found[False] < 0.85 and found[True] > found[False] + 0.07


def test_unlabeled_samples_count():
  """Their weight, and they themselves, change what is learned."""
  bottom = nets.mlp(8, 4)
  view, _ = view_of(bottom.init(KEY, jnp.zeros((1, 2))))
  run = jax.jit(lambda weight, view: mixmatch(
      bottom, normalized_head(2), MixMatch(2, 40, stages=1, unlabeled=weight)
  ).run(KEY, view))
  plain, weighted = run(0.0, view), run(50.0, view)
  assert np.isfinite(weighted).all() and not np.allclose(plain, weighted)
  moved = view._replace(unlabeled=view.unlabeled + 1.0)
  assert not np.allclose(run(50.0, moved), weighted)


@pytest.mark.parametrize('change', [
    dict(epochs=0), dict(iterations=0), dict(stages=11), dict(alpha=0.0),
    dict(temperature=0.0), dict(unlabeled=-1.0), dict(average=1.0),
])
def test_bad_numbers_of_mixmatch(change):
  with pytest.raises(ValueError, match='mixmatch'):
    mixmatch(nets.mlp(2), normalized_head(2), MixMatch()._replace(**change))


# Learned gradients.


def round_of(d, labels):
  """Rounds in which party 1 was sent `d`."""
  return Round(
      State((), ()), Batch((None, d), labels), Messages((d,), (d,)),
      jnp.zeros(()), (),
  )


def recorded(seen, count):
  return views.recorded_gradients(KEY, 1, seen, count)


def test_what_is_recorded():
  labels = jax.nn.one_hot(jnp.array([[0, 1, 2, 2], [2, 0, 2, 2]]), 3)
  d = jnp.arange(16.0).reshape(2, 4, 2)
  seen = round_of(d, labels)
  view, known = recorded(seen, 2)
  counts = np.asarray(view.known_labels).sum(0)
  np.testing.assert_array_equal(counts, [2, 1, 2])  # One sample of class 1.
  assert known.sum() == 5
  flat, truth = d.reshape(8, 2), labels.reshape(8, 3)
  np.testing.assert_array_equal(view.received, flat)
  for row, label in zip(view.known_received, view.known_labels):
    if label.any():
      (at,) = np.flatnonzero((flat == row).all(-1))
      assert known[at] and (truth[at] == label).all()


def test_it_reads_what_direct_inference_cannot():
  """Behind a linear map of the gradients (a bottleneck's Jacobian), the sign
  says nothing and the direction all."""
  rng = np.random.default_rng(0)
  y = rng.integers(0, 5, 600)
  p = rng.dirichlet(np.ones(5), 600)
  cut = jnp.asarray((p - np.eye(5)[y]) @ rng.normal(size=(5, 5)), jnp.float32)
  labels = jax.nn.one_hot(y, 5)
  seen = round_of(cut[None], labels[None])
  view, known = recorded(seen, 8)
  learned = jax.jit(attacks.learned_gradient().run)(KEY, view)
  direct = attacks.direct_label().run(
      KEY, views.CutGradients(cut, cut, cut, jnp.ones(600))
  )
  assert float(metrics.accuracy(learned, labels, 1 - known)) > 0.75
  assert float(metrics.accuracy(direct, labels)) < 0.5
  nothing = RecordedGradients(
      0 * view.known_received, view.known_labels, 0 * view.received
  )
  assert np.isfinite(jax.jit(attacks.learned_gradient().run)(KEY, nothing)
                     ).all()


# Sparsification with a residual.


def test_what_is_dropped_comes_back():
  defense = gradient_compression.gradient_compression(0.25, residual=True)
  labels = jnp.ones((2, 1))
  spec = Spec((jax.ShapeDtypeStruct((2, 2), jnp.float32),), 2)
  state = defense.init(KEY, spec).state
  sent_all, given_all = 0.0, 0.0
  residual = np.zeros((2, 2))
  for i in range(5):
    d = np.random.default_rng(i).normal(size=(2, 2)).astype(np.float32)
    (sent,), state = defense.gradient(state, KEY, (jnp.asarray(d),), labels)
    whole = d + residual
    expected = np.where(np.abs(whole) == np.abs(whole).max(), whole, 0)
    np.testing.assert_allclose(sent, expected, rtol=1e-5)
    residual = whole - expected
    sent_all, given_all = sent_all + sent, given_all + d
  np.testing.assert_allclose(state[0], residual, atol=1e-5)
  np.testing.assert_allclose(sent_all + state[0], given_all, atol=1e-5)
  with pytest.raises(ValueError, match='remainder'):
    defense.gradient(state, KEY, (jnp.zeros((1, 2)),), labels[:1])


def test_a_chain_remembers_what_each_of_it_saw():
  twice = Defense(gradient=each(lambda key, d, labels: 2 * d))
  kept = gradient_compression.gradient_compression(0.5, residual=True)
  both = chain(twice, kept)
  spec = Spec((jax.ShapeDtypeStruct((1, 2), jnp.float32),), 2)
  state = both.init(KEY, spec).state
  _, state = both.gradient(
      state, KEY, (jnp.array([[3.0, 1.0]]),), jnp.ones((1, 1))
  )
  np.testing.assert_allclose(state[1][0], [[0.0, 2.0]])


# RVFR.


def embeddings(n=300, parties=3, seed=0):
  """Of 4 dimensions each, near a common subspace of 3."""
  rng = np.random.default_rng(seed)
  maps = np.random.default_rng(9).normal(size=(3, 4 * parties))
  z = rng.normal(size=(n, 3)) @ maps + 1.0
  z += rng.normal(0, 0.01, z.shape)
  return tuple(
      jnp.asarray(x, jnp.float32) for x in np.split(z, parties, axis=1)
  )


def blank(us):
  width = rvfr.together(us).shape[1]
  return dict(
      mean=jnp.zeros(width), square=jnp.zeros((width, width)),
      weight=jnp.zeros(()), rounds=jnp.zeros(()),
  )


@pytest.mark.parametrize('own', [True, False])
def test_a_corrupted_party_is_outvoted(own):
  us = embeddings()
  us = us if own else (None, *us)
  seen = blank(us)
  for seed in range(5):
    more = embeddings(seed=seed)
    seen = rvfr.absorbed(seen, more if own else (None, *more), 3, 0.99)
  where = rvfr.subspace(seen, 3)
  clean = rvfr.purify(us, *where)
  for a, b in zip(us[1:], clean[1:]):
    np.testing.assert_allclose(a, b, atol=0.15)
  missing = (*us[:-1], jnp.zeros_like(us[-1]))
  found = rvfr.purify(missing, *where, steps=20)[-1]
  error = np.abs(np.asarray(found - us[-1])).mean()
  # Two of two others agree; where none is trusted, two of three.
  share = 0.2 if own else 0.7
  assert error < share * np.abs(np.asarray(us[-1])).mean()
  if own:
    np.testing.assert_array_equal(found.shape, us[-1].shape)
    assert rvfr.purify(missing, *where)[0] is us[0]


def test_the_subspace_is_learned_in_spite_of_outliers():
  us = embeddings(n=1000)
  wild = np.random.default_rng(4).normal(0, 30, (50, 4))
  bad = (us[0], us[1], us[2].at[:50].set(jnp.asarray(wild)))
  seen, plain = blank(us), blank(us)
  for _ in range(60):
    seen = rvfr.absorbed(seen, bad, 3, 0.9)
  z = rvfr.together(bad)
  plain = dict(plain, mean=z.sum(0), square=z.T @ z, weight=jnp.array(1000.0))
  truth = rvfr.together(us[:2] + (us[2],))[50:]

  def distance(stats):
    mean, basis, _ = rvfr.subspace(stats, 3)
    away = truth - mean
    return float(jnp.abs(away - away @ basis @ basis.T).mean())

  assert distance(seen) < 0.3 * distance(plain)


def test_rvfr_in_a_federation_trains_and_predicts():
  rng = np.random.default_rng(0)
  y = rng.integers(0, 3, 200)
  x = tuple(
      jnp.asarray(np.eye(3)[y] + rng.normal(0, 0.4, (200, 3)), jnp.float32)
      for _ in range(3)
  )
  data = Batch(x, jax.nn.one_hot(y, 3))
  vfl = algorithms.vhnn([nets.mlp(4)] * 3, nets.mlp(3))
  txs = (optax.adam(0.03),) * 3

  @jax.jit
  def run(key, absent):
    defense = rvfr.rvfr(0.3, server=True, warmup=10)
    state = protocol.init(key, vfl, defense, txs, data)

    def step(state, key):
      return protocol.play_round(key, vfl, defense, txs, state, data)[0], None

    state, _ = jax.lax.scan(step, state, jax.random.split(key, 80))
    return protocol.predict(key, vfl, defense, state, x, (1, absent))

  hit = lambda logits: float((logits.argmax(-1) == y).mean())
  assert hit(run(KEY, 1.0)) > 0.9
  assert hit(run(KEY, 0.0)) > 0.75


def test_the_top_sees_purified_embeddings_once_the_warmup_is_over():
  us = tuple(jax.random.normal(k, (20, 3)) for k in jax.random.split(KEY))
  plain = nets.base.Net(lambda key, us: (), lambda _, us: rvfr.together(us))
  own = rvfr.Settings(0.3, server=True, warmup=2, decay=0.9, steps=2)
  net = rvfr.purifying(own, plain)
  params, untouched = net.init(KEY, us), []
  train = jax.jit(net.train)
  for _ in range(3):
    seen, stats = train(params, KEY, us)
    untouched.append(np.allclose(seen, rvfr.together(us), atol=1e-5))
    params = net.absorb(params, stats)
  assert untouched == [True, True, False]


@pytest.mark.parametrize('change', [
    dict(rank=0.0), dict(rank=1.5), dict(warmup=-1), dict(decay=1.0),
    dict(steps=0),
])
def test_bad_arguments_of_rvfr(change):
  with pytest.raises(ValueError, match='rvfr'):
    rvfr.rvfr(**change)


# Faults of public implementations that ours does not have.


def test_distance_correlation_of_a_constant_is_no_nan():
  """VFLAIR: infinite or NaN for a constant embedding and a batch of one."""
  labels = jnp.eye(3)[jnp.array([0, 1, 2, 0])]
  for u in (jnp.ones((4, 5)), jnp.ones((1, 5))):
    y = labels[: len(u)]
    penalty = lambda u, y=y: dcor.dcor(0.1).receive((), (), KEY, (u,), y)[1]
    value, slope = jax.jit(jax.value_and_grad(penalty))(u)
    assert np.isfinite(value) and np.isfinite(slope).all()


def test_discretization_follows_the_batch():
  """VFLAIR keeps the bins of the very first batch for ever."""
  d = jnp.asarray(np.random.default_rng(0).normal(size=(30, 4)), jnp.float32)
  small = discrete_sgd.discretize(0.001 * d, 6)
  assert len(np.unique(np.asarray(small))) >= 6
  np.testing.assert_allclose(
      1000 * small, discrete_sgd.discretize(d, 6), rtol=1e-3, atol=1e-6
  )


def test_compression_keeps_the_largest_and_drops_the_smallest():
  """VFLAIR's top-k zeroes the entries of the largest gradient."""
  d = jnp.array([[0.1, -4.0, 0.2, 3.0]])
  np.testing.assert_allclose(
      gradient_compression.compress(d, 0.5), [[0.0, -4.0, 0.0, 3.0]]
  )


def test_mid_without_weight_keeps_its_bottleneck():
  """Lambda 0 is a row of its own: encoder, decoder and noise, no penalty."""
  u = jax.random.normal(KEY, (64, 4))
  spec = Spec((jax.ShapeDtypeStruct(u.shape, u.dtype),), 3)
  for hidden in (0, 5):
    defense = mid.mid(0.0, hidden=hidden)
    slots = defense.init(KEY, spec)
    (z,), penalty = defense.receive(slots.active, (), KEY, (u,), None)
    (other,), _ = defense.receive(
        slots.active, (), jax.random.key(1), (u,), None
    )
    assert float(penalty) == 0 and not np.allclose(z, u)
    assert not np.allclose(z, other)
    layers = len(jax.tree.leaves(slots.active[0].decoder)) // 2
    assert layers == (2 if hidden else 1)


def test_without_a_defense_nothing_is_remembered():
  cut = (jnp.ones((2, 2)),)
  assert none().gradient('kept', KEY, cut, None) == (cut, 'kept')
