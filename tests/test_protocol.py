"""The round itself: against plain backpropagation of the joint model."""
import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.special import softmax

from tests.drawing import draws
from vfljax import algorithms, nets, protocol
from vfljax.adversary import Adversary
from vfljax.defense import Defense, chain, each, none
from vfljax.defenses import dcor, fedpass, mid, vmask
from vfljax.hooks import exposes
from vfljax.nets import modules
from vfljax.types import Batch, Net

SAMPLES = 12


def data(parties, classes=3, own=True):
  # Two widths, by turns: ten would be as many programs of every operation.
  draw = np.random.default_rng(0).standard_normal
  features = tuple(
      draw((SAMPLES, 3 + i % 2), np.float32) if i or own else None
      for i in range(parties)
  )
  labels = np.eye(classes, dtype=np.float32)[np.arange(SAMPLES) % classes]
  return Batch(features, labels)


def begin(vfl, defense, txs, batch, *adversary):
  """A state as `init` makes it, of NumPy's numbers: ten draws are slow."""
  shapes = jax.eval_shape(lambda batch: protocol.init(
      jax.random.key(0), vfl, defense, txs, batch, *adversary
  ), batch)
  draw = np.random.default_rng(0).standard_normal
  return jax.tree.map(lambda x: 0.3 * draw(x.shape, x.dtype), shapes)


def federation(algorithm, parties, classes, aggregation='concat'):
  bottom, top = nets.mlp(7, 5), nets.mlp(6, classes)
  if parties == 10:  # What matters is who owns what: an operation is enough.
    bottom = Net(
        lambda key, x: jnp.zeros((x.shape[1], 5)), lambda w, x: jnp.tanh(x @ w)
    )
  if algorithm == 'vlr':
    return algorithms.vlr(parties, classes)
  if algorithm == 'vsnn':
    return algorithms.vsnn([bottom] * (parties - 1), top, aggregation)
  return algorithms.vhnn([bottom] * parties, top, aggregation)


def joint_loss(vfl, batch):
  """The same model as one function of all parties' parameters."""

  def loss(params):
    us = [
        net and net.apply(p['bottom'], x)
        for net, p, x in zip(vfl.bottoms, params, batch.features)
    ]
    logits = vfl.top.apply(params[0]['top'], us)
    return optax.softmax_cross_entropy(logits, batch.labels).mean()

  return loss


@pytest.mark.parametrize('algorithm, classes, fuse, parties', [
    *((*kind, parties) for parties in (2, 3, 10) for kind in (
        ('vlr', 2, ''), ('vsnn', 3, 'concat'), ('vhnn', 3, 'concat')
    )),
    ('vlr', 4, '', 3),
    *(('vhnn', 3, name, 3) for name in algorithms.AGGREGATIONS),
])
def test_none_is_plain_backpropagation(algorithm, classes, fuse, parties):
  vfl = federation(algorithm, parties, classes, fuse)
  batch = data(parties, classes, algorithm != 'vsnn')
  txs = (optax.sgd(1.0),) * parties
  state = begin(vfl, none(), txs, batch)
  params = tuple(p.params for p in state.parties)

  @jax.jit
  def both(state, batch):
    played = protocol.play_round(
        jax.random.key(1), vfl, none(), txs, state, batch
    )
    return *played, *jax.value_and_grad(joint_loss(vfl, batch))(params)

  after, seen, loss, grads = both(state, batch)
  np.testing.assert_allclose(seen.loss, loss, rtol=1e-5)
  chex.assert_trees_all_close(
      tuple(p.params for p in after.parties),
      jax.tree.map(lambda p, g: p - np.asarray(g), params, grads),
      rtol=1e-4, atol=1e-5,
  )


def test_cut_layer_gradient_of_vlr_is_p_minus_y():
  """Kang et al., Eq. 4, divided by the batch size."""
  vfl, batch = algorithms.vlr(2, 4), data(2, 4)
  txs = (optax.sgd(0.1),) * 2
  state = begin(vfl, none(), txs, batch)
  _, seen = protocol.play_round(
      jax.random.key(1), vfl, none(), txs, state, batch
  )
  logits = protocol.predict(
      jax.random.key(2), vfl, none(), state, batch.features
  )
  expected = (softmax(logits, axis=1) - batch.labels) / SAMPLES
  np.testing.assert_allclose(seen.messages.down[0], expected, atol=1e-6)


def test_padding_equals_a_smaller_batch():
  vfl, batch = federation('vhnn', 3, 3), data(3)
  txs = (optax.sgd(1.0),) * 3
  state = begin(vfl, none(), txs, batch)
  small = jax.tree.map(lambda x: x[:8], batch)
  real = np.arange(SAMPLES)[:, None] < 8
  padded = batch._replace(labels=batch.labels * real)
  step = jax.jit(lambda b: protocol.play_round(
      jax.random.key(1), vfl, none(), txs, state, b
  ))
  (few, seen), (many, full) = step(small), step(padded)
  np.testing.assert_allclose(seen.loss, full.loss, rtol=1e-6)
  chex.assert_trees_all_close(few.parties, many.parties, atol=1e-6)


def test_a_party_that_quit_is_an_embedding_of_zeros():
  vfl, batch = federation('vhnn', 3, 3), data(3)
  txs = (optax.sgd(1.0),) * 3
  state = begin(vfl, none(), txs, batch)
  ask = lambda present: protocol.predict(
      jax.random.key(1), vfl, none(), state, batch.features, present
  )
  params = [p.params for p in state.parties]
  us = [n.apply(p['bottom'], x)
        for n, p, x in zip(vfl.bottoms, params, batch.features)]
  expected = vfl.top.apply(
      params[0]['top'], (us[0], jnp.zeros_like(us[1]), us[2])
  )
  np.testing.assert_allclose(ask((0, 1)), expected, atol=1e-6)
  np.testing.assert_allclose(ask((1, 1)), ask(None), atol=1e-6)
  alone = (us[0], *(jnp.zeros_like(u) for u in us[1:]))
  expected = vfl.top.apply(params[0]['top'], alone)
  np.testing.assert_allclose(ask((0, 0)), expected, atol=1e-6)
  with pytest.raises(ValueError, match='2 passive'):
    ask((1, 1, 1))
  with jax.enable_x64(True):  # A number of 64 bits says who is there.
    assert jax.eval_shape(ask, np.ones(2)).dtype == jnp.float32


def test_hooks_run_where_they_belong():
  """A defense of every hook leaves its mark where it should, and only there."""
  vfl, batch = federation('vhnn', 2, 3), data(2)
  txs = (optax.sgd(1.0),) * 2
  marked = Defense(
      batch=lambda key, b: b._replace(
          features=tuple(2 * x for x in b.features)),
      send=lambda passive, key, u: (u + 1, jnp.zeros(())),
      gradient=each(lambda key, d, labels: 0 * d + 3),
      decode=lambda state, logits: -logits,
  )
  state = begin(vfl, marked, txs, batch)
  _, seen = protocol.play_round(
      jax.random.key(1), vfl, marked, txs, state, batch
  )
  bottom = state.parties[1].params['bottom']
  expected = vfl.bottoms[1].apply(bottom, 2 * batch.features[1]) + 1
  np.testing.assert_allclose(seen.messages.up[0], expected, atol=1e-6)
  assert (np.asarray(seen.messages.down[0]) == 3).all()
  ask = lambda defense: protocol.predict(
      jax.random.key(1), vfl, defense, state, batch.features
  )
  plain = ask(marked._replace(decode=Defense().decode))
  np.testing.assert_allclose(ask(marked), -plain)


def test_a_defenses_own_objective_is_told_the_logits():
  vfl, batch = federation('vhnn', 2, 3), data(2)
  txs = (optax.sgd(1.0),) * 2
  summed = Defense(objective=lambda state, key, predict, up, labels: (
      labels * predict(up)
  ).sum())
  state = begin(vfl, summed, txs, batch)
  key = jax.random.key(1)
  _, seen = protocol.play_round(key, vfl, summed, txs, state, batch)
  logits = protocol.predict(key, vfl, summed, state, batch.features)
  np.testing.assert_allclose(
      seen.loss, (batch.labels * logits).sum(), rtol=1e-5
  )


def test_networks_are_told_which_rows_are_samples(monkeypatch):
  """What they make of it: tests/nets/test_batch_statistics.py."""
  vfl, batch = federation('vhnn', 2, 3), data(2)
  txs, told = (optax.sgd(1.0),) * 2, []
  counting = lambda vfl, real: told.append(real) or vfl
  monkeypatch.setattr(protocol, 'counting', counting)
  real = np.arange(SAMPLES) % 4 > 0
  protocol.play_round(
      jax.random.key(1), vfl, none(), txs, begin(vfl, none(), txs, batch),
      batch._replace(labels=batch.labels * real[:, None]),
  )
  np.testing.assert_array_equal(told[0], real)


def test_an_adversary_reaches_its_own_party_only():
  vfl, batch = federation('vhnn', 3, 3), data(3)
  txs = (optax.sgd(1.0),) * 3
  given = {}

  def note(name):
    def hook(state, key, own):
      given[name] = own
      return tuple(x + 1 for x in own)
    return hook

  liar = Adversary(
      parties=(2,), features=note('features'), send=note('send'),
      receive=note('receive'),
  )
  state = begin(vfl, none(), txs, batch, liar)
  after, seen = protocol.play_round(
      jax.random.key(1), vfl, none(), txs, state, batch, liar
  )
  honest, clean = protocol.play_round(
      jax.random.key(1), vfl, none(), txs, state, batch
  )
  assert [x.shape for x in given['features']] == [batch.features[2].shape]
  np.testing.assert_array_equal(seen.messages.up[0], clean.messages.up[0])
  assert not np.allclose(seen.messages.up[1], clean.messages.up[1])
  moved = lambda k: not np.allclose(
      *(jax.tree.leaves(s.parties[k].params)[0] for s in (after, honest))
  )
  assert moved(2)


@pytest.mark.parametrize(
    'parties, txs, features', [(1, 1, 1), (3, 2, 3), (2, 2, 3), (2, 3, 3)]
)
def test_a_federation_that_does_not_fit_is_refused(parties, txs, features):
  vfl, batch = federation('vhnn', parties, 3), data(features)
  with pytest.raises(ValueError, match='two or more parties'):
    protocol.init(
        jax.random.key(0), vfl, none(), (optax.sgd(1.0),) * txs, batch
    )


def test_a_label_only_party_cannot_have_a_bottom():
  with pytest.raises(ValueError, match='or neither'):
    protocol.init(
        jax.random.key(0), federation('vhnn', 2, 3), none(),
        (optax.sgd(1.0),) * 2, data(2, own=False),
    )


def test_unknown_names_are_refused():
  with pytest.raises(ValueError, match='concat'):
    algorithms.vhnn([nets.mlp(2)] * 2, nets.mlp(2), 'median')
  with pytest.raises(ValueError, match='leaky_relu'):
    nets.mlp(2, 2, activation='swish')


def test_every_party_draws_by_itself():
  """Hooks at the parties, and networks that draw, never get one key twice."""
  seen = []

  def note(what, key):
    seen.append((what, tuple(jax.random.key_data(key).tolist())))

  def send(passive, key, u):
    note('send', key)
    return u, jnp.zeros(())

  def share(key, gradients):
    note('share', key)
    return gradients

  plain = nets.mlp(2)

  def train(params, key, x):
    note('net', key)
    return plain.apply(params, x), ()

  net, defense = plain._replace(train=train), Defense(send=send, share=share)
  x = np.random.default_rng(0).normal(size=(3, 4, 2)).astype(np.float32)
  data = Batch(tuple(x), np.eye(2, dtype=np.float32)[np.arange(4) % 2])
  vfl = algorithms.vhnn([net] * 3, net)
  txs = (optax.sgd(0.1),) * 3
  state = protocol.init(jax.random.key(1), vfl, defense, txs, data)
  protocol.play_round(jax.random.key(2), vfl, defense, txs, state, data)
  drawn = set(seen)
  counts = {what: sum(w == what for w, _ in drawn) for what in ('net', 'send')}
  assert counts == dict(net=4, send=2)  # Three bottoms and the top.
  assert sum(what == 'share' for what, _ in drawn) == 2
  assert len({key for _, key in drawn}) == len(drawn)
  seen.clear()
  protocol.predict(jax.random.key(3), vfl, defense, state, data.features)
  assert len(set(seen)) == 2


def a_round_of_two(defense):
  """(the state before, the round)."""
  vfl, batch = federation('vhnn', 2, 3), data(2)
  txs = (optax.sgd(1.0),) * 2
  state = protocol.init(jax.random.key(0), vfl, defense, txs, batch)
  play = jax.jit(lambda state: protocol.play_round(
      jax.random.key(1), vfl, defense, txs, state, batch
  )[1])
  return state, play(state)


@pytest.mark.parametrize('others', [
    (), (lambda: dcor.dcor(0.5, 'passive'), lambda: mid.mid(0.1, 'passive')),
])
def test_gradients_of_what_is_read_pull_back_to_those_of_what_is_trained(
    others
):
  """With a penalty and noise at the party, too, which are the round's own."""
  passports = fedpass.fedpass(side='passive')
  defense = chain(*(make() for make in others), passports)
  state, played = a_round_of_two(defense)
  own = state.parties[1].params['bottom']
  sealed = lambda w: passports.expose(state.defense[-1], None, 1, w)
  back, = jax.jit(lambda w, g: jax.vjp(sealed, w)[1](g))(own, played.read[0])
  chex.assert_trees_all_close(back, played.gradients[0], rtol=1e-4, atol=1e-6)


def test_gradients_of_what_is_read_are_shared_as_the_others_are():
  """A defense of the gradients does not lose what it hides."""
  halves = lambda w: jax.tree.map(lambda x: x / 2, w)
  halved = Defense(
      bottom=lambda state, k, net: nets.with_weights(net, halves),
      expose=lambda state, key, k, weights: halves(weights),
  )
  hidden = Defense(share=lambda key, gradients: jax.tree.map(
      jnp.zeros_like, gradients
  ))
  _, played = a_round_of_two(halved)
  twice = jax.tree.map(lambda g: 2 * np.asarray(g), played.gradients)
  chex.assert_trees_all_close(played.read, twice, rtol=1e-6)
  _, played = a_round_of_two(chain(halved, hidden))
  assert not any(np.any(x) for x in jax.tree.leaves(played.read))


def test_who_reads_what_it_trains_has_no_other_gradients():
  assert a_round_of_two(none())[1].read == ()
  assert a_round_of_two(dcor.dcor(0.5, 'passive'))[1].read == ()
  _, played = a_round_of_two(vmask.vmask(0.5, 'all'))
  chex.assert_trees_all_close(played.read, played.gradients, rtol=1e-6)


def test_a_round_draws_nothing_of_what_could_be_read_of_weights():
  """Who reads them draws it; a round only asks whether they are others."""
  def expose(state, key, k, weights):
    noise = lambda w: w + jax.random.normal(key, w.shape, w.dtype)
    return jax.tree.map(noise, weights)

  def drawn(defense):
    vfl, batch = federation('vhnn', 2, 3), data(2)
    txs = (optax.sgd(1.0),) * 2
    state = begin(vfl, defense, txs, batch)
    found = draws(lambda state: protocol.play_round(
        jax.random.key(0), vfl, defense, txs, state, batch
    ), state)
    return found.count('random_bits')

  assert drawn(Defense(expose=expose)) == drawn(none())


def test_what_is_no_array_may_decide_who_reads_what():
  weights = dict(w=jnp.ones(2))
  expose = lambda state, key, k, w: w if state['kind'] == 'own' else dict(w)
  for kind in ('own', 'other'):
    found = exposes(Defense(expose=expose), dict(kind=kind), 1, weights)
    assert found == (kind == 'other')


def test_embeddings_may_have_fewer_bits_than_labels():
  """By tracing alone: a gradient has the type of what it is the gradient of."""
  batch, txs = data(2), (optax.sgd(1.0),) * 2
  half = Net(
      lambda key, x: jnp.zeros((x.shape[1], 5), jnp.bfloat16),
      lambda w, x: x.astype(jnp.bfloat16) @ w,
  )
  vfl = algorithms.vhnn([half] * 2, nets.mlp(6, 3))

  def played(batch):
    state = protocol.init(jax.random.key(0), vfl, none(), txs, batch)
    return protocol.play_round(
        jax.random.key(1), vfl, none(), txs, state, batch
    )

  after, seen = jax.eval_shape(played, batch)
  assert seen.messages.down[0].dtype == jnp.bfloat16
  assert after.parties[1].params['bottom'].dtype == jnp.bfloat16


def test_a_networks_own_jit_does_not_keep_the_rows_of_its_first_round():
  net = nets.mlp(2, norm='batch', final='relu')
  own = net._replace(train=jax.jit(jax.jit(net.train)))
  x = jnp.arange(8.0).reshape(4, 2)
  params = net.init(jax.random.key(0), x)
  for samples in 4, 2:
    real = jnp.arange(4) < samples
    found, want = (
        modules.counting_rows(which, real).run(params, jax.random.key(1), x)
        for which in (own, net)
    )
    chex.assert_trees_all_close(found, want, rtol=1e-5)
