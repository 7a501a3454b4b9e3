"""Pooling before the bias and the activation, by which LeNet5 is faster."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import small_networks
from vfljax import nets
from vfljax.nets import base, convolution, intercept

KEY = jax.random.key(0)


def image(*shape):
  return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def lenet(**options):
  return nets.make('lenet5', width=4, channels=(2, 3), hidden=(6, 5), **options)


def halves(x, axis):
  """[.., n, ..] is [.., n / 2, 2, ..]."""
  return x.reshape(*x.shape[:axis], -1, 2, *x.shape[axis + 1 :])


@pytest.mark.parametrize('how', ['max', 'mean'])
def test_pools_and_their_gradients_are_those_of_numpy(how):
  """Equal pixels of a pair have half of its gradient each."""
  x = image(2, 4, 6, 3).round()  # Many numbers are equal.
  scale = image(2, 2, 3, 3)
  y, back = jax.jit(lambda x: (
      convolution.pool(x, how),
      jax.grad(lambda x: (convolution.pool(x, how) * scale).sum())(x),
  ))(x)

  def shares(pairs, axis):
    most = (pairs == pairs.max(axis, keepdims=True)) | (how == 'mean')
    return most / most.sum(axis, keepdims=True)

  reduce = np.max if how == 'max' else np.mean
  down = halves(x, 1)
  across = halves(reduce(down, 2), 2)
  np.testing.assert_allclose(y, reduce(across, 3), rtol=1e-6)
  rows = (shares(across, 3) * scale[:, :, :, None]).reshape(2, 2, 1, 6, 3)
  expected = (shares(down, 2) * rows).reshape(x.shape)
  np.testing.assert_allclose(back, expected, rtol=1e-6)


@pytest.mark.parametrize('bias', [True, False])
def test_a_pooled_convolution_is_the_pool_of_a_convolution(bias):
  x, scale = image(3, 8, 7, 2), image(3, 4, 3, 5)
  layer = convolution.Conv(5, (3, 3), use_bias=bias)
  pooled = layer.clone(pooled=True)

  @jax.jit
  def both(key):
    params = pooled.init(key, x)
    loss = lambda params, x: (pooled.apply(params, x) * scale).sum()
    late = lambda params, x: (
        convolution.pool(layer.apply(params, x)) * scale
    ).sum()
    return (
        pooled.apply(params, x), convolution.pool(layer.apply(params, x)),
        jax.grad(loss, (0, 1))(params, x), jax.grad(late, (0, 1))(params, x),
    )

  ours, theirs, early, late = both(KEY)
  np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
  jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5),
      early, late,
  )


def test_no_activation_falls():
  """So the largest pixel is the same before and after it: LeNet5 needs this."""
  x = np.linspace(-8, 8, 1001, dtype=np.float32)
  for name, activation in base.ACTIVATIONS.items():
    assert (np.diff(np.asarray(activation(x))) >= -1e-6).all(), name


@pytest.mark.parametrize('pool', ['max', 'mean'])
@pytest.mark.parametrize('activation', [*base.ACTIVATIONS, jnp.abs])
def test_lenet_is_as_its_paper_orders_its_layers(activation, pool):
  net = lenet(activation=activation, pool=pool)
  x, act = image(3, 12, 8, 1), base.activation_of(activation)

  def written_out(params, x):
    for name in ('conv1', 'conv2'):
      own = params[name]
      x = act(convolution.convolve(x, own['kernel']) + own['bias'])
      x = convolution.pool(x, pool)
    x = x.reshape(len(x), -1)
    for name in ('fc1', 'fc2', 'fc3'):
      own = params[name]['Dense_0']
      x = x @ own['kernel'] + own['bias']
      x = x if name == 'fc3' else act(x)
    return x

  params = small_networks.drawn(net, x)
  sides = [
      jax.value_and_grad(lambda p, f=f: (jnp.cos(f(p, x))).sum())
      for f in (net.apply, written_out)
  ]
  (ours, mine), (theirs, other) = jax.jit(
      lambda p: [side(p) for side in sides]
  )(params)
  np.testing.assert_allclose(ours, theirs, rtol=1e-5)
  jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5),
      mine, other,
  )


def test_who_computes_a_pooled_layer_in_its_place_sees_it_unpooled():
  """As VMask's masked layers: their product is of the whole image."""
  net, x = lenet(), image(3, 12, 8, 1)
  params, seen = small_networks.drawn(net, x), {}

  def look(layer, x):
    y = layer.plain(layer.params, x)
    seen[layer.name] = y.shape
    return y

  got = jax.jit(intercept.intercepted(net, look).apply)(params, x)
  np.testing.assert_allclose(got, jax.jit(net.apply)(params, x), rtol=1e-5)
  assert seen['conv1'] == (3, 12, 8, 2)
  assert seen['conv2'] == (3, 6, 4, 3)
