"""FedPass: passports in the networks' layers, and the block at the cut."""
import functools
import pathlib

from flax import linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.perturbing import check_unlike
from tests.small_networks import drawn as weights_of
from vfljax import algorithms, nets, protocol
from vfljax.defense import Spec
from vfljax.defenses import fedpass, fedpass_cut, passports
from vfljax.types import Batch

GOLDEN = pathlib.Path(__file__).parents[1] / 'golden'
KEY = jax.random.key(0)
ROWS, WIDTH = 12, 4


def batch():
  x = np.random.default_rng(0).normal(size=(ROWS, 3)).astype(np.float32)
  labels = np.eye(2, dtype=np.float32)[np.arange(ROWS) % 2]
  return Batch((jnp.asarray(x), jnp.asarray(-x)), jnp.asarray(labels))


def parties():
  return algorithms.vhnn([nets.mlp(5, WIDTH)] * 2, nets.mlp(6, 2))


def play(defense, tx=optax.sgd(1.0)):
  """A round, of SGD at 1: (state before, state after, round)."""
  txs, key, data = (tx,) * 2, jax.random.key(1), batch()
  # Outside of a program: weights of one shape are drawn by one for all tests.
  state = protocol.init(key, parties(), defense, txs, data)
  return state, *jax.jit(lambda state: protocol.play_round(
      key, parties(), defense, txs, state, data
  ))(state)


# In the networks' layers


def written_out(x, layers):
  """Passport layers with ReLU between them, as the equation says.

  Args:
    layers: (kernel, bias, p_s, p_b) of each.
  """
  for i, (kernel, bias, scale_key, bias_key) in enumerate(layers):
    linear = lambda z, w=kernel, c=bias: z @ w + c
    s, b = linear(scale_key).mean(0), linear(bias_key).mean(0)
    x = np.tanh(s) * linear(x) + np.tanh(b)
    x = np.maximum(x, 0) if i < len(layers) - 1 else x
  return x


def layer_of(params, passports, name):
  group, inner = name.split('/')
  own = {**params[group][inner], **passports[name]}
  return [
      np.asarray(own[k], np.float64)
      for k in ('kernel', 'bias', 'scale_key', 'bias_key')
  ]


NAMES = ('Dense_0/Dense_0', 'Dense_1/Dense_0')


def test_passports_scale_and_shift_every_layer_of_both_networks():
  before, _, played = play(fedpass.fedpass())
  active, passive = before.parties
  x = np.asarray(batch().features[0], np.float64)
  own = [
      layer_of(passive.params['bottom'], before.defense[0], n) for n in NAMES
  ]
  np.testing.assert_allclose(
      played.messages.up[0], written_out(-x, own), rtol=1e-5, atol=1e-6
  )
  top = active.params['top']
  u = np.concatenate([
      parties().bottom(0).apply(active.params['bottom'], x),
      played.messages.up[0],
  ], 1)
  logits = written_out(
      u, [layer_of(top['net'], top['passports'], n) for n in NAMES]
  )
  logits -= logits.max(1, keepdims=True)
  log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
  loss = -log_p[np.arange(ROWS), np.arange(ROWS) % 2].mean()
  np.testing.assert_allclose(played.loss, loss, rtol=1e-5)


def test_the_scale_follows_the_weights():
  """The gradient, through W in s and b too, is that of finite differences."""
  before, _, played = play(fedpass.fedpass(side='passive'))
  down = np.asarray(played.messages.down[0], np.float64)
  x = -np.asarray(batch().features[0], np.float64)
  params, passports = before.parties[1].params['bottom'], before.defense[0]
  layers = [layer_of(params, passports, name) for name in NAMES]

  def pulled(step):
    moved = [[a.copy() for a in layer] for layer in layers]
    moved[1][0][2, 1] += step
    return (written_out(x, moved) * down).sum()

  expected = (pulled(1e-5) - pulled(-1e-5)) / 2e-5
  got = played.gradients[0]['Dense_1']['Dense_0']['kernel'][2, 1]
  np.testing.assert_allclose(got, expected, rtol=1e-4)


def test_its_owner_reads_weights_of_a_plain_network():
  defense = fedpass.fedpass()
  _, state, _ = play(defense)
  x = batch().features[1]
  weights = state.parties[1].params['bottom']
  seen = defense.expose(state.defense, KEY, 1, weights)
  sent = protocol.embed(KEY, parties(), defense, state, 1, x)
  np.testing.assert_allclose(
      parties().bottom(1).apply(seen, x), sent, rtol=1e-5, atol=1e-6
  )
  assert not np.allclose(parties().bottom(1).apply(weights, x), sent)


@pytest.mark.parametrize('side', passports.SIDES)
def test_the_side_says_whose_networks_have_passports(side):
  before, _, played = play(fedpass.fedpass(side=side))
  bottom = before.parties[1].params['bottom']
  plain = parties().bottom(1).apply(bottom, batch().features[1])
  assert np.allclose(plain, played.messages.up[0]) == (side == 'active')
  has = 'passports' in before.parties[0].params['top']
  assert has == (side != 'passive')


@pytest.mark.parametrize('side', fedpass.NUMBERED)
def test_a_number_for_a_side_trains_as_its_word(side):
  """From the same weights; a passive party also reads the same ones."""
  def trained(side):
    defense = fedpass.fedpass(side=side)
    before, after, played = play(defense)
    read = defense.expose(
        after.defense, KEY, 1, after.parties[1].params['bottom']
    )
    weights = [[p.params for p in s.parties] for s in (before, after)]
    return weights, read, played.messages, played.loss

  number = jnp.asarray(float(fedpass.NUMBERED.index(side)))
  jax.tree.map(
      functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6),
      jax.jit(trained)(number), trained(side),
  )


def test_sealed_weights_have_the_types_of_the_networks():
  layer = dict(kernel=jnp.ones((3, 2), jnp.bfloat16), bias=jnp.ones(2))
  keys = dict.fromkeys(('scale_key', 'bias_key'), jnp.ones((1, 3)))
  for side in fedpass.NUMBERED:
    defense = fedpass.fedpass(side=jnp.asarray(fedpass.NUMBERED.index(side)))
    read = defense.expose((dict(fc=keys),), KEY, 1, dict(fc=layer))['fc']
    # tanh(3 + 1) is nearly 1: the scale hardly moves, the shift is added.
    np.testing.assert_allclose(
        read['bias'], 2 * np.tanh(4) if side == 'both' else 1, rtol=1e-3
    )
    assert read['kernel'].dtype == jnp.bfloat16


def test_a_convolutions_passport_is_a_window():
  """Its mean output on an image of one pixel repeated, away from the edge."""
  x = jnp.zeros((2, 16, 16, 1))
  net = nets.make('lenet5', 8)
  params = weights_of(net, x)
  spec = Spec(
      (jax.ShapeDtypeStruct((2, 8), jnp.float32),), 2, bottoms=(params,)
  )
  found = fedpass.fedpass(variance=0, among=('conv2',)).init(KEY, spec)
  own, = found.state
  assert set(own) == {'conv2'}
  assert own['conv2']['scale_key'].shape == (1, 5, 5, 6)
  conv = params['conv2']
  got = fedpass.own_mean(conv, own['conv2']['scale_key'])
  pixels = jnp.full((1, 9, 9, 6), -1.0)  # The mean, at variance 0.
  seen = jax.lax.conv_general_dilated(
      pixels, conv['kernel'], (1, 1), 'VALID',
      dimension_numbers=('NHWC', 'HWIO', 'NHWC'),
  ) + conv['bias']
  np.testing.assert_allclose(got, seen.mean((0, 1, 2)), rtol=1e-5, atol=1e-6)


def test_passports_in_layers_do_not_learn():
  before, after, _ = play(fedpass.fedpass())
  old, new = (s.parties[0].params['top'] for s in (before, after))
  jax.tree.map(
      np.testing.assert_array_equal, old['passports'], new['passports']
  )
  assert not np.array_equal(
      old['net']['Dense_0']['Dense_0']['kernel'],
      new['net']['Dense_0']['Dense_0']['kernel'],
  )
  jax.tree.map(np.testing.assert_array_equal, before.defense, after.defense)


def test_a_passports_means_spread():
  """Uniform in (-15, 0): mean -7.5, variance 15^2 / 12 and the normal's."""
  key = passports.draw(KEY, (1, 4000), -15.0, 0.5, spread=True)
  np.testing.assert_allclose(key.mean(), -7.5, atol=0.3)
  np.testing.assert_allclose(key.var(), 15**2 / 12 + 0.5, rtol=0.05)


@pytest.mark.parametrize('among, message', [
    (('fc',), 'no layer .fc. to mask'), (('conv1',), 'needs a bias'),
])
def test_layers_that_cannot_have_passports_are_refused(among, message):
  params = dict(
      conv1=dict(kernel=jnp.zeros((3, 3, 1, 2))),
      fc1=dict(kernel=jnp.zeros((8, 2)), bias=jnp.zeros(2)),
  )
  shape = jax.ShapeDtypeStruct((2, 2), jnp.float32)
  spec = Spec((shape,), 2, bottoms=(params,))
  with pytest.raises(ValueError, match=message):
    fedpass.fedpass(among=among).init(KEY, spec)


def test_every_party_and_layer_has_passports_of_its_own():
  x = jax.random.normal(KEY, (ROWS, 6), jnp.float32)
  vfl = algorithms.vhnn([nets.mlp(6, 6)] * 3, nets.mlp(2))
  data = Batch((x, x, x), batch().labels)
  defense = fedpass.fedpass(side='passive')
  state = protocol.init(KEY, vfl, defense, (optax.sgd(1.0),) * 3, data)
  drawn = [
      pair[which] for own in state.defense for pair in own.values()
      for which in ('scale_key', 'bias_key')
  ]
  assert len(drawn) == 8
  for i, one in enumerate(drawn):
    for other in drawn[:i]:
      check_unlike(one, other)
  # Each party computes, and reads, with its own.
  for k in (1, 2):
    params = state.parties[k].params['bottom']
    mine = fedpass.sealed(params, state.defense[k - 1])
    read = defense.expose(state.defense, KEY, k, params)
    computed = defense.bottom(state.defense, k, vfl.bottom(k)).apply(params, x)
    np.testing.assert_array_equal(computed, vfl.bottom(k).apply(mine, x))
    jax.tree.map(np.testing.assert_array_equal, read, mine)


# The block at the cut


def test_every_party_and_side_has_a_block_of_its_own():
  shape = jax.ShapeDtypeStruct((ROWS, 16), jnp.float32)
  own = fedpass_cut.fedpass_cut(hidden=8).init(KEY, Spec((shape,) * 2, 2))
  blocks = [*own.active, *own.passive]
  for i, block in enumerate(blocks):
    check_unlike(block['scale_key'], block['bias_key'])
    check_unlike(block['first'], block['second'])
    for other in blocks[:i]:
      check_unlike(block, other)


@pytest.mark.parametrize('case', ['lin_n8i6o8', 'lin_n4i3o2', 'lin_n1i5o4'])
def test_the_passport_layer_is_secretflows(case):
  full = np.load(GOLDEN / 'fedpass_secretflow.npz')
  file = {
      k[len(case) + 1 :]: full[k] for k in full if k.startswith(case + '_')
  }
  linear = lambda name: dict(
      kernel=file[f'w__{name}.weight'].T, bias=file[f'w__{name}.bias']
  )
  params = dict(
      first=linear('linear'), second=linear('linear2'),
      encode=file['w__encode.weight'].T, decode=file['w__decode.weight'].T,
      scale_key=file['skey'], bias_key=file['bkey'],
  )
  y, scale, bias = jax.jit(fedpass_cut.block)(params, file['x'])
  np.testing.assert_allclose(y, file['y'], rtol=1e-4, atol=1e-8)
  np.testing.assert_allclose(scale, file['scale'], rtol=1e-4, atol=1e-8)
  np.testing.assert_allclose(bias, file['bias'], rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize('side', passports.SIDES)
def test_layers_stand_where_they_are_asked_for(side):
  u = jax.random.normal(KEY, (ROWS, 2, 3), jnp.float32)
  defense = fedpass_cut.fedpass_cut(side=side)
  shape = jax.ShapeDtypeStruct(u.shape, u.dtype)
  slots = defense.init(KEY, Spec((shape,), 2))
  sent, penalty = defense.send(slots.passive[0], KEY, u)
  got, _ = defense.receive(slots.active, slots.state, KEY, (u,), None)
  assert sent.shape == got[0].shape == u.shape and penalty == 0
  assert np.array_equal(sent, u) == (side == 'active')
  assert np.array_equal(got[0], u) == (side == 'passive')


def test_passports_are_drawn_as_asked_and_do_not_learn():
  passport = functools.partial(passports.draw, mean=-1.0, variance=0.5)
  layer = jax.jit(lambda key: fedpass_cut.draw(key, 4000, 2, passport))(KEY)
  key = np.asarray(layer['scale_key'])
  np.testing.assert_allclose(key.mean(), -1, atol=0.05)
  np.testing.assert_allclose(key.var(), 0.5, atol=0.05)
  assert not np.allclose(key, layer['bias_key'])
  before, after, _ = play(fedpass_cut.fedpass_cut())
  for party in (0, 1):
    old = before.parties[party].params['defense']
    new = after.parties[party].params['defense']
    old, new = (old[0], new[0]) if party == 0 else (old, new)
    np.testing.assert_array_equal(old['scale_key'], new['scale_key'])
    np.testing.assert_array_equal(old['bias_key'], new['bias_key'])
    assert not np.array_equal(old['decode'], new['decode'])


@pytest.mark.parametrize('defense', [
    fedpass.fedpass(), fedpass_cut.fedpass_cut(),
], ids=['fedpass', 'fedpass_cut'])
def test_a_weight_decay_leaves_passports_alone(defense):
  """They are inputs. All weights, which are not 0, lose a half."""
  decay = optax.chain(optax.scale(0.0), optax.add_decayed_weights(-0.5))
  before, after, _ = play(defense, decay)
  passports = 0
  for (path, old), new in zip(
      jax.tree.leaves_with_path([p.params for p in before.parties]),
      jax.tree.leaves([p.params for p in after.parties]), strict=True,
  ):
    is_passport = path[-1].key in ('scale_key', 'bias_key')
    passports += is_passport
    kept = old if is_passport else old / 2
    np.testing.assert_allclose(new, kept, rtol=1e-6, err_msg=str(path))
  assert passports == 4


class Bare(nn.Module):
  """A top network of one matrix."""

  @nn.compact
  def __call__(self, received):
    return nn.Dense(2, use_bias=False)(jnp.concatenate(received, 1))


@pytest.mark.parametrize('side', ['active', 'both', 'passive'])
@pytest.mark.parametrize('top', [
    nets.linen(Bare()), algorithms.plain(),
], ids=['matrix', 'nothing'])
def test_a_top_network_without_a_place_for_passports(side, top):
  vfl = algorithms.vhnn([nets.mlp(5, 2)] * 2, nets.mlp(2))._replace(top=top)
  defense, txs = fedpass.fedpass(side=side), (optax.sgd(1.0),) * 2
  begin = lambda: jax.eval_shape(
      lambda: protocol.init(KEY, vfl, defense, txs, batch())
  )
  if side == 'passive':
    begin()
    return
  with pytest.raises(ValueError, match="top network needs .*side='passive'"):
    begin()


@pytest.mark.parametrize('arguments, message', [
    (dict(variance=-1), 'variance'), (dict(mean=float('nan')), 'mean'),
    (dict(side='top'), 'side'), (dict(side=2), 'side'),
    (dict(hidden=0), 'hidden'),
])
def test_bad_arguments_of_fedpass(arguments, message):
  with pytest.raises(ValueError, match=f'fedpass_cut: {message}'):
    fedpass_cut.fedpass_cut(**arguments)
  if message != 'hidden':
    with pytest.raises(ValueError, match=f'fedpass: {message}'):
      fedpass.fedpass(**arguments)


@pytest.mark.parametrize('defense', [
    fedpass.fedpass(), fedpass_cut.fedpass_cut(),
], ids=['fedpass', 'fedpass_cut'])
def test_passports_have_no_gradient(defense):
  """It would not move them, but count in a norm that a gradient is cut to."""
  _, after, _ = play(defense, optax.sgd(1.0, momentum=0.9))
  remembered = jax.tree.leaves_with_path([p.opt for p in after.parties])
  own = [
      np.abs(np.asarray(gradient)).max() for path, gradient in remembered
      if getattr(path[-1], 'key', '') in ('scale_key', 'bias_key')
  ]
  assert len(own) >= 4 and not any(own)
  assert len(remembered) > len(own)
