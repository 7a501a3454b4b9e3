"""The experiments of Kang et al. on small data: configs, model inversion and
the paper's numbers."""
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from skimage.metrics import structural_similarity

from experiments.kang2022 import paper, table16, vlr, vnn
from vfljax import algorithms, evaluation, measure, nets
from vfljax.attacks import model_inversion
from vfljax.attacks.model_inversion import Inversion, invert, total_variation
from vfljax.data import credit, criteo, spambase, vehicle
from vfljax.data.table import Table
from vfljax.nets import convolutional
from vfljax.runner import checks
from vfljax.runner.errors import UserError
from vfljax.runner.setting import split_samples
from vfljax.types import VFL, Batch, Net
from vfljax.views import TrainedTop

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
  found = measure.of_images(jnp.asarray(a), jnp.asarray(b))
  expected = [
      structural_similarity(x, y, data_range=1, channel_axis=-1)
      for x, y in zip(a, b)
  ]
  np.testing.assert_allclose(found['ssim'], np.mean(expected), atol=1e-5)


def test_a_known_linear_network_is_inverted_exactly():
  x = jax.random.uniform(jax.random.key(0), (3, 4, 4, 1))
  w = jnp.linalg.qr(jax.random.normal(jax.random.key(1), (16, 16)))[0]
  net = Net(lambda key, x: w, lambda w, x: x.reshape(len(x), -1) @ w)
  found = jax.jit(lambda start: invert(
      net, w, net.apply(w, x), start, Inversion(steps=300, variation=0)
  ))(jnp.full_like(x, 0.5))
  np.testing.assert_allclose(found, x, atol=2e-3)


def test_total_variation_counts_both_directions():
  x = jnp.asarray([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])[None, :, :, None]
  assert total_variation(x) == 1 + 2
  assert total_variation(jnp.ones((2, 5))) == 0


def test_the_shadow_learns_through_the_fixed_top_and_inverts():
  """A shadow of the same structure comes nearer than guessing the mean."""
  k_x, k_y, k_run = jax.random.split(jax.random.key(0), 3)
  bottom = nets.mlp(12)
  # Unlike the softmax's, this loss leaves no direction of the logits free.
  vfl = VFL(
      (None, bottom), algorithms.plain(),
      lambda logits, labels: ((logits - labels) ** 2).sum(-1),
  )
  x = jax.random.uniform(k_x, (200, 12))
  weights = bottom.init(k_y, x)
  logits = bottom.apply(weights, x)
  known = Batch((None, x), logits)
  sent = logits[:20]
  view = TrainedTop(dict(bottom=(), top=()), sent, known)
  how = Inversion(shadow_steps=1500, shadow_rate=0.01, variation=0)
  guess = jax.jit(model_inversion(vfl, bottom, how).run)(k_run, view)
  error = ((guess - x[:20]) ** 2).mean()
  assert error < 0.3 * x[:20].var()
  assert guess.min() >= 0 and guess.max() <= 1


def test_more_than_two_parties_are_refused():
  vfl = algorithms.vlr(3, 2)
  with pytest.raises(ValueError, match='two parties'):
    model_inversion(vfl, nets.mlp(1))


@pytest.mark.parametrize('kernel, pools', [(3, 1), (5, 2)])
def test_convolutions_are_xlas(kernel, pools):
  net = convolutional.convolutional((2, 3), 4, kernel=kernel, pools=pools)
  x = jax.random.normal(jax.random.key(0), (2, 9, 12, 2))
  params: dict = net.init(jax.random.key(1), x)
  y = x
  for i, layer in enumerate(params['conv']):
    taps = layer['kernel'].reshape(kernel, kernel, y.shape[-1], -1)
    y = jax.nn.relu(jax.lax.conv_general_dilated(
        y, taps, (1, 1), 'SAME', dimension_numbers=('NHWC', 'HWIO', 'NHWC')
    ) + layer['bias'])
    if i < pools:
      y = jax.lax.reduce_window(
          y, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), 'VALID'
      )
  expected = nets.mlp(4).apply(params['dense'], y)
  np.testing.assert_allclose(net.apply(params, x), expected, atol=1e-5)


@pytest.mark.parametrize('change', [
    dict(channels=()), dict(kernel=4), dict(pools=3),
])
def test_a_convolution_that_cannot_be_is_refused(change):
  with pytest.raises(ValueError, match='convolutional'):
    convolutional.convolutional(**dict(channels=(2, 3)) | change)


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
