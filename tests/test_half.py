"""Bottom networks that compute wholly in half precision, weights included.

Messages keep their type; what a defense or an attack computes of them is as of
float32 messages, but for their rounding.
"""
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests import contracts
from vfljax import algorithms, completion, descent, nets, protocol, views
from vfljax.attacks.active_completion import malicious_sgd
from vfljax.attacks.gradient_inversion import Search, gradient_inversion
from vfljax.attacks.mixmatch import MixMatch, mixmatch
from vfljax.attacks.model_completion import model_completion
from vfljax.attacks.model_inversion import Inversion, model_inversion
from vfljax.attacks.norm_scoring import norm_scoring
from vfljax.attacks.residual_scoring import residual_scoring
from vfljax.defenses.gafm import gafm
from vfljax.types import Net

HALF = jnp.bfloat16, jnp.float16
AT_LAST = jnp.float16  # Whose smallest number is the largest.
ON_GRADIENTS = sorted(
    name for name in contracts.DEFENSES
    if contracts.make(name).gradient is not contracts.make('none').gradient
)


def halved(net: Net, dtype) -> Net:
  """The network with all its weights and its arithmetic in a type."""
  cast = functools.partial(jax.tree.map, lambda x: x.astype(dtype))

  def apply(weights, x):
    assert {w.dtype for w in jax.tree.leaves(weights)} == {jnp.dtype(dtype)}
    return net.apply(weights, x.astype(dtype))

  return Net(lambda key, x: cast(net.init(key, x)), apply)


def federation(dtype):
  bottoms = [halved(nets.mlp(8, contracts.WIDTH), dtype)] * contracts.PARTIES
  return algorithms.vhnn(bottoms, nets.binary(nets.mlp(8, 1)))


@pytest.mark.parametrize('name', contracts.DEFENSES)
def test_messages_and_weights_keep_their_type(name):
  defense, vfl = contracts.make(name), federation(HALF[0])
  data = contracts.batch()

  def played(key):
    state = protocol.init(
        key, vfl, defense, contracts.TXS, data, auxiliary=data
    )
    return state, protocol.play_round(
        key, vfl, defense, contracts.TXS, state, data
    )

  begun, (after, seen) = jax.eval_shape(played, jax.random.key(0))
  types = lambda tree: jax.tree.map(lambda x: x.dtype, tree)
  assert types(begun) == types(after)
  messages = jax.tree.leaves(seen.messages)
  assert {m.dtype for m in messages} == {jnp.dtype(HALF[0])}


@pytest.mark.parametrize('name', ON_GRADIENTS)
def test_small_gradients_are_perturbed_as_in_float32(name):
  """Their squares are 0 in float16, and their inverses infinite."""
  draw = np.random.default_rng(0).normal
  labels = jax.nn.one_hot(jnp.arange(32) % 2, 2)
  d = (3e-5 * draw(size=(32, 4))).astype(AT_LAST)
  hook = contracts.make(name).gradient
  of = lambda d: hook((), jax.random.key(1), (d,), labels)[0][0]
  # One program: outside of one each operation would be compiled by itself.
  half, full = jax.jit(lambda d: (of(d), of(d.astype(jnp.float32))))(d)
  assert half.dtype == AT_LAST
  np.testing.assert_array_equal(half, full.astype(AT_LAST))


@pytest.mark.parametrize('defense', [contracts.make('rvfr'), gafm()])
def test_the_active_party_computes_in_full(defense):
  """Half precision has no eigenvectors; in bfloat16 1 - 1e-4 is 1."""
  vfl, data = federation(HALF[0]), contracts.batch()
  data = data._replace(features=tuple(9 * x for x in data.features))
  key, txs = jax.random.key(0), (optax.sgd(0.1),) * contracts.PARTIES

  @jax.jit
  def two_rounds():
    state = protocol.init(key, vfl, defense, txs, data)
    play = lambda state, _: protocol.play_round(
        key, vfl, defense, txs, state, data
    )
    state, seen = jax.lax.scan(play, state, length=2)
    logits = protocol.predict(key, vfl, defense, state, data.features)
    return state, seen, logits

  state, seen, logits = two_rounds()
  for x in jax.tree.leaves((state, seen, logits)):
    assert np.isfinite(np.asarray(x, np.float32)).all()


def view_of(kind, vfl):
  """A view of a round of that federation."""
  data, plain = contracts.batch(), contracts.make('none')
  key = jax.random.key(0)
  state, seen = contracts.one_round(vfl)
  if kind is views.TrainedTop:
    return views.trained_top(plain, state, seen.messages.up[0], data)
  if kind is views.RecordedGradients:
    rounds = jax.tree.map(lambda x: x[None], seen)
    return views.recorded_gradients(key, 1, rounds, 2)[0]
  return views.in_training(kind, key, 1, plain, seen)


def ranks(x):
  return np.asarray(x, np.float32).ravel().argsort().argsort()


def test_views_of_messages_are_float32():
  vfl = federation(AT_LAST)
  view = view_of(views.CutGradients, vfl)
  assert view.sent.dtype == view.received.dtype == jnp.float32
  kept = view_of(views.ModelGradients, vfl)
  assert {g.dtype for g in jax.tree.leaves(kept.gradients)} == {
      jnp.dtype('float32')
  }
  recorded = view_of(views.RecordedGradients, vfl)
  assert recorded.known_received.dtype == jnp.float32
  assert recorded.received.dtype == jnp.float32
  top = view_of(views.TrainedTop, vfl)
  assert top.received.dtype == jnp.float32
  for attack in norm_scoring(), residual_scoring(2):
    assert np.isfinite(jax.jit(attack.run)(jax.random.key(0), view)).all()


@pytest.mark.parametrize('dtype', [
    pytest.param(HALF[0], marks=pytest.mark.slow), *HALF[1:]
])
def test_an_attacker_inverts_gradients_in_full(dtype):
  def guess(dtype):
    bottoms = (halved(nets.mlp(1), dtype),) * 2
    vfl = algorithms.vlr(2, 2)._replace(bottoms=bottoms)
    attack = gradient_inversion(bottoms[1], 2, Search(20, 1))
    view = view_of(views.ModelGradients, vfl)
    return jax.jit(attack.run)(jax.random.key(1), view)

  half, full = guess(dtype), guess(jnp.float32)
  assert half.dtype == jnp.float32
  assert np.corrcoef(ranks(half), ranks(full))[0, 1] > 0.9


def trained(dtype):
  weights = federation(dtype).bottom(1).init(
      jax.random.key(0), contracts.batch().features[1]
  )
  data = contracts.batch()
  known, labels, x = data.features[1][:6], data.labels[:6], data.features[1]
  return weights, known, labels, x


@pytest.mark.parametrize('dtype', HALF)
def test_an_attacker_completes_a_network_in_full(dtype):
  """A column of zeros has no gradient: Adam made it NaN."""
  def guess(dtype):
    bottom = federation(dtype).bottom(1)
    weights, known, labels, x = trained(dtype)
    blank = lambda x: x.at[:, 0].set(0)
    view = views.TrainedBottom(weights, blank(known), labels, x)
    attack = model_completion(
        bottom, nets.mlp(2), completion.Schedule(5, stages=1)
    )
    return jax.jit(attack.run)(jax.random.key(1), view)

  half = guess(dtype)
  assert half.dtype == jnp.float32
  np.testing.assert_allclose(half, guess(jnp.float32), atol=0.05)


def test_a_shadow_is_trained_in_full_and_computes_in_half():
  """As the network that it guesses: its weights have their own type again."""
  vfl = federation(AT_LAST)
  view = view_of(views.TrainedTop, vfl)
  attack = model_inversion(vfl, vfl.bottoms[1], Inversion(2, steps=2))
  found = jax.jit(attack.run)(jax.random.key(1), view)
  assert found.dtype == jnp.float32 and np.isfinite(found).all()


def test_mixmatch_completes_a_network_in_full():
  weights, known, labels, x = trained(AT_LAST)
  view = views.UnlabeledBottom(weights, known.at[:, 0].set(0), labels, x,
                               x.at[:, 0].set(0))
  attack = mixmatch(
      federation(AT_LAST).bottom(1), nets.mlp(2),
      MixMatch(2, 2, stages=1),
  )
  assert np.isfinite(jax.jit(attack.run)(jax.random.key(1), view)).all()


def test_masters_are_the_same_object_where_nothing_is_half():
  full = dict(w=jnp.ones(3), i=jnp.arange(3), b=jnp.ones(3, 'int8'))
  same, back = descent.masters(full)
  assert same is full and back(full) is full
  mixed = dict(full, h=jnp.ones(2, HALF[0]))
  wide, back = descent.masters(mixed)
  assert [wide[k].dtype for k in 'hiwb'] == [
      'float32', 'int32', 'float32', 'int8'
  ]
  assert back(wide)['h'].dtype == HALF[0] and back(wide)['i'].dtype == 'int32'


def test_a_malicious_step_keeps_half_precision():
  tx = malicious_sgd(0.1)
  weights = jnp.ones(3, AT_LAST)
  moved, _ = descent.step(tx, weights, tx.init(weights), weights)
  assert moved.dtype == AT_LAST
