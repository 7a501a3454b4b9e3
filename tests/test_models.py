"""The networks of `vfljax.models` and their layers."""
from flax import linen as nn
import jax
from jax import lax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax import models, nets
from vfljax.models import layers

KEY = jax.random.key(0)


def image(*shape):
  return jax.random.normal(KEY, shape, jnp.float32)


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
  for how in layers.METHODS:
    ours = layers.convolve(x, kernel, strides, padding, how)
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-5)


def test_arithmetic_can_be_swapped_from_outside():
  module = nn.Sequential([layers.Conv(2), layers.flatten, nets.Dense(3)])
  x = image(1, 4, 4, 1)
  params = module.init(KEY, x)
  met = []

  def zeros(run, args, kwargs, context):
    if isinstance(context.module, (layers.Conv, nn.Dense)):
      met.append(context.module.variables['params']['kernel'].shape)
      return jnp.zeros_like(run(*args, **kwargs))
    return run(*args, **kwargs)

  assert (module.apply(params, x) != 0).any()
  with nn.intercept_methods(zeros):
    assert not module.apply(params, x).any()
  assert met == [(3, 3, 1, 2), (32, 3)]


def test_pool_keeps_a_single_pixel():
  x = jnp.arange(10.0).reshape(1, 5, 2, 1)
  np.testing.assert_array_equal(layers.pool(x)[0, :, 0, 0], [3, 7])
  np.testing.assert_array_equal(
      layers.pool(x[:, :, :1], 'mean')[0, :, 0, 0], [1, 5]
  )


def test_start_is_uniform_by_fan_in():
  params = layers.Conv(64, (5, 5)).init(KEY, image(1, 8, 8, 4))['params']
  for weights in params.values():
    assert 0.95 / 10 < abs(weights).max() <= 1 / 10  # 1 / sqrt(5 * 5 * 4)


def test_lenet_counts():
  # 28x14: 14x7 after one pooling, 7x3 after two.
  params = models.make('lenet5').init(KEY, image(1, 28, 14, 1))
  conv = (25 + 1) * 6 + (25 * 6 + 1) * 16
  dense = (7 * 3 * 16 + 1) * 120 + (120 + 1) * 84 + (84 + 1) * 84
  assert count(params) == conv + dense
  assert [*params] == sorted(params)  # Their order is that of the names.


def test_names_and_options():
  net = models.make('mlp3', 10, hidden=(8, 4))
  params = net.init(KEY, image(2, 6))
  assert count(params) == 7 * 8 + 9 * 4 + 5 * 10
  with pytest.raises(ValueError, match='no network'):
    models.make('lenet6')
  with pytest.raises(ValueError, match='no option'):
    models.make('lenet5', depth=3)
  with pytest.raises(ValueError, match='for images'):
    models.make('lenet5').init(KEY, image(2, 6))
  with pytest.raises(ValueError, match='dtype'):
    models.make('lenet5', dtype='int3')


def test_one_network_after_another_trains_as_one():
  both = nets.then(nets.mlp(4, dropout=0.5), nets.mlp(3))
  params = both.init(KEY, image(2, 5))
  y, stats = both.run(params, KEY, image(2, 5))
  assert y.shape == (2, 3)
  assert jax.tree.structure(both.absorb(params, stats)) == (
      jax.tree.structure(params)
  )
