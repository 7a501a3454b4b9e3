"""What one step, one row, one unit or one shadow would not show."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from vfljax import algorithms, defenses, nets
from vfljax.defense import Holdings, Spec, each
from vfljax.defenses import (
    coae, fedpass_cut, gradient_compression, kdk, layer_selection, mid,
    minibatch, mixup, multi_head, randomized, rvfr, shadow,
)
from vfljax.types import Batch, Net

KEY = jax.random.key(0)


def test_an_optimizer_remembers_from_pass_to_pass():
  fitted = jax.jit(lambda: minibatch.fit(
      KEY, lambda w, rows: w + 0 * rows.sum(), jnp.zeros(()), jnp.zeros(4),
      optax.sgd(1.0, momentum=0.5), epochs=3, batch_size=4,
  ))()
  np.testing.assert_allclose(fitted, -(1 + 1.5 + 1.75), rtol=1e-6)


def test_no_row_is_left_out_of_every_pass():
  fitted = jax.jit(lambda: minibatch.fit(
      KEY, lambda w, rows: (w * rows).sum(), jnp.zeros(5), jnp.eye(5),
      optax.sgd(1.0), epochs=20, batch_size=2,
  ))()
  assert (np.asarray(fitted) < 0).all()


def test_each_output_is_a_probability_before_their_mean():
  found = randomized.probability(jnp.array([[3.0, 0.5], [-1.0, 0.5]]))
  wanted = [(1 - 1e-4 + 0.5) / 2, (1e-4 + 0.5) / 2]
  np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_a_party_whose_first_row_is_zeros_is_there():
  net = multi_head.heads(Net(
      lambda key, us: jnp.float32(sum(u is not None for u in us)),
      lambda p, us: p * jnp.ones((3, 1)),
  ))
  u = np.ones((3, 2), np.float32)
  start = np.concatenate([np.zeros_like(u[:1]), u[1:]])
  found = jax.jit(lambda: net.apply(net.init(KEY, (u, u)), (u, start)))()
  np.testing.assert_array_equal(found, 2)


def test_passports_of_a_cut_layer_have_the_scale_of_what_they_read():
  passports = lambda key, shape: jnp.zeros(shape)
  layer = jax.jit(lambda: fedpass_cut.draw(KEY, 64, 8, passports))()
  for name, fan_in in dict(encode=64, decode=16).items():
    largest = np.abs(layer[name]).max()
    np.testing.assert_allclose(largest, fan_in**-0.5, rtol=0.05)


def test_the_subspace_is_of_what_was_sent_not_of_what_was_made_of_it():
  draws = np.random.default_rng(0).normal(size=(2, 20, 3))
  us = tuple(draws.astype(np.float32))
  plain = Net(lambda key, us: (), lambda _, us: rvfr.together(us))
  found = []
  for server in (False, True):
    net = rvfr.purifying(
        rvfr.Settings(0.3, server=server, warmup=1, decay=0.9, steps=2), plain
    )
    params = net.init(KEY, us)
    round_ = jax.jit(
        lambda p, net=net: net.absorb(p, net.train(p, KEY, us)[1])
    )
    for _ in range(4):  # Three of them after the warmup.
      params = round_(params)
    found.append(params['seen'])
  jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4),
      *found,
  )


@pytest.fixture
def samples():
  """Of an active party without features and two passive ones."""
  x = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
  labels = np.eye(2, dtype=np.float32)[(x[:, 0] > 0).astype(int)]
  return Batch((None, jnp.asarray(x), jnp.asarray(x)), jnp.asarray(labels))


def test_norms_are_the_mean_over_a_pass(samples):
  """At no pace to speak of that mean does not depend on the order."""
  samples = samples._replace(features=samples.features[:2])
  vfl = algorithms.vsnn([nets.mlp(2)], nets.mlp(2))

  @jax.jit
  def norms(key):
    params = vfl.bottom(1).init(KEY, samples.features[1])
    top = dict(top=vfl.top.init(KEY, (None, jnp.zeros((1, 2)))))
    return shadow.update(
        key, Holdings(vfl, top, samples), (params,), shadow.Learning(1e-9, 1)
    )[1][0]

  one, other = (norms(jax.random.key(seed)) for seed in (0, 1))
  np.testing.assert_allclose(one, other, rtol=1e-4)


def test_each_shadow_has_luck_of_its_own(samples):
  seen = []

  def train(params, key, x):
    jax.debug.callback(
        lambda data: seen.append(tuple(data.tolist())), jax.random.key_data(key)
    )
    return nets.mlp(2).apply(params, x), ()

  net = nets.mlp(2)._replace(train=train)
  vfl = algorithms.vsnn([net, net], nets.mlp(2), 'sum')

  @jax.jit
  def run():
    params = net.init(KEY, samples.features[1])
    top = dict(top=vfl.top.init(KEY, (None, *[jnp.zeros((1, 2))] * 2)))
    return shadow.update(
        KEY, Holdings(vfl, top, samples), (params, params),
        shadow.Learning(0.1, 40),
    )

  jax.block_until_ready(run())
  jax.effects_barrier()
  assert len(seen) == 2 and len(set(seen)) == 2


# Options that are asked for, and would be missed by few.


@pytest.mark.parametrize('name', ['kdk', 'coae'])
def test_a_network_before_training_is_fitted_as_it_was_asked(
    name, monkeypatch
):
  asked = dict(epochs=7, batch_size=3)
  fitted = []

  def fit(key, loss, params, data, tx, **how):
    fitted.append((params, data, tx, how))
    return params

  monkeypatch.setattr(minibatch, 'fit', fit)
  if name == 'kdk':
    own = kdk.kdk(0.3, hidden=(5,), learning_rate=0.5, **asked)
    labels = jax.ShapeDtypeStruct((9, 3), jnp.float32)
    features = jax.ShapeDtypeStruct((9, 4), jnp.float32)
    jax.eval_shape(own.prepare, KEY, features, labels)
  else:
    own = coae.coae(hidden=5, samples=9, learning_rate=0.5, **asked)
    spec = Spec((jax.ShapeDtypeStruct((2, 2), jnp.float32),), 3)
    jax.eval_shape(lambda: own.init(KEY, spec))
  (params, data, tx, how), = fitted
  assert how == asked
  assert {len(x) for x in jax.tree.leaves(data)} == {9}
  one = jnp.ones(2)
  step = jax.jit(lambda: tx.update(one, tx.init(one))[0])()
  np.testing.assert_allclose(-step, 0.5, rtol=1e-5)  # Adam's first step.
  wide = {x.shape[-1] for x in jax.tree.leaves(params) if x.ndim == 2}
  assert wide == {5, 3}


def test_an_autoencoders_weights_are_small_at_first():
  params = jax.jit(lambda: coae.draw(KEY, 3, 800))()
  for layer in params['encoder'] + params['decoder']:
    np.testing.assert_allclose(np.std(layer['kernel']), 0.01, rtol=0.1)
    np.testing.assert_array_equal(layer['bias'], 0)


def test_a_bottleneck_is_as_wide_as_it_was_asked():
  """A mean and a deviation of each of 3 x 4 numbers, and twice as many."""
  u = jax.ShapeDtypeStruct((2, 4), jnp.float32)
  own = mid.mid(0.1, scale=3, hidden=2)
  (made,) = jax.eval_shape(lambda: own.init(KEY, Spec((u,), 2)).active)
  shapes = lambda tree: [
      x.shape for x in jax.tree.leaves(tree) if len(x.shape) == 2
  ]
  assert shapes(made.encoder) == [(4, 24)]
  assert shapes(made.decoder) == [(12, 24), (24, 4)]


def test_a_large_concentration_weighs_all_alike():
  rows = jnp.asarray(np.eye(8, dtype='f4'))
  batch = jax.jit(mixup.mixup(2, 1e4).batch)
  mixed = np.asarray(batch(KEY, Batch((None, rows), rows)).labels)
  np.testing.assert_allclose(mixed[mixed > 0], 0.5, atol=0.05)


def test_signed_compression_is_what_a_party_is_sent():
  d = np.float32([[-9.0, 3.0, 1.0], [2.0, -1.0, 0.5]])
  own = gradient_compression.gradient_compression(1 / 3, signed=True)
  (found,), _ = jax.jit(own.gradient)((), KEY, (d,), np.eye(2, dtype='f4'))
  np.testing.assert_array_equal(found, [[0, 3, 0], [2, 0, 0]])


def test_a_lot_falls_on_candidates_alone():
  norms, none = np.float32([3.0, 1.0, 2.0]), np.zeros(3, bool)
  leak = lambda key, hidden: 1.0 - 0.3 * hidden.sum()
  some = np.array([False, True, True])
  drawn = np.asarray(jax.jit(jax.vmap(lambda key: layer_selection.choose(
      key, 'random', norms, none, some, 0.75, leak
  )[0]))(jax.random.split(KEY, 40)))
  np.testing.assert_array_equal(drawn.sum(0)[0], 0)
  assert (drawn.sum(1) == 1).all() and drawn.sum(0)[1:].min() > 5


def learned(own, us, rounds):
  """RVFR's top on embeddings as they are, after some rounds."""
  plain = Net(lambda key, us: (), lambda _, us: rvfr.together(us))
  net = rvfr.purifying(own, plain)
  params = net.init(KEY, us)
  for _ in range(rounds):
    params = net.absorb(params, net.train(params, KEY, us)[1])
  return net, params


def outlying(far=0.0):
  """Embeddings near a line; the second party's first row may be far off."""
  x = np.random.default_rng(0).normal(size=(9, 1))
  one, two = x * [[1.0, 2.0]], x * [[1.0, -1.0]] + 0.01 * x**2
  two[0] += far
  return tuple(u.astype(np.float32) for u in (one, two))


def test_rvfr_counts_rounds_as_it_was_asked():
  """Without a memory the statistics are of the last round alone."""
  own = rvfr.Settings(0.25, False, 0, 0.0, 2)
  params = jax.jit(lambda: learned(own, outlying(), 3)[1])()
  assert 0 < params['seen']['weight'] <= 9
  assert params['seen']['rounds'] == 3


def test_what_is_purified_hands_its_gradient_on():
  us = outlying(30.0)

  @jax.jit
  def run(us):
    net, params = learned(rvfr.Settings(0.25, True, 0, 0.9, 2), outlying(), 2)
    pulled = jax.grad(lambda us: net.train(params, KEY, us)[0].sum())(us)
    return net.apply(params, us), pulled

  purified, pulled = run(us)
  assert not np.allclose(purified, np.concatenate(us, axis=1))
  for d in pulled:
    np.testing.assert_array_equal(d, 1)


def test_rvfr_purifies_a_test_set_in_blocks(monkeypatch):
  """Of 300,000 rows and eight parties at once it took 14 GiB."""
  us = outlying(30.0)

  def purified():
    net, params = learned(rvfr.Settings(0.5, True, 0, 0.9, 2), outlying(), 2)
    return net.apply(params, us)  # Systems of two equations.

  def made():  # Another function, as JAX keeps the traces of one.
    program = jax.jit(lambda: purified())
    return np.asarray(program()), str(program.trace().jaxpr).count('scan[')

  whole, few = made()
  monkeypatch.setattr(rvfr, 'AT_ONCE', 4)
  blocks, more = made()
  np.testing.assert_allclose(blocks, whole, rtol=1e-5, atol=1e-6)
  assert more > few


def test_the_server_of_rvfr_keeps_the_statistics_of_its_network():
  us = outlying()
  plain = Net(
      lambda key, us: jnp.zeros(()), lambda w, us: rvfr.together(us),
      lambda w, key, us: (rvfr.together(us), rvfr.together(us).sum()),
      lambda w, found: w + found,
  )
  net = rvfr.purifying(rvfr.Settings(0.25, False, 0, 0.9, 2), plain)

  @jax.jit
  def run():
    params = net.init(KEY, us)
    return net.absorb(params, net.train(params, KEY, us)[1])

  after = run()
  np.testing.assert_allclose(after['net'], sum(u.sum() for u in us), rtol=1e-5)


def test_each_party_has_its_own_gradient_as_rows():
  """Of whatever shape its embedding is."""
  cut = np.arange(12, dtype='f4').reshape(2, 3, 2, 1), -np.ones((2, 5), 'f4')
  seen = []

  def double(key, d, labels):
    seen.append(d.shape)
    return 2 * d

  found, state = each(double)('kept', KEY, cut, np.eye(2, dtype='f4'))
  assert seen == [(2, 6), (2, 5)] and state == 'kept'
  for d, twice in zip(cut, found):
    np.testing.assert_array_equal(twice, 2 * d)


def test_what_is_for_two_classes_is_registered_so():
  two = {name for name, method in defenses.REGISTRY.items() if method.binary}
  assert two == {'gafm', 'marvell'}


def test_shadows_see_their_own_partys_features():
  """The logits by hand: linear bottoms and top, the active one left out."""
  draw = np.random.default_rng(0).normal
  x = draw(size=(4, 5)), draw(size=(4, 3)), draw(size=(4, 3))
  vfl = algorithms.vhnn([nets.mlp(2)] * 3, nets.mlp(2))
  features = tuple(map(jnp.float32, x))
  own, *shadows = (
      vfl.bottom(k).init(jax.random.key(k), u) for k, u in enumerate(features)
  )
  top = vfl.top.init(KEY, (jnp.zeros((1, 2)),) * 3)
  found = shadow.logits(
      Holdings(vfl, dict(top=top, bottom=own), None), tuple(shadows), features
  )

  def linear(params, x):
    leaves = map(np.asarray, jax.tree.leaves(params))
    bias, kernel = sorted(leaves, key=np.ndim)
    return x @ kernel + bias

  embedded = [linear(p, own) for p, own in zip(shadows, x[1:])]
  expected = linear(top, np.concatenate([np.zeros((4, 2)), *embedded], 1))
  np.testing.assert_allclose(found, expected, atol=1e-5)
