"""Networks of images as their papers draw them: in NumPy, and in PyTorch."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import small_networks
from vfljax import nets
from vfljax.nets import resnet

KEY = jax.random.key(0)


def image(*shape):
  return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def in_torch(torch, params, stats, x, name, train):
  """The networks as their papers draw them, in PyTorch's functions."""
  f = torch.nn.functional
  tensor = lambda a: torch.tensor(np.asarray(a))

  def normed(own, state, conv, norm, x, stride=1):
    kernel = tensor(own[conv]['kernel']).permute(3, 2, 0, 1)
    bias = own[conv].get('bias')
    x = f.conv2d(
        x, kernel, None if bias is None else tensor(bias), stride,
        kernel.shape[-1] // 2,
    )
    scale, seen = own[norm]['BatchNorm_0'], state[norm]['BatchNorm_0']
    return f.batch_norm(
        x, tensor(seen['mean']), tensor(seen['var']), tensor(scale['scale']),
        tensor(scale['bias']), train,
    )

  def dense(own, x):
    own = own['Dense_0']
    return x @ tensor(own['kernel']) + tensor(own['bias'])

  x = tensor(x).permute(0, 3, 1, 2)
  if name == 'vgg13':
    for i in (1, 2):
      for j in (1, 2):
        x = normed(params, stats, f'conv{i}_{j}', f'norm{i}_{j}', x).relu()
      x = f.max_pool2d(x, 2)
    # Flattened as we do: rows, columns, channels.
    x = x.permute(0, 2, 3, 1).flatten(1)
    return dense(params['fc2'], dense(params['fc1'], x).relu())
  x = normed(params, stats, 'conv0', 'conv0_norm', x).relu()
  for block in sorted(k for k in params if k.startswith('stage')):
    own, seen = params[block], stats[block]
    stride = 2 if block == 'stage2_1' else 1
    y = normed(own, seen, 'conv1', 'conv1_norm', x, stride).relu()
    y = normed(own, seen, 'conv2', 'conv2_norm', y)
    if 'shortcut' in own:
      x = normed(own, seen, 'shortcut', 'shortcut_norm', x, stride)
    elif stride == 2:
      x = f.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 0, y.shape[1] - x.shape[1]))
    x = (x + y).relu()
  return dense(params['top'], x.mean((2, 3)))


@pytest.mark.parametrize('name, options', [
    ('vgg13', dict(channels=(2, 3), hidden=(4,))),
    ('resnet18', dict(channels=(2, 3))), ('resnet20', dict(channels=(2, 3))),
])
def test_outputs_are_those_of_torch(name, options):
  torch = pytest.importorskip('torch')
  net, x = nets.make(name, 4, **options), image(5, 8, 6, 3)

  @jax.jit
  def run(key):
    params = net.init(key, x)
    # Statistics and scales that are not those of the start.
    shifted = jax.tree.map(lambda p: p + 0.1 * jnp.cos(p.size + p), params)
    return shifted, net.apply(shifted, x), net.run(shifted, key, x)[0]

  params, at_rest, training = run(KEY)
  for ours, train_ in ((at_rest, False), (training, True)):
    theirs = in_torch(
        torch, params['params'], params['batch_stats'], x, name, train_
    )
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=2e-3, atol=2e-4)


def windows(x, side, stride, pad):
  """[b, high, wide, c, side, side] of NumPy's, zeros outside the image."""
  x = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
  seen = np.lib.stride_tricks.sliding_window_view(x, (side, side), (1, 2))
  return seen[:, ::stride, ::stride]


class InNumPy:
  """A network's layers by name; `of` is the path of the block they are in."""

  def __init__(self, variables):
    self.variables = jax.tree.map(np.asarray, variables)

  def weights(self, of, name, kind='params'):
    tree = self.variables[kind]
    return (tree[of] if of else tree)[name]

  def conv(self, x, name, norm, stride=1, of=''):
    """A convolution that keeps the image's size but for its stride, normed."""
    own, scale = self.weights(of, name), self.weights(of, norm)['BatchNorm_0']
    stats = self.weights(of, norm, 'batch_stats')['BatchNorm_0']
    seen = windows(x, len(own['kernel']), stride, len(own['kernel']) // 2)
    y = np.einsum('bhwcij,ijco->bhwo', seen, own['kernel']) + own.get('bias', 0)
    y = (y - stats['mean']) / np.sqrt(stats['var'] + 1e-5)
    return y * scale['scale'] + scale['bias']

  def dense(self, x, name):
    own = self.weights('', name)['Dense_0']
    return x @ own['kernel'] + own['bias']


def with_statistics(net, x):
  """Weights, and statistics and scales that are not those of the start."""
  return jax.tree.map(
      lambda p: p + 0.1 * np.cos(p.size + p), small_networks.drawn(net, x)
  )


def relu(x):
  return np.maximum(x, 0)


@pytest.mark.parametrize('stem, shortcut', [
    ('small', 'pad'), ('large', 'project'),
])
def test_a_residual_network_written_out(stem, shortcut):
  """Two stages of one block; the second halves the image and is wider."""
  net = nets.linen(resnet.ResNet(
      3, (2, 4), (1, 1), stem, shortcut, 'batch', None, 'conv'
  ))
  x = image(2, 13, 10, 2)
  params = with_statistics(net, x)
  own, norm = InNumPy(params), '{}_norm'.format
  state = relu(own.conv(x, 'conv0', norm('conv0'), 2 if stem == 'large' else 1))
  if stem == 'large':
    state = windows(state, 3, 2, 1).max((-2, -1))
  for of, stride in (('stage1_1', 1), ('stage2_1', 2)):
    y = relu(own.conv(state, 'conv1', norm('conv1'), stride, of))
    y = own.conv(y, 'conv2', norm('conv2'), 1, of)
    if stride == 2 and shortcut == 'pad':
      state = np.pad(state[:, ::2, ::2], ((0, 0),) * 3 + ((0, 2),))
    elif stride == 2:
      state = own.conv(state, 'shortcut', norm('shortcut'), 2, of)
    state = relu(state + y)
  expected = own.dense(state.mean((1, 2)), 'top')
  np.testing.assert_allclose(
      jax.jit(net.apply)(params, x), expected, rtol=1e-4, atol=1e-5
  )


def test_a_vgg_written_out():
  """A pair of convolutions, pooled; linear layers, the last one bare."""
  net = nets.make('vgg13', 3, channels=(2,), hidden=(4,), how='conv')
  x = image(2, 5, 4, 2)
  params = with_statistics(net, x)
  own = InNumPy(params)
  state = relu(own.conv(x, 'conv1_1', 'norm1_1'))
  state = relu(own.conv(state, 'conv1_2', 'norm1_2'))
  state = windows(state, 2, 2, 0).max((-2, -1))  # A last odd row is dropped.
  hidden = relu(own.dense(state.reshape(2, -1), 'fc1'))
  np.testing.assert_allclose(
      jax.jit(net.apply)(params, x), own.dense(hidden, 'fc2'),
      rtol=1e-4, atol=1e-5,
  )
