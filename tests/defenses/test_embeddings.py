"""Defenses that change embeddings: dCor and MID."""
import functools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from experiments import quickstart
from tests.perturbing import check_apart, check_unlike
from vfljax import algorithms, nets, protocol
from vfljax import data as datasets
from vfljax.defense import Spec
from vfljax.defenses import dcor, mid
from vfljax.nets import bottleneck
from vfljax.runner.checking import checks
from vfljax.runner.experiment.division import Splits
from vfljax.runner.experiment.plans import training_plan
from vfljax.types import Batch, Net

GOLDEN = pathlib.Path(__file__).parents[1] / 'golden'
KEY = jax.random.key(0)
ROWS, WIDTH = 12, 4


def golden(name):
  return np.load(GOLDEN / f'{name}.npz')


def normal(*shape):
  return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def batch(padding=0):
  x = normal(ROWS, 3)
  labels = np.eye(2, dtype=np.float32)[np.arange(ROWS) % 2]
  labels[ROWS - padding :] = 0
  return Batch((jnp.asarray(x), jnp.asarray(-x)), jnp.asarray(labels))


def federation():
  return algorithms.vhnn([nets.mlp(WIDTH)] * 2, nets.mlp(2))


def spec(*shapes):
  return Spec(tuple(jax.ShapeDtypeStruct(s, jnp.float32) for s in shapes), 2)


def play(defense, data, rate=1.0):
  """A round of SGD: (state before, state after, round)."""
  txs, key = (optax.sgd(rate),) * 2, jax.random.key(1)
  state = protocol.init(key, federation(), defense, txs, data)
  return state, *jax.jit(lambda state: protocol.play_round(
      key, federation(), defense, txs, state, data
  ))(state)


def moved(before, after):
  """The gradients of passive party 1's weights, from SGD at rate 1."""
  old, new = before.parties[1].params, after.parties[1].params
  return jax.tree.map(lambda a, b: a - b, old['bottom'], new['bottom'])


# dCor


@jax.jit
def penalty_and_gradient(x, y):
  return jax.value_and_grad(
      lambda x: dcor.dcor(0.15).receive((), (), KEY, (x,), y)[1]
  )(x)


@pytest.mark.parametrize('case', ['n32', 'labels', 'indep', 'dupes', 'tiny'])
def test_the_penalty_is_the_weighted_logarithm(case):
  file = golden('distance_correlation')
  x, y = (np.float32(file[f'{case}_{v}']) for v in 'xy')
  expected = 0.15 * np.log(file[f'{case}_dcor_distance_correlation'])
  found = 0.15 * np.asarray(jax.jit(dcor.log_correlation)(x, y))
  np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
  if case == 'labels':  # One-hot, as in a round.
    np.testing.assert_allclose(
        penalty_and_gradient(x, y)[0], expected, rtol=1e-4, atol=1e-5
    )


def test_the_gradient_is_vflairs():
  file = golden('distance_correlation')
  x, y = (jnp.asarray(file[f'n32_{v}'], jnp.float32) for v in 'xy')
  found = jax.jit(jax.grad(dcor.log_correlation))(x, y)
  correlation = file['n32_dcor_distance_correlation']
  expected = file['n32_vflair_grad_x_float64'] / correlation
  np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)


def test_without_the_logarithm_it_is_the_correlation():
  """NoPeek's penalty: VFLAIR's gradient before that of the logarithm."""
  file = golden('distance_correlation')
  x, y = (jnp.asarray(file[f'n32_{v}'], jnp.float32) for v in 'xy')
  itself = Net(lambda key, x: x, lambda params, x: params)
  own = dcor.dcor(0.15, 'passive', log=False).bottom((), 1, itself)
  found = jax.jit(jax.grad(lambda x: 0 * own.run(x, KEY, y)[0].sum()))(x)
  expected = 0.15 * file['n32_vflair_grad_x_float64']
  np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)
  x, labels = (jnp.asarray(file[f'labels_{v}'], jnp.float32) for v in 'xy')
  one = dcor.dcor(0.15, log=False).receive
  _, value = jax.jit(lambda x: one((), (), KEY, (x,), labels))(x)
  expected = 0.15 * file['labels_dcor_distance_correlation']
  np.testing.assert_allclose(value, expected, rtol=1e-4)


@pytest.mark.parametrize('rows, constant', [(1, False), (8, True)])
def test_where_the_public_code_is_infinite_we_are_not(rows, constant):
  x = normal(rows, 3)
  x = np.ones_like(x) if constant else x
  value, gradient = penalty_and_gradient(x, np.asarray(batch().labels)[:rows])
  np.testing.assert_allclose(value, 0.15 * np.log(dcor.FLOOR), rtol=1e-6)
  np.testing.assert_array_equal(gradient, 0)


def test_padding_does_not_correlate():
  x, labels = normal(ROWS, 3), np.asarray(batch().labels)
  padded, gradient = map(
      np.asarray, penalty_and_gradient(x, batch(padding=4).labels)
  )
  value, alone = penalty_and_gradient(x[:8], labels[:8])
  np.testing.assert_allclose(padded, value, rtol=1e-5)
  np.testing.assert_allclose(gradient[:8], alone, rtol=1e-4, atol=1e-7)
  np.testing.assert_array_equal(gradient[8:], 0)


def test_labels_are_not_needed_at_inference():
  up = (jnp.ones((3, 2)),)
  found, penalty = dcor.dcor(0.15).receive((), (), KEY, up, None)
  assert found is up and penalty == 0


def test_the_passive_sides_own_penalty_reaches_its_bottom():
  """Its gradient is the received one's plus the penalty's, which nobody is
  told: the messages of the round are the undefended ones'."""
  data, net = batch(), nets.mlp(WIDTH)
  before, plain, seen = play(protocol.Defense(), data)
  _, after, other = play(dcor.dcor(0.5, 'passive'), data)
  np.testing.assert_allclose(
      seen.messages.down[0], other.messages.down[0], rtol=1e-6
  )
  x = data.features[1]
  own = jax.jit(jax.grad(
      lambda p: 0.5 * dcor.log_correlation(net.apply(p, x), x)
  ))(before.parties[1].params['bottom'])
  expected = jax.tree.map(jnp.add, moved(before, plain), own)
  found = moved(before, after)
  for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected)):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
  assert max(float(abs(a).max()) for a in jax.tree.leaves(own)) > 1e-3


@pytest.mark.parametrize('arguments, message', [
    ((-1,), 'weight'), ((0.1, 'both'), 'side'),
])
def test_bad_arguments_of_dcor(arguments, message):
  with pytest.raises(ValueError, match=message):
    dcor.dcor(*arguments)


# MID


def dense(file, name):
  return {'Dense_0': dict(
      kernel=jnp.asarray(file[f'{name}.weight'].T),
      bias=jnp.asarray(file[f'{name}.bias']),
  )}


@pytest.mark.parametrize('case, scale, hidden', [
    ('MID_model_n8d10', 1, 5), ('MID_model_n16d4_s10', 10, 5),
    ('MID_model_shift5', 1, 5), ('MID_model_small_n1d2', 1, 2),
])
def test_the_bottleneck_is_vflairs(case, scale, hidden):
  full, file = golden('mid_kl'), {}
  file = {
      k[len(case) + 1 :]: full[k] for k in full if k.startswith(case + '_')
  }
  x, weight = jnp.asarray(file['x']), float(file['lambda'])
  encoder, decoder = mid.bottleneck(x.shape[1], scale, hidden, reference=True)
  enlarge = {'Dense_0': dense(file, 'w_enlarge_layer.1')}
  decode = {
      'Dense_0': dense(file, 'w_decoder_layer.1'),
      'Dense_1': dense(file, 'w_decoder_layer.3'),
  }

  @jax.jit
  def forward(x):
    mean, log_std = mid.encode(encoder, enlarge, x, float(file['std_shift']))
    t = mean + jnp.exp(log_std) * file['eps']
    kl = weight * mid.divergence(mean, log_std, jnp.ones(len(x)))
    return kl, decoder.apply(decode, t)

  kl, z = forward(x)
  np.testing.assert_allclose(kl, file['mid_loss'], rtol=1e-5)
  np.testing.assert_allclose(z, file['z'], rtol=1e-4, atol=1e-6)
  gradient = jax.jit(jax.grad(lambda x: forward(x)[0]))(x)
  np.testing.assert_allclose(gradient, file['dloss_dx'], rtol=1e-4, atol=1e-6)


def test_the_divergence_is_the_bare_term():
  file = golden('mid_kl')
  mean, std = (jnp.asarray(file[f'kl_term_{v}']) for v in ('mu', 'std'))
  expected = file['kl_term_mean_over_batch_sum_over_dim']
  found = mid.divergence(mean, jnp.log(std), jnp.ones(len(mean)))
  np.testing.assert_allclose(found, expected, rtol=1e-5)
  padded = jnp.concatenate([mean, jnp.full_like(mean, 9.0)])
  real = jnp.repeat(jnp.array([1.0, 0.0]), len(mean))
  found = mid.divergence(padded, jnp.tile(jnp.log(std), (2, 1)), real)
  np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_deviation_that_underflows_still_has_a_gradient():
  x = jnp.array([-200.0, -15.1, -14.9, 0.0, 30.0])
  expected = [-200, -15.1, np.log(np.log1p(np.exp(-14.9))),
              np.log(np.log(2)), np.log(30)]
  np.testing.assert_allclose(bottleneck.log_softplus(x), expected, rtol=1e-6)
  slope = jax.vmap(jax.grad(bottleneck.log_softplus))(x)
  np.testing.assert_allclose(slope[:2], 1, rtol=1e-5)
  assert np.isfinite(slope).all()


def received(defense, up, labels, key=KEY):
  # Weights outside of it: those of one shape are drawn by one program.
  slots = defense.init(jax.random.key(7), spec(*[u.shape for u in up]))
  return _received(defense, slots, key, up, labels)


@functools.partial(jax.jit, static_argnums=0)
def _received(defense, slots, key, up, labels):
  return defense.receive(slots.active, slots.state, key, up, labels)


def embeddings():
  x = normal(ROWS, 2, 3)
  return (jnp.asarray(x), jnp.asarray(x[:, 0]))


def test_every_passive_party_has_its_bottleneck():
  up, labels = embeddings(), batch().labels
  z, penalty = received(mid.mid(0.1, scale=2), up, labels)
  assert [a.shape for a in z] == [u.shape for u in up]
  alone = [
      received(mid.mid(1.0, scale=2), (u,), labels)[1] for u in up
  ]
  assert penalty > 0 and min(alone) > 0
  nothing, free = received(mid.mid(0.0, scale=2), up, labels)
  assert free == 0
  np.testing.assert_array_equal(nothing[0], z[0])  # Bottleneck and noise stay.
  assert not np.allclose(z[0], up[0], atol=0.1)


def test_what_is_drawn_has_its_mean_and_deviation():
  """A linear decoder as wide as its input: what was drawn can be solved for."""
  u = jax.random.normal(KEY, (4, 3), jnp.float32)
  defense = mid.mid(0.5, hidden=0, shift=0.0)
  own = defense.init(jax.random.key(7), spec(u.shape, u.shape)).active
  labels = batch().labels[:4].at[3].set(0)
  z, penalty = jax.jit(jax.vmap(
      lambda key: defense.receive(own, (), key, (u, u), labels)
  ))(jax.random.split(KEY, 2000))
  encoder, _ = bottleneck.bottleneck(3, hidden=0)
  drawn, costs = [], []
  for out, party in zip(z, own):
    mean, log_std = bottleneck.encode(encoder, party.encoder, u, 0.0)
    layer = party.decoder['Dense_0']['Dense_0']
    t = np.linalg.solve(layer['kernel'].T, (np.asarray(out) - layer['bias'])
                        .reshape(-1, 3).T).T.reshape(-1, 4, 3)
    drawn.append((t - mean) / np.exp(log_std))
    costs.append(mid.divergence(mean[:3], log_std[:3], jnp.ones(3)))
  noise = np.stack(drawn, 1)
  np.testing.assert_allclose(noise.mean(0), 0, atol=0.1)
  np.testing.assert_allclose(noise.std(0), 1, atol=0.08)
  check_apart(noise)
  np.testing.assert_allclose(penalty, 0.5 * sum(costs), rtol=1e-4)
  check_unlike(own[0], own[1])
  check_unlike(own[0].encoder, own[0].decoder)


@pytest.mark.parametrize('side', ['active', 'passive'])
def test_one_passive_party_may_be_the_only_one_defended(side):
  up = embeddings()
  defense = mid.mid(1.0, side, parties=[2])
  made = defense.init(KEY, spec(*(u.shape for u in up)))
  mine = made.active if side == 'active' else made.passive
  assert mine[0] == () and isinstance(mine[1], bottleneck.Bottleneck)
  if side == 'active':
    z, penalty = defense.receive(made.active, (), KEY, up, None)
  else:
    z, costs = zip(*(defense.send(p, KEY, u) for p, u in zip(mine, up)))
    assert costs[0] == 0
    penalty = sum(costs)
  np.testing.assert_array_equal(z[0], up[0])
  assert penalty > 0 and not np.allclose(z[1], up[1], atol=0.1)


def test_a_party_that_there_is_not_cannot_be_defended():
  up = embeddings()
  with pytest.raises(ValueError, match='there are 2 passive ones'):
    received(mid.mid(0.1, parties=[3]), up, None)


@pytest.mark.parametrize('noise', ['always', 'training'])
def test_noise_at_inference_is_a_choice(noise):
  up, defense = embeddings(), mid.mid(0.1, noise=noise)
  one = received(defense, up, None, jax.random.key(1))[0][0]
  other = received(defense, up, None, jax.random.key(2))[0][0]
  assert np.array_equal(one, other) == (noise == 'training')
  one, other = (
      received(defense, up, batch().labels, jax.random.key(k))[0][0]
      for k in (1, 2)
  )
  assert not np.array_equal(one, other)


@pytest.mark.parametrize('reference', [True, False])
def test_only_the_reference_form_cannot_be_negative(reference):
  z, _ = received(mid.mid(0.1, reference=reference), embeddings(), None)
  assert bool((z[0] >= 0).all()) == reference


def test_the_passive_side_descends_its_own_divergence():
  """At lambda alone, without a task: the KL of its bottleneck falls."""
  data, txs = batch(), (optax.sgd(0.05),) * 2

  def kl(state):
    params = state.parties[1].params
    u = nets.mlp(WIDTH).apply(params['bottom'], data.features[1])
    return mid.mid(1.0, 'passive').send(params['defense'], KEY, u)[1]

  # Outside of the program; lambda has no part in what is drawn.
  state = protocol.init(
      KEY, federation(), mid.mid(1.0, 'passive'), txs, data
  )

  def descend(weight):
    defense = mid.mid(weight, 'passive')
    after, _ = protocol.play_round(
        KEY, federation(), defense, txs, state, data
    )
    return kl(state), kl(after)

  before, after = jax.jit(jax.vmap(descend))(jnp.array([0.0, 1.0]))
  assert before[0] == before[1]
  assert after[1] < before[1] - 0.01 and after[1] < after[0] - 0.01


@pytest.mark.parametrize('arguments, message', [
    (dict(weight=-1), 'weight'), (dict(weight=1, side='top'), 'side'),
    (dict(weight=1, scale=0), 'scale'), (dict(weight=1, hidden=-1), 'hidden'),
    (dict(weight=1, noise='never'), 'noise'),
    (dict(weight=1, side='passive', noise='training'), 'passive'),
    (dict(weight=1, parties=[0]), 'parties'),
])
def test_bad_arguments_of_mid(arguments, message):
  with pytest.raises(ValueError, match=message):
    mid.mid(**arguments)


@pytest.mark.slow
def test_the_bottleneck_may_have_its_own_learning_rate():
  """A configured rate moves a defense's weights and no others."""

  def after(rate):
    config = quickstart.get_config()
    config.defenses, config.train.optimizer = 'mid', 'sgd'
    config.train.learning_rate, config.train.defense_learning_rate = 0.5, rate
    made = checks.make(config, datasets.load('breast_cancer'))
    samples = jax.tree.map(lambda x: x[:32], made.samples)
    plan = training_plan(made, mid.mid(0.1), Splits(*[samples] * 4))

    # Weights outside of the program: both rates have the same ones drawn.
    old = protocol.init(KEY, plan.vfl, plan.defense, plan.txs, samples)
    new, _ = jax.jit(lambda state: protocol.play_round(
        KEY, plan.vfl, plan.defense, plan.txs, state, samples
    ))(old)
    step = jax.tree.map(
        lambda a, b: np.asarray(a) - np.asarray(b), old.parties[0].params,
        new.parties[0].params,
    )
    return step, new.parties[1].params

  (plain, bottom), (slow, same) = after(0.0), after(0.005)
  for name, factor in dict(defense=0.01, bottom=1, top=1).items():
    expected = jax.tree.map(lambda x, f=factor: x * f, plain[name])
    for a, b in zip(jax.tree.leaves(slow[name]), jax.tree.leaves(expected)):
      np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
  for a, b in zip(jax.tree.leaves(bottom), jax.tree.leaves(same)):
    np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize('parties', [(), 1, '1'])
def test_mid_is_of_parties(parties):
  """Without any it would be no defense, and be called one."""
  with pytest.raises(ValueError, match=r'mid: parties must be a tuple of pass'):
    mid.mid(0.1, parties=parties)
