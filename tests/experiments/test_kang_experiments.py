"""The experiments of Kang et al. on small data: configs, model inversion and
the paper's numbers."""
import dataclasses
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from skimage.metrics import structural_similarity

from experiments.kang2022 import paper, table16, vlr, vnn
from tests import small_networks
from vfljax import algorithms, evaluation, measure, nets, train
from vfljax.attack import Attack, Wants
from vfljax.attacks import model_inversion
from vfljax.attacks.inversion_shadow import DRAWS, sender
from vfljax.attacks.model_inversion import Inversion, invert, total_variation
from vfljax.data import credit, criteo, spambase, vehicle
from vfljax.data.table import Table
from vfljax.defense import Defense, Spec, slots
from vfljax.defenses import precode
from vfljax.nets import convolutional
from vfljax.runner.checking import checks
from vfljax.runner.compiled import cell
from vfljax.runner.errors import UserError
from vfljax.runner.experiment import jobs
from vfljax.runner.experiment.setting import split_samples
from vfljax.types import VFL, Batch, Net
from vfljax.views import TrainedTop

KEY = jax.random.key(0)


def test_the_papers_numbers_give_the_papers_scores():
  """Optimal PU scores of Tables 10 and 11, computed from the leakages."""
  scores = {
      'credit': dict(gradient_compression=0, discrete_sgd=0, max_norm=2,
                     dp_laplace=4, iso=4),
      'vehicle': dict(gradient_compression=2, discrete_sgd=2, max_norm=3,
                      dp_laplace=4, iso=4),
  }
  for data, table in scores.items():
    for defense, score in table.items():
      loss, *leaks = paper.GRADIENTS[data][1][defense]
      assert evaluation.optimal_pu_score([leaks], [loss]) == score


def images(config, samples=40):
  """The smallest setting with images for a config."""
  draws = np.random.default_rng(0)
  x = draws.integers(0, 256, (samples, 28, 28, 1), np.uint8)
  y = (np.arange(samples) % 10).astype(np.int32)
  test = np.arange(samples) >= samples - 10
  table = Table(x, y, (), tuple('0123456789'), (), test)
  return checks.make(config, table)


def inversion_config(**attack):
  config = table16.get_config('vsnn')
  config.train.batch_size = 4
  attack = dict(inverted=4) | attack
  own = dict(samples=attack.pop('inverted'))
  config.attack = dataclasses.replace(config.attack, **attack)
  config.attack = config.attack.but(model_inversion=own)
  return config


def test_auxiliary_samples_are_nobodys_training_samples():
  setting = images(inversion_config(auxiliary=10))
  assert setting.sizes[:4] == (20, 0, 10, 10)
  splits = jax.jit(
      lambda key: split_samples(setting, key, setting.samples)
  )(jax.random.key(0))
  counts = [len(batch.labels) for batch in splits[:4] if batch]
  assert counts == [20, 0, 10, 10]
  own = {x.tobytes() for x in np.asarray(splits.train.features[1])}
  theirs = {x.tobytes() for x in np.asarray(splits.auxiliary.features[1])}
  assert len(own) == 20 and len(theirs) == 10 and not own & theirs
  # Party B has the upper half in VSNN too, and nobody the lower one.
  assert setting.samples.features[0] is None
  assert setting.samples.features[1].shape == (40, 14, 28, 1)


@pytest.mark.parametrize('change, why', [
    (dict(auxiliary=0), 'trains a shadow model on auxiliary samples'),
    (dict(auxiliary=30), 'leave some of the 30 training samples'),
    (dict(auxiliary=10, inverted=11), 'between 1 and the 10 test samples'),
])
def test_bad_attackers_are_refused(change, why):
  with pytest.raises(UserError, match=why):
    images(inversion_config(**change))


def test_pixels_must_not_be_standardised():
  config = inversion_config(auxiliary=10)
  config.data.scale = 'standard'
  with pytest.raises(UserError, match='scale=none'):
    images(config)


def test_ssim_is_measured_as_scikit_image_does():
  draws = np.random.default_rng(0)
  a, b = draws.uniform(size=(2, 3, 14, 28, 1)).astype(np.float32)
  found = jax.jit(measure.of_images)(a, b)
  expected = [
      structural_similarity(x, y, data_range=1, channel_axis=-1)
      for x, y in zip(a, b)
  ]
  np.testing.assert_allclose(found['ssim'], np.mean(expected), atol=1e-5)


def test_a_known_linear_network_is_inverted_exactly():
  draws = np.random.default_rng(0)
  x = draws.uniform(size=(3, 4, 4, 1)).astype(np.float32)
  w = np.linalg.qr(draws.normal(size=(16, 16)))[0].astype(np.float32)
  net = Net(lambda key, x: w, lambda w, x: x.reshape(len(x), -1) @ w)
  found = jax.jit(lambda start: invert(
      net, w, net.apply(w, x), start, Inversion(steps=300, variation=0)
  ))(np.full_like(x, 0.5))
  np.testing.assert_allclose(found, x, atol=2e-3)


def test_total_variation_counts_both_directions():
  x = jnp.asarray([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])[None, :, :, None]
  assert total_variation(x) == 1 + 2
  assert total_variation(jnp.ones((2, 5))) == 0


def test_the_shadow_learns_through_the_fixed_top_and_inverts():
  """A shadow of the same structure comes nearer than guessing the mean."""
  bottom = nets.mlp(12)
  # Unlike the softmax's, this loss leaves no direction of the logits free.
  vfl = VFL(
      (None, bottom), algorithms.plain(),
      lambda logits, labels: ((logits - labels) ** 2).sum(-1),
  )
  x = np.random.default_rng(0).uniform(size=(200, 12)).astype(np.float32)
  weights = small_networks.drawn(bottom, x)
  logits = np.asarray(bottom.apply(weights, x))
  known = Batch((None, x), logits)
  sent = logits[:20]
  view = TrainedTop(dict(bottom=(), top=()), sent, known)
  how = Inversion(shadow_steps=1500, shadow_rate=0.01, variation=0)
  guess = np.asarray(jax.jit(model_inversion(vfl, bottom, how).run)(KEY, view))
  error = ((guess - x[:20]) ** 2).mean()
  assert error < 0.3 * x[:20].var()
  assert guess.min() >= 0 and guess.max() <= 1


def exponential():
  """A defense that a linear shadow cannot stand for: an exponential."""

  def init(key, spec):
    return slots(spec, passive=(dict(scale=jnp.ones(())),))

  def send(passive, key, u):
    noise = 0.01 * jax.random.normal(key, u.shape)
    return passive['scale'] * jnp.exp(u) + noise, jnp.zeros(())

  return Defense(init=init, send=send)


def test_the_shadow_has_what_the_defense_adds_and_inverts_it():
  """T2 knows the structure: without the defense's part the shadow is wrong."""
  bottom, defense = nets.mlp(8), exponential()
  vfl = VFL(
      (None, bottom), algorithms.plain(),
      lambda logits, labels: ((logits - labels) ** 2).sum(-1),
  )
  x = np.random.default_rng(0).uniform(size=(300, 8)).astype(np.float32)
  weights = small_networks.drawn(bottom, x)
  shape = jax.ShapeDtypeStruct((300, 8), jnp.float32)
  own = defense.init(KEY, Spec((shape,), 8)).passive[0]
  message = np.asarray(jax.jit(
      lambda key: defense.send(own, key, 2 * bottom.apply(weights, x))[0]
  )(KEY))
  known = Batch((None, x), message)
  view = TrainedTop(dict(bottom=(), top=()), message[:20], known)
  how = Inversion(shadow_steps=2000, shadow_rate=0.01, variation=0)
  error = {}
  for name, its in dict(with_it=defense, without=None).items():
    attack = model_inversion(vfl, bottom, how, its)
    guess = np.asarray(jax.jit(attack.run)(KEY, view))
    error[name] = ((guess - x[:20]) ** 2).mean()
  assert error['with_it'] < 0.5 * error['without']


def test_a_defended_shadow_is_the_network_and_the_defenses_part():
  bottom = nets.mlp(6)
  x = np.random.default_rng(0).normal(size=(10, 4)).astype(np.float32)
  known = Batch((None, x), np.eye(2, dtype=np.float32)[np.arange(10) % 2])
  vfl = VFL((None, bottom), algorithms.plain(), lambda a, b: a.sum(-1))
  defense = precode.precode(0.5, 3)
  made = sender(bottom, vfl, known, defense)
  params: Any = made.init(jax.random.key(0), x[:1])
  assert params['defense'].keys() == {'encoder', 'decoder'}
  own = lambda key: defense.send(
      params['defense'], key, bottom.apply(params['net'], x)
  )

  @jax.jit
  def compared(key):
    """Both messages; what is expected of them, and 4000 of them."""
    draws = jax.vmap(lambda key: own(key)[0])(jax.random.split(key, 4000))
    sent = made.send(params, key, x)
    return sent, own(key), made.expected(params, x), draws

  sent, theirs, expected, draws = jax.tree.map(np.asarray, compared(KEY))
  for a, b in zip(sent, theirs, strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-5)
  assert sent[1] > 0  # Its penalty.
  mean, spread = draws.mean(0), draws.std(0)
  off = np.abs(expected - mean)
  assert (off < 5 * spread / DRAWS**0.5 + 1e-3).all()
  # Without a part of its own at the passive party there is nothing to add.
  plain = sender(bottom, vfl, known, Defense())
  assert plain.init is bottom.init
  assert plain.send(small_networks.drawn(bottom, x), KEY, x)[1] == 0


@pytest.mark.parametrize('name, knows', [
    ('model_inversion', True), ('model_inversion:undefended', False),
])
def test_a_shadow_has_the_defense_unless_its_attacker_is_not_to_know(
    name, knows, monkeypatch
):
  class Given(Exception):
    pass

  def given(net, vfl, known, defense):
    raise Given(defense)

  config = inversion_config(auxiliary=10)
  config.attacks, defense = name, precode.precode(0.5, 3)
  attack = images(config).after_training[name].against(defense)
  monkeypatch.setattr(sys.modules[Inversion.__module__], 'sender', given)
  one = jnp.ones((1, 2))
  view: Any = TrainedTop({}, one, Batch((None, one), one))
  with pytest.raises(Given) as found:
    attack.run(KEY, view)
  assert found.value.args[0] is (defense if knows else None)


def test_the_attacker_is_told_of_the_defense():
  config = inversion_config(auxiliary=10)
  config.defenses, config.attacks = 'precode', 'model_inversion'
  job = next(j for j in jobs.jobs(images(config)) if j.name == 'precode')
  assert job.setting.after_training['model_inversion'].against
  told = []

  def against(defense):
    told.append(defense)
    return attack

  attack = Attack(
      TrainedTop, lambda key, view: view.auxiliary.features[1][:4],
      wants=Wants(4), against=against,
  )
  setting = job.setting._replace(after_training=dict(model_inversion=attack))
  job = job._replace(setting=setting)
  trained = []

  def attacked(key, samples):
    made = cell.prepare(job, dict(seed=0, strength=None, others={}), samples)
    state = train.start(key, made.plan, made.splits.train).state
    trained.append(made.plan.defense)
    return cell._attack(job, made, state, 'model_inversion', 1, key)

  jax.eval_shape(attacked, KEY, setting.samples)
  assert len(trained) == 1 and told == trained


def test_more_than_two_parties_are_refused():
  vfl = algorithms.vlr(3, 2)
  with pytest.raises(ValueError, match='two parties'):
    model_inversion(vfl, nets.mlp(1))


@pytest.mark.parametrize('kernel, pools', [(3, 1), (5, 2)])
def test_convolutions_are_xlas(kernel, pools):
  net = convolutional.convolutional((2, 3), 4, kernel=kernel, pools=pools)
  x = np.random.default_rng(0).normal(size=(2, 9, 12, 2)).astype(np.float32)
  params: dict = small_networks.drawn(net, x)

  def expected(params, y):
    for i, layer in enumerate(params['conv']):
      taps = layer['kernel'].reshape(kernel, kernel, y.shape[-1], -1)
      y = jax.nn.relu(jax.lax.conv_general_dilated(
          y, taps, (1, 1), 'SAME', dimension_numbers=('NHWC', 'HWIO', 'NHWC')
      ) + layer['bias'])
      if i < pools:
        y = jax.lax.reduce_window(
            y, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), 'VALID'
        )
    return nets.mlp(4).apply(params['dense'], y)

  found = jax.jit(net.apply)(params, x)
  np.testing.assert_allclose(found, jax.jit(expected)(params, x), atol=1e-5)


@pytest.mark.parametrize('change', [
    dict(channels=()), dict(kernel=4), dict(pools=3),
])
def test_a_convolution_that_cannot_be_is_refused(change):
  with pytest.raises(ValueError, match='convolutional'):
    convolutional.convolutional(**dict(channels=(2, 3)) | change)


@pytest.mark.parametrize('size, fields, after', [
    ((8, 1), dict(), 1),  # Its one column is none after pooling.
    ((8, 4), dict(pools=2, same=False), 2), ((2, 8), dict(same=False), 1),
])
def test_images_of_which_nothing_would_be_left_are_refused(size, fields, after):
  """A layer of no numbers would be a network that never looks at them."""
  net = convolutional.convolutional((2, 3), 4, **fields)
  said = rf'{size[0]} x {size[1]} pixels are too small.*convolution {after}\.'
  with pytest.raises(ValueError, match=said):
    net.init(KEY, jnp.zeros((2, *size, 1)))


@pytest.mark.parametrize('size, fields', [
    ((4, 5), dict(pools=2)), ((8, 9), dict(same=False)),
])
def test_images_of_which_one_pixel_is_left_are_taken(size, fields):
  net = convolutional.convolutional((2, 3), 4, **fields)
  params = jax.eval_shape(net.init, KEY, jnp.zeros((2, *size, 1)))
  assert params['dense']['Dense_0']['Dense_0']['kernel'].shape == (3, 4)


def fake_table(name, samples=400):
  """A table with the columns, or the images, of a data set of the paper."""
  draws = np.random.default_rng(0)
  names = {
      'credit': credit.NAMES, 'vehicle': vehicle.NAMES,
      'criteo': criteo.NAMES, 'spambase': spambase.NAMES,
      'nuswide': tuple(f'image_{i}' for i in range(634)) + tuple(
          f'tag_{i}' for i in range(1000)
      ),
  }.get(name, ())
  y = np.arange(samples, dtype=np.int32) % 2
  if name == 'bhi':
    x = draws.integers(0, 256, (samples, 50, 100, 3), np.uint8)
  else:
    x = draws.uniform(0, 9, (samples, len(names))).astype(np.float32)
  return Table(x, y, names, ('no', 'yes'), tuple(range(len(names))))


@pytest.mark.parametrize('config, shapes', [
    (vlr.get_config('credit'), [(10,), (13,)]),
    (vlr.get_config('vehicle'), [(50,), (50,)]),
    (vnn.get_config('vhnn,nuswide2_imb'), [(634,), (1000,)]),
    (vnn.get_config('vsnn,nuswide2_imb'), [None, (1000,)]),
    (vnn.get_config('vhnn,criteo'), [(20,), (19,)]),
    (vnn.get_config('vsnn,criteo'), [None, (19,)]),
    (vnn.get_config('vsnn,criteo,all'), [None, (39,)]),
    (vnn.get_config('vhnn,spambase'), [(29,), (28,)]),
    (vnn.get_config('vsnn,spambase'), [None, (28,)]),
    (vnn.get_config('vsnn,spambase,all'), [None, (57,)]),
    (vnn.get_config('vhnn,bhi'), [(50, 50, 3), (50, 50, 3)]),
    (vnn.get_config('vsnn,bhi'), [None, (50, 50, 3)]),
], ids=lambda value: getattr(value, 'experiment', ''))
def test_parties_hold_what_appendix_b_says(config, shapes):
  setting = checks.make(config, fake_table(config.data.name))
  found = [x if x is None else x.shape[1:] for x in setting.samples.features]
  assert found == shapes
  if config.data.name == 'credit':  # Columns 0 to 12 of the file are party B's.
    table = fake_table('credit')
    np.testing.assert_array_equal(
        setting.samples.features[1], table.features[:, :13]
    )


@pytest.mark.parametrize('data', ['spambase', 'criteo', 'nuswide2_imb'])
def test_party_b_holds_the_same_in_both_algorithms(data):
  held = []
  for algorithm in ('vhnn', 'vsnn'):
    config = vnn.get_config(f'{algorithm},{data}')
    made = checks.make(config, fake_table(config.data.name))
    held.append((made.sizes, made.samples.features[1]))
  assert held[0][0] == held[1][0]
  np.testing.assert_array_equal(held[0][1], held[1][1])
