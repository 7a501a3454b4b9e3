"""A network's layers by name, and putting other weights there."""
import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.drawing import draws
from tests.small_networks import drawn, weights
from vfljax import algorithms, nets
from vfljax.defense import Spec
from vfljax.defenses.fedpass import fedpass
from vfljax.defenses.vmask import vmask
from vfljax.draws import asking
from vfljax.nets import named_layers
from vfljax.types import Net

KEY = jax.random.key(0)


def test_layers_are_named_in_natural_order():
  net, x = nets.mlp(*range(2, 14)), jnp.ones((1, 5))
  params = jax.eval_shape(net.init, KEY, x)
  found = named_layers.names(params)
  assert found[2] == 'Dense_2/Dense_0' and found[-1] == 'Dense_11/Dense_0'
  with_statistics = {'params': params, 'batch_stats': {'x': {'mean': x}}}
  assert named_layers.names(with_statistics) == found


def test_the_flow_of_data_decides_where_a_network_begins():
  shapes = dict(last=(5, 3), early=(4, 5))
  net = Net(
      lambda key, x: {n: dict(kernel=jnp.ones(s)) for n, s in shapes.items()},
      lambda p, x: jnp.tanh(x @ p['last']['kernel'].T) @ p['early']['kernel'].T,
  )
  params, x = net.init(KEY, None), jax.ShapeDtypeStruct((2, 3), jnp.float32)
  assert named_layers.names(params) == ('early', 'last')
  assert named_layers.flow(net, params, x) == ('last', 'early')


def test_a_set_of_layers():
  params = weights()
  chosen = named_layers.mask(params, ['Dense_2/Dense_0', 'Dense_0/Dense_0'])
  assert chosen.tolist() == [True, False, True]
  with pytest.raises(ValueError, match="no layer 'Dense_7'.*Dense_0/Dense_0"):
    named_layers.mask(params, ['Dense_7'])
  with pytest.raises(ValueError, match='Name a layer'):
    named_layers.mask(params, [])


def test_selecting_layers_replaces_those_and_no_others():
  ours, theirs = weights(0), weights(1)
  mixed = named_layers.select(np.array([False, True, False]), ours, theirs)
  for name, source in (('Dense_0', ours), ('Dense_1', theirs),
                       ('Dense_2', ours)):
    chex.assert_trees_all_equal(mixed[name], source[name])


def test_norms_are_sums_of_absolute_values():
  params = weights()
  expected = [
      sum(float(np.abs(leaf).sum()) for leaf in jax.tree.leaves(params[name]))
      for name in sorted(params)
  ]
  np.testing.assert_allclose(named_layers.l1_norms(params), expected, rtol=1e-5)


def test_means_are_of_the_kernels_and_no_biases():
  params = weights()
  expected = [
      np.abs(np.asarray(leaf)).mean()
      for name in sorted(params) for leaf in jax.tree.leaves(params[name])
      if leaf.ndim == 2
  ]
  np.testing.assert_allclose(named_layers.l1_means(params), expected, rtol=1e-5)


def test_redrawn_layers_are_uniform_in_their_fan_in():
  params = dict(conv=dict(kernel=jnp.ones((5, 5, 4, 300)), bias=jnp.ones(300)),
                norm=dict(scale=jnp.full(7, 3.0)))
  drawn = named_layers.redraw(KEY, params)
  assert (drawn['norm']['scale'] == 3).all()
  for leaf in drawn['conv'].values():
    assert 0.09 < np.abs(leaf).max() <= 0.1  # 1 / sqrt(5 * 5 * 4)
  assert abs(np.std(drawn['conv']['kernel']) - 0.1 / np.sqrt(3)) < 1e-3
  other = named_layers.redraw(jax.random.key(1), params)
  assert not np.array_equal(drawn['conv']['kernel'], other['conv']['kernel'])


def lenet():
  return drawn(nets.make('lenet5', 8), jnp.ones((2, 16, 16, 1)))


@pytest.mark.parametrize('draw', [
    named_layers.redraw, lambda *given: named_layers.noise(*given, 0.1),
], ids=['redraw', 'noise'])
def test_a_network_is_drawn_by_two_operations(draw):
  """One for all keys and one for all weights: each takes long to compile."""
  net = lenet()
  few = draws(asking(draw), KEY, net)
  assert few == ['random_fold_in', 'threefry2x32']
  assert draws(draw, KEY, net) == ['random_fold_in', 'random_bits'] * 10


def test_what_is_drawn_together_is_what_is_drawn_one_by_one():
  net = lenet()
  for draw, more in (named_layers.redraw, ()), (named_layers.noise, (0.1,)):
    chex.assert_trees_all_equal(*(
        jax.jit(f)(KEY, net, *more) for f in (asking(draw), draw)
    ))


def test_noise_is_in_the_layers_alone():
  """Each has its own, of the deviation asked for; a norm's scale has none."""
  params = dict(
      a=dict(kernel=jnp.ones((50, 40)), bias=jnp.ones(3)),
      b=dict(kernel=jnp.ones((50, 40))), norm=dict(scale=jnp.full(7, 3.0)),
  )
  found = named_layers.noise(KEY, params, 0.1)
  assert (found['norm']['scale'] == 0).all() and found['a']['bias'].all()
  for name in ('a', 'b'):
    assert 0.09 < np.std(found[name]['kernel']) < 0.11
    assert abs(np.mean(found[name]['kernel'])) < 0.01
  pair = np.stack([found[n]['kernel'].ravel() for n in ('a', 'b')])
  assert abs(np.corrcoef(pair)[0, 1]) < 0.1


@pytest.mark.parametrize('weights, listed', [
    (dict(w=jnp.ones((3, 2)), b=jnp.ones(2)), 'there are: b, w'),
    ({'params': {'fc': {'weight': jnp.ones((3, 2))}}}, 'params/fc/weight'),
    (dict(kernel=jnp.ones(3)), 'kernel'), (jnp.ones((3, 2)), 'one array'),
    ({}, 'no arrays'),
    ({f'w{i}': jnp.ones(2) for i in range(11)}, r'w6, w7, \.\.\.'),
])
def test_weights_that_have_no_layers(weights, listed):
  """Whoever needs some says what a layer is, and what there is instead."""
  own = Net(lambda key, x: weights, lambda params, x: x[:, :2])
  vfl = algorithms.vsnn([own], nets.mlp(2))
  spec = Spec((jnp.ones((4, 2)),), 2, vfl, (weights,), (jnp.ones((4, 3)),))
  message = 'called `kernel` of two or more axes.* these weights have none'
  for of, defense in dict(
      vmask=vmask(0.5, 'all'), fedpass=fedpass(side='passive'),
      fedpass_=fedpass(among=('fc',)),
  ).items():
    of = of.strip('_')
    with pytest.raises(ValueError, match=f'{of}: .*{message}.*{listed}'):
      defense.init(KEY, spec)
