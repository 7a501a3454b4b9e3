"""CAFE that knows MID: the penalty's gradient in what it tries to explain."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import special

from tests.contracts import recipe_named
from vfljax import algorithms, attacks, nets, protocol
from vfljax.attacks.cafe import Recovery, first_linear, third
from vfljax.defenses import mid
from vfljax.nets import bottleneck
from vfljax.nets import cafe as network
from vfljax.scene import Scene
from vfljax.types import Batch, Net
from vfljax.views import WhiteBox

ROWS, SIDE, WIDTH, LAMBDA = 4, 3, 2, 30.0
ONLY_GRADIENTS = Recovery(inputs=0.0, gradients=1.0, variation=0.0)


def _init(key, x):
  del key
  draw = np.random.default_rng(5).normal
  return dict(
      kernel=jnp.asarray(draw(size=(SIDE**2, WIDTH)), jnp.float32) / 3,
      bias=jnp.asarray(draw(size=WIDTH), jnp.float32),
  )


FLAT = Net(
    _init, lambda p, x: x.reshape(len(x), -1) @ p['kernel'] + p['bias']
)
VFL = algorithms.vhnn([FLAT, FLAT], nets.mlp(2), 'concat')


def by_mid(weight, **how):
  return mid.mid(weight, 'passive', hidden=0, parties=(1,), **how)


def samples(seed=0):
  draw = np.random.default_rng(seed).random
  return jnp.asarray(draw((ROWS, SIDE, SIDE, 1)), jnp.float32)


def drawn(seed=0):
  """A passive party's weights, with a bottleneck with a linear decoder."""
  draw = np.random.default_rng(seed).normal

  def layer(net, inputs):
    shapes = jax.eval_shape(
        net.init, jax.random.key(0), jnp.zeros((1, inputs))
    )
    return jax.tree.map(
        lambda a: jnp.asarray(draw(size=a.shape) / 2, a.dtype), shapes
    )

  encoder, decoder = bottleneck.bottleneck(WIDTH, hidden=0)
  own = bottleneck.Bottleneck(layer(decoder, WIDTH), layer(encoder, WIDTH))
  return dict(bottom=_init(None, None), defense=own)


def loss(defense, x, dz, gradients, weights, how=ONLY_GRADIENTS):
  layer = first_linear(None, VFL, defense)
  rows = jnp.arange(len(x))
  return float(jax.jit(lambda: third(
      x, jnp.zeros((len(x), WIDTH)), dz, rows, gradients, weights, layer, how,
  ))())


def by_hand(weights, x, weight):
  """In NumPy: the gradient of weight * sum over rows of KL(N(m, s^2)|N(0, 1)),
  0.5 (m^2 + s^2 - 1) - log s, where s = softplus(. - 0.5)."""
  as64 = lambda a: np.asarray(a, np.float64)
  bias, kernel = sorted(
      map(as64, jax.tree.leaves(weights['defense'].encoder)), key=np.ndim
  )
  flat = as64(x).reshape(len(x), -1)
  u = flat @ as64(weights['bottom']['kernel']) + as64(weights['bottom']['bias'])
  code = u @ kernel + bias
  mean, raw = code[:, :WIDTH], code[:, WIDTH:] - 0.5
  std = np.log1p(np.exp(raw))
  back = weight * np.concatenate(
      [mean, (std - 1 / std) * special.expit(raw)], 1
  )
  du = back @ kernel.T
  return dict(
      bottom=dict(kernel=flat.T @ du, bias=du.sum(0)),
      encoder=dict(kernel=u.T @ back, bias=back.sum(0)),
  )


def as_gradients(weights, found):
  """The same in the structure of a view, with none of the decoder."""
  own = weights['defense']
  encoder = jax.tree.map(
      lambda a: found['encoder']['kernel' if a.ndim == 2 else 'bias'],
      own.encoder,
  )
  zeros = jax.tree.map(jnp.zeros_like, own.decoder)
  return jax.tree.map(jnp.float32, dict(
      bottom=found['bottom'],
      defense=bottleneck.Bottleneck(zeros, encoder),
  ))


def test_the_penaltys_gradient_is_that_of_a_rounds_summed_kl():
  """Where dz is 0 the penalty is all that the party's gradients have."""
  weights, x = drawn(), samples()
  found = by_hand(weights, x, LAMBDA)
  size = sum((a**2).sum() for a in jax.tree.leaves(found))
  seen = as_gradients(weights, found)
  zeros, none = jnp.zeros((ROWS, WIDTH)), jax.tree.map(jnp.zeros_like, seen)
  np.testing.assert_allclose(
      loss(by_mid(LAMBDA), x, zeros, none, weights), size, rtol=1e-5
  )
  assert loss(by_mid(LAMBDA), x, zeros, seen, weights) < 1e-10 * size
  assert loss(by_mid(LAMBDA), samples(1), zeros, seen, weights) > 1e-3 * size


@pytest.fixture(name='played', scope='module')
def fixture_played():
  """A round of a federation whose bottleneck draws no noise to speak of: its
  deviation is some e^-40. (the attacked party's weights, x, gradients, dz)"""
  defense, x = by_mid(LAMBDA, shift=40.0), samples()
  batch = Batch((x, x), jnp.eye(2)[jnp.arange(ROWS) % 2])
  txs = (optax.sgd(0.1),) * 2

  def play():
    state = protocol.init(jax.random.key(1), VFL, defense, txs, batch)
    _, seen = protocol.play_round(
        jax.random.key(2), VFL, defense, txs, state, batch
    )
    return state.parties[1].params, seen

  weights, seen = jax.jit(play)()
  # As the attack takes them: of a round's sum.
  gradients = jax.tree.map(
      lambda a: ROWS * a,
      dict(bottom=seen.gradients[0], defense=seen.added[0]),
  )
  return defense, weights, x, gradients, ROWS * seen.messages.down[0]


def test_at_the_truth_nothing_is_left_to_explain(played):
  defense, weights, x, gradients, dz = played
  size = sum(float((a**2).sum()) for a in jax.tree.leaves(gradients))
  assert loss(defense, x, dz, gradients, weights) < 1e-10 * size
  # Who does not know the penalty can explain hardly anything by the truth.
  assert loss(None, x, dz, gradients, weights) > 0.9 * size


def test_of_what_the_layer_is_above_the_penalty_is_in_dz_already():
  """Behind a deeper decoder the attack starts in the party's network."""
  x, params = samples(), _init(None, None)
  encoder, decoder = bottleneck.bottleneck(WIDTH, 1, 5)
  blank = jnp.zeros((1, WIDTH))
  key = jax.random.key(0)
  own = bottleneck.Bottleneck(
      decoder.init(key, blank), encoder.init(key, blank)
  )
  deep = mid.mid(LAMBDA, 'passive', parties=(1,))
  layer = first_linear(None, VFL, deep)
  for weights in (
      dict(bottom=params, defense=own), dict(bottom=params, defense=())
  ):
    assert float(layer.penalty(weights, x)) == 0
  shallow = first_linear(None, VFL, by_mid(LAMBDA))
  assert float(shallow.penalty(drawn(), x)) > 1


def test_without_a_weight_the_penalty_changes_no_guess():
  weights, rows = drawn(), jnp.asarray([[0, 1], [2, 3], [1, 2]])
  gradients = jax.tree.map(lambda a: jnp.stack([a, a / 2, -a]), weights)
  view = WhiteBox(weights, gradients, rows, jnp.zeros_like(samples()))

  def guess(defense):
    attack = attacks.cafe(first_linear(None, VFL, defense), Recovery(6))
    return attack.run(jax.random.key(3), view)

  plain = np.asarray(jax.jit(guess, static_argnums=0)(None))
  knowing = jax.jit(lambda weight: guess(by_mid(weight)))  # One program.
  np.testing.assert_allclose(knowing(0.0), plain, rtol=1e-5)
  assert np.abs(knowing(LAMBDA) - plain).max() > 1e-3


def test_only_who_is_defended_asks_for_the_defense():
  made, vfl = recipe_named('cafe'), algorithms.vhnn(
      [network.cafe()] * 2, nets.mlp(2)
  )
  of = lambda **options: made.make(
      made.options(pool=30, batch=10, **options), Scene(2, network='cafe'), vfl
  )
  assert of().against is None
  knowing = of(defended=True)
  assert knowing.against and knowing.wants == (30, 10)
  assert knowing.against(by_mid(LAMBDA)).wants == (30, 10)
