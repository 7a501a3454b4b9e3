"""Layers that are not what they look like are left out, and not in silence."""
import functools
from typing import Any

from flax import linen as nn
import jax
from jax import lax
import pytest

from tests.masked_federation import found_in
from vfljax import nets
from vfljax.nets.convolution import Conv


class Doubled(nn.Dense):
  @nn.compact
  def __call__(self, inputs):
    return 2 * super().__call__(inputs)


def doubled(a, b, *how, **more):
  return 2 * lax.dot_general(a, b, *how, **more)


def read(x):
  """Its kernel is in the output once more, as of an encoder that is tied."""
  layer = nn.Dense(3, name='last')
  return layer(x) + layer.variables['params']['kernel'].sum()


def each(*axes):
  how = dict(variable_axes={'params': None}, split_rngs={'params': False})
  return nn.vmap(nn.Dense, in_axes=axes or 0, out_axes=axes[0] if axes else 0,
                 **how)(3, name='last')


def again(x):
  """Row by row, and then as it is."""
  layer = nn.Dense(3, name='last')
  if layer.is_initializing():
    return layer(x)
  return jax.vmap(layer)(x) + layer(x)


def turned(x):
  layer, run = nn.Dense(5, name='last'), lambda module, z: module(z)
  return nn.cond(x.sum() > 0, run, run, layer, x)


def looped(x):
  run = lambda module, z, _: (module(z), ())
  how = dict(variable_broadcast='params', split_rngs={'params': False})
  return nn.scan(run, length=2, **how)(nn.Dense(5, name='last'), x, None)[0]


def compiled(x):
  layer = nn.Dense(3, name='last')  # A module itself has no hash.
  run = (lambda f: f) if layer.is_initializing() else jax.jit
  return run(lambda z: layer(z))(x)


LAST = {
    'compiled': compiled,
    'pieces': lambda x: each(1)(x[:, :4].reshape(-1, 2, 2)),
    'rows': lambda x: each()(x),
    'again': again,
    'turned': turned,
    'looped': looped,
    'class': lambda x: Doubled(3, name='last')(x),
    'product': lambda x: nn.Dense(3, name='last', dot_general=doubled)(x),
    'weights': lambda x: nn.WeightNorm(nn.Dense(3, name='last'))(x),
    'read': read,
    'remat': lambda x: nn.remat(nn.Dense)(3, name='last')(x),
    'conv': lambda x: nn.Conv(3, (2,), name='last')(x[:, :, None]),
    'general': lambda x: nn.DenseGeneral((3, 2), name='last')(x),
    'plain': lambda x: jax.jit(nn.relu)(nn.Dense(3, name='last')(x)),
}


class Network(nn.Module):
  kind: str

  @nn.compact
  def __call__(self, x):
    return LAST[self.kind](nn.tanh(nn.Dense(5, name='first')(x)))


def names_in(net):
  return [layer.name for layer in found_in(net, 2, 4)]


def layers_of(kind):
  return names_in(nets.linen(Network(kind)))


@pytest.mark.parametrize('kind, why', [
    ('class', 'something else'), ('product', 'something else'),
    ('weights', 'are computed from'), ('remat', 'are computed from'),
    ('read', 'uses its weights elsewhere'), ('pieces', 'called inside nn.vmap'),
    ('rows', 'called inside nn.vmap'), ('again', 'called inside nn.vmap'),
    ('turned', 'called inside nn.vmap'), ('looped', 'called inside nn.vmap'),
    ('compiled', 'a condition, jit or the like'),
    ('conv', 'of no class that is masked'), ('general', 'of no class'),
])
def test_what_shares_would_compute_otherwise_is_left_out(kind, why):
  with pytest.warns(UserWarning, match=f'Layer .*last cannot be .*{why}'):
    assert layers_of(kind) == ['first']


class Within(nn.Module):
  @nn.compact
  def __call__(self, x):
    return nn.Dense(3, name='own')(x)


class Renamed(nn.Module):
  """A part whose weights are deeper among the network's than it is."""

  kind: Any

  @nn.compact
  def __call__(self, x):
    inner = lambda own: {'params': own.get('params', {}).get('in', {})}
    outer = lambda own: {'params': {'in': own.get('params', {})}}
    part = nn.map_variables(self.kind, 'params', inner, outer, init=True)
    return part(name='last')(nn.Dense(5, name='first')(x))


@pytest.mark.parametrize('kind, name', [
    (Within, 'last/own'), (functools.partial(nn.Dense, 3), 'last'),
])
def test_a_layer_under_another_name_is_told_of_once(kind, name):
  """Its kernel is that of no other layer."""
  with pytest.warns(UserWarning) as told:
    assert names_in(nets.linen(Renamed(kind))) == ['first']
  said, = (str(one.message) for one in told)
  assert said == (
      f'Layer {name} cannot be masked and is left out: its weights have '
      "another name among the network's."
  )


def test_zeros_around_an_image_may_be_of_each_edge():
  """Lists, as a configuration has them: of a program's layers nothing is."""
  net = nets.linen(Conv(2, (3, 2), padding=[[1, 0], [0, 2]]))
  layer, = found_in(net, 1, 7, 5, 1)
  assert layer.bilinear.y_shape == (1, 6, 6, 2)


def test_what_is_linear_is_found():
  assert layers_of('plain') == ['first', 'last']
