"""Networks on images, asked about many samples: in blocks, the same numbers."""
import jax
import numpy as np
import pytest

from tests import small_networks
from vfljax import nets, target
from vfljax.masked import masking
from vfljax.nets import images
from vfljax.types import Net

KEY = jax.random.key(0)


def drawn(*shape):
  return np.random.default_rng(0).normal(size=shape).astype('f4')


def noted(sizes):
  """A network that notes how many samples each of its traces has."""

  def apply(params, x):
    sizes.append(len(x))
    return params * x.sum((1, 2))

  return Net(lambda key, x: 1.0, apply)


@pytest.mark.parametrize('kind, size, samples, asked', [
    ('cpu', 4, 10, 4), ('cpu', 0, 256, 256), ('cpu', 0, 257, 64),
    ('gpu', 0, 257, 256),
])
def test_many_samples_go_through_in_blocks(kind, size, samples, asked):
  sizes: list[int] = []
  net, x = images.blockwise(noted(sizes), size), drawn(samples, 3, 2)
  with target.tracing_for(kind):
    y = net.apply(2.0, x)
  np.testing.assert_allclose(y, 2 * x.sum((1, 2)), rtol=1e-5, atol=1e-6)
  trained, _ = net.run(2.0, KEY, x)
  np.testing.assert_allclose(trained, y, rtol=1e-5, atol=1e-6)
  assert sizes == [asked, samples]  # Traced once; training is one batch.


ON_IMAGES = [n for n, made in nets.REGISTRY.items() if made.reads == 'images']


@pytest.mark.parametrize('name', ON_IMAGES)
def test_no_network_unfolds_a_test_set_all_at_once(name):
  net, x = nets.make(name, 3), drawn(300, 24, 24, 1)
  params = jax.eval_shape(net.init, KEY, x[:1])
  train = lambda params, x: net.run(params, KEY, x)[0]
  assert 'scan' in str(jax.make_jaxpr(net.apply)(params, x))
  assert 'scan' not in str(jax.make_jaxpr(train)(params, x))


@pytest.mark.parametrize('name', ['lenet5', 'conv2'])
def test_a_test_set_in_blocks_has_the_same_numbers(name):
  net, x = nets.make(name, 3), drawn(300, 8, 8, 1)
  params = small_networks.drawn(net, x[:1])
  train = lambda params, x: net.run(params, KEY, x)[0]
  y, plain = jax.jit(lambda *a: (net.apply(*a), train(*a)))(params, x)
  np.testing.assert_allclose(y, plain, rtol=1e-5, atol=1e-6)


def test_layers_to_be_masked_are_found_in_a_batch_of_several_blocks():
  """By their shapes: who looks at layers meets each once, with all rows."""
  net, x = nets.make('lenet5', 3), drawn(300, 8, 8, 1)
  found = masking.layers(net, jax.eval_shape(net.init, KEY, x[:1]), x)
  assert [f.name.partition('/')[0] for f in found] == [
      'conv1', 'conv2', 'fc1', 'fc2', 'fc3'
  ]
  assert {f.bilinear.x_shape[0] for f in found} == {300}
