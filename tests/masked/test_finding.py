"""Layers that are not what they look like are left out, and not in silence."""
from flax import linen as nn
import jax
from jax import lax
import jax.numpy as jnp
import pytest

from vfljax import nets
from vfljax.masked import masking


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


def layers_of(kind):
  net, x = nets.linen(Network(kind)), jax.ShapeDtypeStruct((2, 4), jnp.float32)
  params = jax.eval_shape(net.init, jax.random.key(0), x)
  return [layer.name for layer in masking.layers(net, params, x)]


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


def test_what_is_linear_is_found():
  assert layers_of('plain') == ['first', 'last']
