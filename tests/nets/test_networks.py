"""The networks of `vfljax.nets` and their layers."""
import dataclasses
import functools
import inspect

import chex
from flax import linen as nn
import jax
from jax import lax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests import small_networks
from vfljax import algorithms, attacks, nets, train
from vfljax.attacks.model_completion import Schedule
from vfljax.defense import none
from vfljax.nets import cafe, convolution, images
from vfljax.nets.heads import normalized_head
from vfljax.types import Batch
from vfljax.views import TrainedBottom

KEY = jax.random.key(0)


def image(*shape):
  return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def count(params):
  return sum(x.size for x in jax.tree.leaves(params))


@pytest.mark.parametrize('strides', [(1, 1), (2, 2), (2, 1)])
@pytest.mark.parametrize('padding', ['SAME', 'VALID', 1, ((0, 2), (1, 0))])
def test_patches_are_xlas_convolution(strides, padding):
  x, kernel = image(2, 7, 6, 3), image(3, 2, 3, 4)
  pads = padding if isinstance(padding, str) else (
      ((1, 1), (1, 1)) if padding == 1 else padding
  )
  expected = lax.conv_general_dilated(
      x, kernel, strides, pads, dimension_numbers=('NHWC', 'HWIO', 'NHWC')
  )
  for ours in every_way(x, kernel, strides, padding):
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-5)


@functools.partial(jax.jit, static_argnums=(2, 3))
def every_way(x, kernel, strides, padding):
  return [
      convolution.convolve(x, kernel, strides, padding, how)
      for how in convolution.METHODS
  ]


def test_arithmetic_can_be_swapped_from_outside():
  module = nn.Sequential([convolution.Conv(2), images.flatten, nets.Dense(3)])
  x = image(1, 4, 4, 1)
  params = small_networks.drawn(module, x)
  met = []

  def zeros(run, args, kwargs, context):
    if isinstance(context.module, (convolution.Conv, nn.Dense)):
      met.append(context.module.variables['params']['kernel'].shape)
      return jnp.zeros_like(run(*args, **kwargs))
    return run(*args, **kwargs)

  assert (module.apply(params, x) != 0).any()
  with nn.intercept_methods(zeros):
    assert not module.apply(params, x).any()
  assert met == [(3, 3, 1, 2), (32, 3)]


def test_pool_keeps_a_single_pixel():
  x = np.arange(10, dtype=np.float32).reshape(1, 5, 2, 1)
  pool = jax.jit(convolution.pool, static_argnums=1)
  np.testing.assert_array_equal(np.asarray(pool(x))[0, :, 0, 0], [3, 7])
  np.testing.assert_array_equal(
      np.asarray(pool(x[:, :, :1], 'mean'))[0, :, 0, 0], [1, 5]
  )


@pytest.mark.parametrize('how, rows', [
    ('max', [3, 7, 9]), ('mean', [1.5, 5.5, 8.5]),
])
def test_pooling_of_the_whole_image_pools_a_last_odd_row_alone(how, rows):
  x = np.arange(10, dtype=np.float32).reshape(1, 5, 2, 1)
  y = jax.jit(lambda x: convolution.pool(x, how, whole=False))(x)
  np.testing.assert_array_equal(np.asarray(y)[0, :, 0, 0], rows)


def test_start_is_uniform_by_fan_in():
  start = jax.jit(convolution.Conv(64, (5, 5)).init)
  params = start(KEY, image(1, 8, 8, 4))['params']
  for weights in map(np.asarray, params.values()):
    assert 0.95 / 10 < abs(weights).max() <= 1 / 10  # 1 / sqrt(5 * 5 * 4)


def test_a_linear_layer_starts_so_too_whatever_the_batch():
  start = jax.jit(nets.Dense(64).init)
  params = start(KEY, np.ones((4, 100), np.float32))['params']
  for weights in map(np.asarray, jax.tree.leaves(params)):
    assert 0.09 < abs(weights).max() <= 0.1  # 1 / sqrt(100)


def test_a_layer_of_one_column_starts_up_to_1():
  drawn = convolution.fan_in_uniform(1)(KEY, (100,))
  assert 0.9 < abs(np.asarray(drawn)).max() <= 1


def test_lenet_counts():
  # 28x14: 14x7 after one pooling, 7x3 after two.
  params = shapes('lenet5', (1, 28, 14, 1))
  conv = (25 + 1) * 6 + (25 * 6 + 1) * 16
  dense = (7 * 3 * 16 + 1) * 120 + (120 + 1) * 84 + (84 + 1) * 84
  assert sum(np.prod(p.shape) for p in jax.tree.leaves(params)) == conv + dense
  assert [*params] == sorted(params)  # Their order is that of the names.


def test_names_and_options():
  params = shapes('mlp3', (2, 6), width=10, hidden=(8, 4))
  assert count(params) == 7 * 8 + 9 * 4 + 5 * 10
  with pytest.raises(ValueError, match='no network'):
    nets.make('lenet6')
  with pytest.raises(ValueError, match='no option'):
    nets.make('lenet5', depth=3)
  with pytest.raises(ValueError, match='for images'):
    nets.make('lenet5').init(KEY, image(2, 6))
  with pytest.raises(ValueError, match='dtype'):
    nets.make('lenet5', dtype='int3')
  with pytest.raises(ValueError, match='float64 would be float32'):
    nets.make('lenet5', dtype='float64')
  with jax.enable_x64(True):
    nets.make('lenet5', dtype='float64')
  for wrong in (dict(norm='layer'), dict(how='fft')):
    with pytest.raises(ValueError, match='norm must be one of .*, how one of'):
      nets.make('lenet5', **wrong)
  for make, said in (
      (lambda: nets.mlp(3, norm='layer'), 'mlp: norm must be'),
      (nets.mlp, 'mlp: needs one or more widths, got none'),
      (lambda: nets.make('mlp3', hidden=(4,)), r'two hidden layers; .*\(4,\)'),
      (lambda: nets.make('mlp3', -1), 'width must be 1 or more, or 0; got -1'),
      (lambda: nets.make('resnet20', 4, shortcut='D'), "shortcut of .*'D'"),
      (lambda: nets.Network(nets.mlp, 'words'), "reads must be .*got 'words'"),
      (lambda: convolution.convolve(image(1, 3, 3, 1), image(3, 3, 1, 1),
                                    how='fft'), "how must be .*; got 'fft'"),
      (lambda: convolution.pool(image(1, 2, 2, 1), 'min'), "'mean'; got 'min'"),
  ):
    with pytest.raises(ValueError, match=said):
      make()


def test_one_network_after_another_trains_as_one():
  both = nets.then(nets.mlp(4, dropout=0.5), nets.mlp(3))
  params = small_networks.drawn(both, image(2, 5))
  y, stats = jax.jit(both.run)(params, KEY, image(2, 5))
  assert y.shape == (2, 3)
  assert jax.tree.structure(both.absorb(params, stats)) == (
      jax.tree.structure(params)
  )


def shapes(name, x, **options):
  """Parameters as shapes, without drawing a single number."""
  net = nets.make(name, **options)
  return jax.eval_shape(net.init, KEY, jax.ShapeDtypeStruct(x, jnp.float32))


@pytest.mark.parametrize('name, x, options, expected', [
    # torchvision's, as published with its weights (BatchNorm's scale and bias).
    ('vgg13', (224, 224, 3), dict(width=1000, hidden=(4096, 4096)), 133053736),
    ('vgg13', (224, 224, 3),
     dict(width=1000, hidden=(4096, 4096), norm='none'), 133047848),
    ('resnet18', (224, 224, 3), dict(width=1000, stem='large'), 11689512),
    # As widely published for CIFAR-10.
    ('resnet18', (32, 32, 3), dict(width=10), 11173962),
    ('resnet20', (32, 32, 3), dict(width=10), 269722),
    # 14x14 pixels are 7x7, then 4x4 after poolings that keep the odd ones.
    ('cafe', (14, 14, 1), {},
     26 * 64 + 1601 * 128 + 2049 * 256 + 257 * 64 + 65 * 10),
    # GAFM's 64x64 images: 32 channels of 6x6 reach the linear layers.
    ('conv3', (64, 64, 1), {},
     10 * 6 + 55 * 16 + 145 * 32 + 1153 * 120 + 121 * 84 + 85 * 40),
    ('conv2', (28, 14, 1), {},
     10 * 8 + 73 * 16 + (14 * 7 * 16 + 1) * 128),
    ('embedding', (26,), {}, 26 * 1000 * 8 + (26 * 8 + 1) * 64 + 65 * 32),
    ('wide_deep', (26,), {},
     26000 * (1 + 16) + 1 + (26 * 16 + 1) * 16 + 17 * 16 + 17),
])
def test_counts_of_weights(name, x, options, expected):
  params = shapes(name, (1, *x), **options)
  weights = params.get('params', params)
  assert sum(np.prod(p.shape) for p in jax.tree.leaves(weights)) == expected


def test_vgg_fits_half_of_a_small_image():
  """32x16 pixels are 2x1 after four poolings, 1x1 after five."""
  params = shapes('vgg13', (1, 32, 16, 3))['params']
  kernel = params['fc1']['Dense_0']['kernel']
  assert kernel.shape == (512, 512)


# As few layers as show what is tested: compiling is what takes the time.
TINY = dict(
    vgg13=dict(channels=(2,), hidden=()),
    cafe=dict(channels=(2, 3), hidden=(5, 4)),
)


def test_batch_norm_is_the_batchs_in_training_and_runs_for_inference():
  norm = nets.Norm()
  x = 3 + 2 * np.asarray(image(6, 3, 2, 4))
  start = norm.init(KEY, x)
  y, new = jax.jit(
      lambda start: norm.apply(start, x, True, mutable=['batch_stats'])
  )(start)
  mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
  np.testing.assert_allclose(
      y, (x - mean) / np.sqrt(variance + 1e-5), rtol=1e-4, atol=1e-4
  )
  after = jax.jit(norm.apply)(dict(start, **new), x)
  running = 0.1 * mean, 0.9 + 0.1 * variance
  np.testing.assert_allclose(
      after, (x - running[0]) / np.sqrt(running[1] + 1e-5), rtol=1e-4
  )


@pytest.mark.parametrize('channels, size', [(32, 16), (6, 2), (3, 1)])
def test_group_norm_is_of_16_channels_or_as_many_as_divide_them(channels, size):
  """Each sample's groups of channels by their own mean and variance."""
  x = 0.01 * image(2, 3, 2, channels)  # A variance that is not far above 0.
  norm = nets.Norm('group')
  params = small_networks.drawn(norm, x)
  groups = x.reshape(2, 3, 2, -1, size)
  mean, variance = (
      of(groups, axis=(1, 2, 4), keepdims=True) for of in (np.mean, np.var)
  )
  expected = ((groups - mean) / np.sqrt(variance + 1e-5)).reshape(x.shape)
  bias = params['params']['GroupNorm_0']['bias']
  np.testing.assert_allclose(
      jax.jit(norm.apply)(params, x), expected + bias, rtol=1e-3, atol=1e-4
  )


@pytest.mark.parametrize('width, refused', [(7, True), (8, False)])
def test_group_norm_makes_no_groups_of_one_number(width, refused):
  """Such a number minus itself is 0: the network would be a constant."""
  net, x = nets.mlp(width, 2, norm='group'), image(4, 3)
  if refused:
    with pytest.raises(ValueError, match='of 7 units group normalization'):
      net.init(KEY, x)
  else:
    assert net.apply(net.init(KEY, x), x).std(0).min() > 0


def test_group_norm_does_not_mix_samples():
  net = nets.make('resnet18', 3, channels=(2,), norm='group')
  x = image(3, 8, 4, 3)
  params = small_networks.drawn(net, x)
  assert 'batch_stats' not in params
  y = jax.jit(net.apply)(params, x)
  np.testing.assert_allclose(
      jax.jit(net.apply)(params, x[1:2]), y[1:2], rtol=1e-4, atol=1e-5
  )


def test_statistics_travel_with_the_party_and_under_vmap():
  """Training leaves statistics in a party's state, a seed as beside others."""
  net = nets.mlp(4, 4, norm='batch')
  vfl = algorithms.vhnn([net] * 2, nets.mlp(3), 'sum')
  x, labels = image(2, 12, 8), np.eye(3, dtype=np.float32)[np.arange(12) % 3]
  data = Batch(tuple(x), labels)

  def run(key):
    state, history = train.fit(
        key, vfl, none(), (optax.sgd(0.1),) * 2, data, epochs=2, batch_size=6
    )
    return state.parties, history['loss']

  keys = jax.random.split(KEY, 2)
  many = jax.jit(jax.vmap(run))
  parties, losses = many(keys)
  assert np.isfinite(losses).all()
  for party in parties:
    stats = party.params['bottom']['batch_stats']
    stats = jax.tree.leaves(jax.tree.map(np.asarray, stats))
    assert all(((s != 0) & (s != 1)).any() for s in stats)
  twice, _ = many(jnp.stack([keys[1]] * 2))  # In other company, the same.
  twice, parties = jax.tree.map(np.asarray, (twice, parties))
  for one, other in zip(jax.tree.leaves(twice), jax.tree.leaves(parties)):
    np.testing.assert_allclose(other[1], one[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(one[1], one[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('name', ['cafe', 'vgg13'])
def test_bfloat16_is_near_float32_and_comes_out_as_float32(name):
  x = image(4, 8, 4, 3)
  exact = nets.make(name, 6, **TINY[name])
  fast = nets.make(name, 6, dtype='bfloat16', **TINY[name])
  params = small_networks.drawn(exact, x)
  y, z = jax.jit(exact.apply)(params, x), jax.jit(fast.apply)(params, x)
  assert z.dtype == y.dtype == jnp.float32
  y, z = np.asarray(y), np.asarray(z)
  assert 0 < abs(y - z).max() < 0.05 * abs(y).max() + 0.02


def test_middle_of_cafe_is_around_its_first_linear_layer():
  options = TINY['cafe']
  net, x = nets.make('cafe', 6, **options), image(2, 6, 6, 1)
  params = small_networks.drawn(net, x)
  before, after = jax.jit(cafe.middle(6, **options))(params, x)
  own = jax.tree.map(np.asarray, params)
  first = own['fc1']['Dense_0']
  assert before.shape == (2, 2 * 2 * 3)
  np.testing.assert_allclose(
      after, before @ first['kernel'] + first['bias'], rtol=1e-5, atol=1e-6
  )
  z = np.maximum(after, 0)
  for name in ('fc2', 'fc3'):
    layer = own[name]['Dense_0']
    z = np.maximum(z @ layer['kernel'] + layer['bias'], 0)
  y = jax.jit(net.apply)(params, x)
  np.testing.assert_allclose(y, z, rtol=1e-5, atol=1e-6)


def test_lenet_with_the_original_convolutions():
  """Half of 32 x 32 pixels leaves 16 maps of 5 x 1 (LeCun et al., Fig. 2)."""
  x = image(3, 28, 14, 1)
  bare = nets.make('lenet5', 10, padding='VALID')
  bordered = nets.make('lenet5', 10, padding='VALID', border=(2, 1))
  params = small_networks.drawn(bordered, x)
  assert params['fc1']['Dense_0']['kernel'].shape == (80, 120)
  padded = np.pad(x, ((0, 0), (2, 2), (1, 1), (0, 0)))
  np.testing.assert_allclose(
      jax.jit(bordered.apply)(params, x), jax.jit(bare.apply)(params, padded),
      rtol=1e-5,
  )
  with pytest.raises(ValueError, match='got 28 x 14'):
    bare.init(KEY, x)
  for border in ((2,), (-1, 1), 2):
    with pytest.raises(ValueError, match='lenet5: border'):
      nets.make('lenet5', border=border)
  with pytest.raises(ValueError, match='lenet5: padding'):
    nets.make('lenet5', padding='FULL')


@pytest.mark.parametrize('name, options', [
    ('mlp3', dict(hidden=(4, 3))),
    ('lenet5', dict(channels=(2, 2), hidden=(4, 3))),
])
def test_embeddings_that_are_normalized_and_rectified(name, options):
  net = nets.make(name, 5, norm='batch', final='relu', **options)
  x = image(12, 8, 8, 1)
  y, stats = jax.jit(net.run)(small_networks.drawn(net, x), KEY, x)
  y = np.asarray(y)
  assert stats and (y >= 0).all()
  # Of normal numbers about half are above 0, in every column.
  assert ((y > 0).mean(0) < 1).all() and (y > 0).mean() > 0.2


@pytest.mark.parametrize('stolen', [True, False])
def test_completing_a_network_with_batch_norm_renews_its_statistics(stolen):
  """An attacker's training is a training: by the batch, statistics and all."""
  net = nets.mlp(4, 4, norm='batch')
  x = 50 * image(12, 16)  # Far from the statistics' start.
  x[1::2] += 100.0
  labels = np.eye(2, dtype=np.float32)[np.arange(12) % 2]
  attack = attacks.model_completion(
      net, nets.mlp(2), Schedule(30, 0, 1, 0.02), stolen=stolen
  )

  @jax.jit
  def run(key, weights):
    guess = attack.run(key, TrainedBottom(weights, x, labels, x))
    slope = jax.grad(lambda p: net.apply(p, x).sum())(weights)
    return guess[-1], slope['batch_stats']

  guess, slope = run(KEY, small_networks.drawn(net, x))
  assert (np.argmax(guess, -1) == np.argmax(labels, -1)).all()
  assert not any(np.any(s) for s in jax.tree.leaves(slope))


@pytest.mark.parametrize('name, options, measures, draws', [
    ('vgg13', dict(channels=(2,)), True, False),
    ('vgg13', dict(channels=(2,), norm='none', dropout=0.5), False, True),
    ('resnet18', dict(channels=(2,)), True, False),
    ('lenet5', dict(norm='batch'), True, False),
    ('mlp3', dict(norm='batch'), True, False),
    ('mlp3', dict(dropout=0.5), False, True),
    ('mlp3', {}, False, False), ('lenet5', {}, False, False),
    ('vgg13', dict(channels=(2,), norm='group'), False, False),
])
def test_training_measures_and_draws_where_it_is_asked_to(
    name, options, measures, draws
):
  """By tracing alone."""
  net, x = nets.make(name, 3, **options), image(2, 8, 6, 1)
  params = jax.eval_shape(net.init, KEY, x)
  stats = jax.eval_shape(net.run, params, KEY, x)[1]
  assert bool(jax.tree.leaves(stats)) == measures
  text = str(jax.make_jaxpr(net.run)(params, KEY, x))
  assert ('random_bits' in text) == draws
  assert 'random_bits' not in str(jax.make_jaxpr(net.apply)(params, x))


def test_a_pair_of_logits_trains_as_the_network_of_one_does():
  one, x = nets.mlp(1, norm='batch', final='relu'), image(4, 3)
  two, params = nets.binary(one), small_networks.drawn(one, x)
  (y, stats), (z, own) = jax.jit(
      lambda p: (two.run(p, KEY, x), one.run(p, KEY, x))
  )(params)
  np.testing.assert_array_equal(y, np.pad(z, ((0, 0), (1, 0))))
  jax.tree.map(np.testing.assert_array_equal, stats, own)
  assert jax.tree.leaves(stats)
  assert nets.binary(nets.mlp(1)).train is None


@pytest.mark.parametrize('size', [(2, 9), (9, 2)])
def test_a_window_larger_than_the_image_on_one_side_is_refused(size):
  x, kernel = image(1, *size, 1), image(3, 3, 1, 1)
  with pytest.raises(ValueError, match='does not fit an image'):
    convolution.convolve(x, kernel, padding='VALID')


@pytest.mark.parametrize('made, module', [
    (nets.lenet.lenet5, nets.lenet.LeNet5), (nets.vgg.vgg13, nets.vgg.VGG),
    (cafe.cafe, cafe.Cafe),
])
def test_a_module_has_its_factorys_defaults(made, module):
  """Who takes the module gets the network that the name stands for."""
  fields = {f.name: f.default for f in dataclasses.fields(module)}
  for name, p in inspect.signature(made).parameters.items():
    if isinstance(p.default, tuple | float) or name in ('how', 'norm', 'pool'):
      assert fields[name] == p.default, name


@pytest.mark.parametrize('made', [
    nets.make('embedding', 4, buckets=5), nets.make('wide_deep', 4, buckets=5),
    normalized_head(3, layers=2),
])
def test_networks_work_in_a_strict_program_of_64_bits(made):
  """By tracing alone: weights and outputs are of the samples' 32 bits."""
  x = np.zeros((8, 2), np.float32)
  with jax.enable_x64(True), jax.numpy_rank_promotion('raise'):
    params = jax.eval_shape(made.init, jax.random.key(0), x)
    found = jax.eval_shape(made.run, params, jax.random.key(0), x)[0]
    asked = jax.eval_shape(made.apply, params, x)
  dtypes = {leaf.dtype for leaf in jax.tree.leaves((params, found, asked))}
  assert dtypes == {np.dtype('float32')}


@pytest.mark.parametrize('name', ['lenet5', 'conv2', 'conv3', 'cafe', 'vgg13'])
def test_networks_of_images_stretch_no_axis_themselves(name):
  net, x = nets.make(name, 2), np.zeros((2, 32, 32, 1), np.float32)
  with jax.numpy_rank_promotion('raise'):
    params = jax.eval_shape(net.init, KEY, x)
    assert jax.eval_shape(net.apply, params, x).shape == (2, 2)


def test_convolutions_are_for_images():
  with pytest.raises(ValueError, match=r'for images, .* \(2, 6\). Use mlp3'):
    nets.make('conv3', 2).init(KEY, image(2, 6))


@pytest.mark.parametrize('kind', [np.uint8, bool])
def test_images_of_whole_numbers_start_as_those_of_floats(kind):
  x = np.random.default_rng(0).integers(0, 2, (2, 6, 6, 1)).astype(kind)
  net = nets.make('conv2', 3, channels=(2, 2))
  params, want = net.init(KEY, x), net.init(KEY, x.astype(np.float32))
  chex.assert_trees_all_equal(params, want)
  found = net.apply(params, x)
  np.testing.assert_array_equal(found, net.apply(want, x.astype(np.float32)))


@pytest.mark.parametrize('name', ['embedding', 'wide_deep'])
def test_one_column_of_categories_needs_its_axis(name):
  net = nets.make(name, 3, buckets=4)
  with pytest.raises(ValueError, match=r'shape \(5,\). One column is x\[:, N'):
    net.init(KEY, np.arange(5))
