"""MixMatch, learned gradients, residuals, RVFR, and faults of public code."""
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.small_networks import drawn
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
  p = np.array([[0.2, 0.8], [0.5, 0.5], [0.0, 1.0]], np.float32)
  expected = np.array([[0.04 / 0.68, 0.64 / 0.68], [0.5, 0.5], [0, 1]])
  np.testing.assert_allclose(
      jax.jit(sharpen, static_argnums=1)(p, 0.5), expected, rtol=1e-6
  )
  x, y = np.arange(6, dtype=np.float32)[:, None], np.eye(6, dtype=np.float32)
  a, b = map(np.asarray, jax.jit(mixed, static_argnums=3)(KEY, x, y, 0.75))
  own = np.diag(b)
  assert (own >= 0.5).all()
  np.testing.assert_allclose(b.sum(-1), 1, rtol=1e-6)
  # Samples are mixed as their labels are.
  np.testing.assert_allclose(a[:, 0], b @ x[:, 0], rtol=1e-5)


def test_the_head_normalizes_in_training_and_remembers():
  head = normalized_head(3, layers=2)
  draw = np.random.default_rng(0).normal
  u = draw(5, 2, (400, 4)).astype(np.float32)
  params, run = head.init(KEY, u), jax.jit(head.run)
  y, stats = run(params, KEY, u)
  y = np.asarray(y)
  np.testing.assert_allclose(y, y[:, :1] + 0 * y, rtol=1e-6)  # Ones: equal.
  np.testing.assert_allclose(stats[0]['mean'], 0.1 * u.mean(0), rtol=1e-5)
  for _ in range(60):
    params = head.absorb(params, run(params, KEY, u)[1])
  np.testing.assert_allclose(params[0]['mean'], u.mean(0), rtol=1e-2)
  np.testing.assert_allclose(head.apply(params, u), y, rtol=0.1, atol=0.1)


def moons(n, seed):
  """Two classes on interleaved arcs: few labels, but a shape to follow."""
  rng = np.random.default_rng(seed)
  t, label = rng.uniform(0, np.pi, n), rng.integers(0, 2, n)
  x = np.stack([np.cos(t), np.sin(t)], 1) * (1 - 2 * label)[:, None]
  x += np.stack([label, 0.5 * label], 1) + rng.normal(0, 0.08, (n, 2))
  return x.astype(np.float32), label


def view_of(weights, seed=0, known=6):
  x, y = moons(600, seed)
  test, truth = moons(400, seed + 100)
  rows = np.concatenate([np.flatnonzero(y == c)[:known] for c in (0, 1)])
  one_hot = np.eye(2, dtype=np.float32)
  return UnlabeledBottom(
      weights, x[rows], one_hot[y[rows]], test, x
  ), one_hot[truth]


BOTTOM = nets.mlp(32, 16)


@functools.partial(jax.jit, static_argnums=0)
def mixed_matched(tune, weight, view):
  """One program for all weights of unlabeled samples."""
  how = MixMatch(4, 150, stages=2, unlabeled=weight)
  return mixmatch(BOTTOM, normalized_head(2), how, tune).run(KEY, view)


def test_a_frozen_bottom_and_one_that_is_tuned():
  """Tuning reaches the bottom network, as public code means to and does not:
  behind a bottom that lost what matters, only a tuned one can be completed."""
  weights = drawn(BOTTOM, jnp.zeros((1, 2)))
  first = weights['Dense_0']['Dense_0']
  blind = dict(weights, Dense_0=dict(Dense_0=dict(
      kernel=jnp.asarray(first['kernel'] * np.array([[0.0], [1.0]], 'f4')),
      bias=first['bias'],
  )))
  view, truth = view_of(blind)
  found = {}
  for tune in (False, True):
    guess = mixed_matched(tune, 2.0, view)
    assert guess.shape == (2, 400, 2)
    found[tune] = float(metrics.accuracy(np.asarray(guess)[-1], truth))
  assert found[False] < 0.85 and found[True] > found[False] + 0.07


def test_unlabeled_samples_count():
  """Their weight, and they themselves, change what is learned."""
  view, _ = view_of(drawn(BOTTOM, jnp.zeros((1, 2))))
  run = functools.partial(mixed_matched, False)
  plain, weighted = run(0.0, view), run(50.0, view)
  assert np.isfinite(weighted).all() and not np.allclose(plain, weighted)
  moved = view._replace(unlabeled=view.unlabeled + np.float32(1))
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
      np.zeros((), np.float32), (),
  )


@functools.partial(jax.jit, static_argnums=1)
def recorded(seen, count):
  return views.recorded_gradients(KEY, 1, seen, count)


def test_what_is_recorded():
  labels = np.eye(3, dtype=np.float32)[[[0, 1, 2, 2], [2, 0, 2, 2]]]
  d = np.arange(16, dtype=np.float32).reshape(2, 4, 2)
  seen = round_of(d, labels)
  view, known = jax.tree.map(np.asarray, recorded(seen, 2))
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
  cut = ((p - np.eye(5)[y]) @ rng.normal(size=(5, 5))).astype(np.float32)
  labels = np.eye(5, dtype=np.float32)[y]
  seen = round_of(cut[None], labels[None])
  view, known = recorded(seen, 8)
  run = jax.jit(attacks.learned_gradient().run)
  direct = attacks.direct_label().run(
      KEY, views.CutGradients(cut, cut, cut, np.ones(600, np.float32))
  )
  accuracy = jax.jit(metrics.accuracy)
  every = np.ones(600, np.float32)
  assert accuracy(run(KEY, view), labels, 1 - np.asarray(known)) > 0.75
  assert accuracy(direct, labels, every) < 0.5
  nothing = RecordedGradients(
      np.zeros_like(view.known_received), view.known_labels,
      np.zeros_like(view.received),
  )
  assert np.isfinite(run(KEY, nothing)).all()


# Sparsification with a residual.


def test_what_is_dropped_comes_back():
  defense = gradient_compression.gradient_compression(0.25, residual=True)
  labels = jnp.ones((2, 1))
  spec = Spec((jax.ShapeDtypeStruct((2, 2), jnp.float32),), 2)
  state = defense.init(KEY, spec).state
  send = jax.jit(defense.gradient)
  sent_all, given_all = 0.0, 0.0
  residual = np.zeros((2, 2))
  for i in range(5):
    d = np.random.default_rng(i).normal(size=(2, 2)).astype(np.float32)
    (sent,), state = send(state, KEY, (d,), labels)
    whole = d + residual
    expected = np.where(np.abs(whole) == np.abs(whole).max(), whole, 0)
    np.testing.assert_allclose(sent, expected, rtol=1e-5)
    residual = whole - expected
    sent_all, given_all = sent_all + np.asarray(sent), given_all + d
  left = np.asarray(state[0])
  np.testing.assert_allclose(left, residual, atol=1e-5)
  np.testing.assert_allclose(sent_all + left, given_all, atol=1e-5)
  with pytest.raises(ValueError, match='remainder'):
    defense.gradient(state, KEY, (jnp.zeros((1, 2)),), labels[:1])


def test_a_chain_remembers_what_each_of_it_saw():
  twice = Defense(gradient=each(lambda key, d, labels: 2 * d))
  kept = gradient_compression.gradient_compression(0.5, residual=True)
  both = chain(twice, kept)
  spec = Spec((jax.ShapeDtypeStruct((1, 2), jnp.float32),), 2)
  state = both.init(KEY, spec).state
  d, labels = np.array([[3, 1]], np.float32), np.ones((1, 1), np.float32)
  _, state = jax.jit(both.gradient)(state, KEY, (d,), labels)
  np.testing.assert_allclose(state[1][0], [[0.0, 2.0]])


# RVFR.


def embeddings(n=300, parties=3, seed=0):
  """Of 4 dimensions each, near a common subspace of 3."""
  rng = np.random.default_rng(seed)
  maps = np.random.default_rng(9).normal(size=(3, 4 * parties))
  z = rng.normal(size=(n, 3)) @ maps + 1.0
  z += rng.normal(0, 0.01, z.shape)
  return tuple(x.astype(np.float32) for x in np.split(z, parties, axis=1))


ABSORBED = jax.jit(rvfr.absorbed, static_argnums=2)
SUBSPACE = jax.jit(rvfr.subspace, static_argnums=1)
PURIFY = jax.jit(rvfr.purify, static_argnames='steps')


def blank(us):
  width = sum(u.shape[1] for u in us if u is not None)
  return dict(
      mean=np.zeros(width, np.float32),
      square=np.zeros((width, width), np.float32),
      weight=np.zeros((), np.float32), rounds=np.zeros((), np.float32),
  )


@pytest.mark.parametrize('own', [True, False])
def test_a_corrupted_party_is_outvoted(own):
  us = embeddings()
  us = us if own else (None, *us)
  seen = blank(us)
  for seed in range(5):
    more = embeddings(seed=seed)
    seen = ABSORBED(seen, more if own else (None, *more), 3, 0.99)
  where = SUBSPACE(seen, 3)
  clean = PURIFY(us, *where)
  for a, b in zip(us[1:], clean[1:]):
    np.testing.assert_allclose(a, b, atol=0.15)
  missing = (*us[:-1], np.zeros_like(us[-1]))
  found = np.asarray(PURIFY(missing, *where, steps=20)[-1])
  error = np.abs(found - us[-1]).mean()
  # Two of two others agree; where none is trusted, two of three.
  share = 0.2 if own else 0.7
  assert error < share * np.abs(us[-1]).mean()
  if own:
    np.testing.assert_array_equal(found.shape, us[-1].shape)
    same = []  # Whether its own is what it gets, of which tracing tells.
    jax.eval_shape(
        lambda us: same.append(rvfr.purify(us, *where)[0] is us[0]), missing
    )
    assert same == [True]


def test_the_subspace_is_learned_in_spite_of_outliers():
  us = embeddings(n=1000)
  wild = np.random.default_rng(4).normal(0, 30, (50, 4)).astype(np.float32)
  bad = (us[0], us[1], np.concatenate([wild, us[2][50:]]))
  seen, plain = blank(us), blank(us)
  for _ in range(60):
    seen = ABSORBED(seen, bad, 3, 0.9)
  z = np.concatenate(bad, 1)
  plain = dict(
      plain, mean=z.sum(0), square=z.T @ z, weight=np.float32(1000)
  )
  truth = np.concatenate(us, 1)[50:]

  def distance(stats):
    mean, basis, _ = map(np.asarray, SUBSPACE(stats, 3))
    away = truth - mean
    return np.abs(away - away @ basis @ basis.T).mean()

  assert distance(seen) < 0.3 * distance(plain)


@pytest.mark.slow
def test_rvfr_in_a_federation_trains_and_predicts():
  rng = np.random.default_rng(0)
  y = rng.integers(0, 3, 200)
  x = tuple(
      (np.eye(3)[y] + rng.normal(0, 0.4, (200, 3))).astype(np.float32)
      for _ in range(3)
  )
  data = Batch(x, np.eye(3, dtype=np.float32)[y])
  vfl = algorithms.vhnn([nets.mlp(4)] * 3, nets.mlp(3))
  txs = (optax.adam(0.03),) * 3
  defense = rvfr.rvfr(0.3, server=True, warmup=10)
  state = protocol.init(KEY, vfl, defense, txs, data)  # Eager: less compiled.

  @jax.jit
  def run(key, state, absent):

    def step(state, key):
      return protocol.play_round(key, vfl, defense, txs, state, data)[0], None

    state, _ = jax.lax.scan(step, state, jax.random.split(key, 80))
    return protocol.predict(key, vfl, defense, state, x, (1, absent))

  hit = lambda logits: (np.argmax(logits, -1) == y).mean()
  assert hit(run(KEY, state, 1.0)) > 0.9
  assert hit(run(KEY, state, 0.0)) > 0.75


def test_the_top_sees_purified_embeddings_once_the_warmup_is_over():
  us = tuple(
      np.random.default_rng(0).normal(size=(2, 20, 3)).astype(np.float32)
  )
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
  labels = np.eye(3, dtype=np.float32)[[0, 1, 2, 0]]
  for u in np.ones((4, 5), np.float32), np.ones((1, 5), np.float32):
    y = labels[: len(u)]
    penalty = lambda u, y=y: dcor.dcor(0.1).receive((), (), KEY, (u,), y)[1]
    value, slope = jax.jit(jax.value_and_grad(penalty))(u)
    assert np.isfinite(value) and np.isfinite(slope).all()


def test_discretization_follows_the_batch():
  """VFLAIR keeps the bins of the very first batch for ever."""
  d = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
  bins = jax.jit(lambda d: discrete_sgd.discretize(d, 6))
  small = np.asarray(bins(np.float32(0.001) * d))
  assert len(np.unique(small)) >= 6
  np.testing.assert_allclose(1000 * small, bins(d), rtol=1e-3, atol=1e-6)


def test_compression_keeps_the_largest_and_drops_the_smallest():
  """VFLAIR's top-k zeroes the entries of the largest gradient."""
  d = np.array([[0.1, -4.0, 0.2, 3.0]], np.float32)
  compress = jax.jit(gradient_compression.compress, static_argnums=1)
  np.testing.assert_allclose(compress(d, 0.5), [[0.0, -4.0, 0.0, 3.0]])


def test_mid_without_weight_keeps_its_bottleneck():
  """Lambda 0 is a row of its own: encoder, decoder and noise, no penalty."""
  u = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32)
  spec = Spec((jax.ShapeDtypeStruct(u.shape, u.dtype),), 3)
  for hidden in (0, 5):
    defense = mid.mid(0.0, hidden=hidden)
    slots = defense.init(KEY, spec)
    receive = jax.jit(defense.receive)
    (z,), penalty = receive(slots.active, (), KEY, (u,), None)
    (other,), _ = receive(slots.active, (), jax.random.key(1), (u,), None)
    assert float(penalty) == 0 and not np.allclose(z, u)
    assert not np.allclose(z, other)
    layers = len(jax.tree.leaves(slots.active[0].decoder)) // 2
    assert layers == (2 if hidden else 1)


def test_without_a_defense_nothing_is_remembered():
  cut = (jnp.ones((2, 2)),)
  assert none().gradient('kept', KEY, cut, None) == (cut, 'kept')
