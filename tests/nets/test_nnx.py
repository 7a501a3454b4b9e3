"""NNX modules as networks: dropout, statistics, padding, what is refused."""
from flax import nnx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from vfljax import algorithms, crossing, nets, train
from vfljax.defense import none
from vfljax.types import Batch

KEY = jax.random.key(0)
X = jax.random.normal(jax.random.key(1), (16, 3)) + 2


class Own(nnx.Module):

  def __init__(self, columns, width, rngs):
    self.norm = nnx.BatchNorm(columns, momentum=0.9, rngs=rngs)
    self.dropout = nnx.Dropout(0.5, rngs=rngs)
    self.last = nnx.Linear(columns, width, rngs=rngs)

  def __call__(self, x):
    real = crossing.counted(x)[:, None] > 0
    return self.last(self.dropout(self.norm(x, mask=real)))


class Cached(nnx.Module):

  def __init__(self, rngs):
    del rngs
    self.kept = nnx.Cache(jnp.zeros(3))


class Scaled(nnx.Module):

  def __init__(self, scale):
    self.scale = scale

  def __call__(self, x):
    return x * jnp.asarray(self.scale)


def own(width=4):
  return nets.nnx(lambda shape, rngs: Own(shape[-1], width, rngs))


def plain(width=4):
  return nets.nnx(
      lambda shape, rngs: nnx.Linear(shape[-1], width, rngs=rngs), trains=False
  )


def test_it_computes_what_the_module_does():
  net, module = plain(), nnx.Linear(3, 4, rngs=nnx.Rngs(KEY))
  params = net.init(KEY, X)
  assert net.train is None and {*params} == {'kernel', 'bias'}
  np.testing.assert_array_equal(net.apply(params, X), module(X))
  other = jax.tree.map(lambda w: w + 1, params)
  np.testing.assert_allclose(
      net.apply(other, X), X @ other['kernel'] + other['bias'], rtol=1e-5
  )


def test_training_draws_by_the_key_and_measures_statistics():
  net = own()
  params = net.init(KEY, X)
  y, stats = net.run(params, KEY, X)
  again, _ = net.run(params, KEY, X)
  other, _ = net.run(params, jax.random.key(5), X)
  np.testing.assert_array_equal(y, again)
  assert (y != other).any()
  np.testing.assert_array_equal(net.apply(params, X), net.apply(params, X))
  np.testing.assert_allclose(
      stats['norm']['mean'], 0.1 * X.mean(0), rtol=1e-4
  )
  absorbed = net.absorb(params, stats)
  np.testing.assert_array_equal(
      absorbed['batch_stats']['norm']['mean'], stats['norm']['mean']
  )
  assert (net.apply(absorbed, X) != net.apply(params, X)).any()


class Dropping(nnx.Module):
  """Shows what two layers drop, whose random numbers are made as asked."""

  def __init__(self, rngs):
    self.one, self.two = (nnx.Dropout(0.5, rngs=rngs()) for _ in range(2))

  def __call__(self, x):
    return jnp.stack([self.one(jnp.ones_like(x)), self.two(jnp.ones_like(x))])


@pytest.mark.parametrize('own', [False, True])
def test_what_is_dropped_changes_from_round_to_round_and_layer_to_layer(own):
  """Also where a module ignores the random numbers that it is given."""
  net = nets.nnx(
      lambda _, rngs: Dropping((lambda: nnx.Rngs(0)) if own else lambda: rngs)
  )
  first, again, later = (
      net.train({}, jax.random.key(i), X)[0] for i in (2, 2, 3)
  )
  np.testing.assert_array_equal(first, again)
  assert (first != later).any((1, 2)).all()
  assert (first[0] != first[1]).any()


class Named(nnx.Module):
  """Without statistics, but with a part of their name."""

  def __init__(self, columns, rngs):
    self.batch_stats = nnx.Linear(columns, columns, rngs=rngs)
    self.last = nnx.Linear(columns, 2, rngs=rngs)

  def __call__(self, x):
    return self.last(self.batch_stats(x))


def test_a_part_may_be_called_as_one_likes():
  net = nets.nnx(lambda shape, rngs: Named(shape[-1], rngs))
  assert net.apply(net.init(KEY, X), X).shape == (16, 2)


def test_no_gradient_moves_statistics():
  net = own()
  params = net.init(KEY, X)
  slope = jax.grad(lambda p: net.apply(p, X).sum())(params)
  assert not any(x.any() for x in jax.tree.leaves(slope['batch_stats']))
  assert slope['params']['last']['kernel'].any()


def test_a_federation_trains_with_it():
  """Parties of other widths, and a round that is padded."""
  x = jax.random.normal(KEY, (70, 5))
  labels = jax.nn.one_hot((x[:, 0] + x[:, 4] > 0).astype(int), 2)
  data = Batch((x[:, :2], x[:, 2:]), labels)
  vfl = algorithms.vhnn([own(), own()], top=plain(2))
  _, history = jax.jit(lambda key: train.fit(
      key, vfl, none(), (optax.adam(0.05),) * 2, data, epochs=8, batch_size=32,
      remainder='pad',
  ))(KEY)
  assert history['loss'][-1] < history['loss'][0]


@pytest.mark.parametrize('of', [np.array, jnp.array])
def test_numbers_that_stay_are_no_array_in_a_field(of):
  """It is told where else they can be, and there they can."""
  make = lambda scale: nets.nnx(lambda shape, rngs: Scaled(scale))
  with pytest.raises(ValueError, match='can be a tuple in a field'):
    make(of([1.0, 2.0, 3.0])).init(KEY, X)
  net = make((1.0, 2.0, 3.0))
  scaled = X * np.float32([1, 2, 3])
  np.testing.assert_array_equal(net.apply(net.init(KEY, X), X), scaled)


@pytest.mark.parametrize('make, message', [
    (lambda: nets.nnx(nnx.Linear(3, 4, rngs=nnx.Rngs(0))), 'got a Linear'),
    (lambda: nets.nnx(3), r'a function \(shape, rngs\) -> module.*got an int'),
    (lambda: nets.nnx(lambda shape, rngs: 3).init(KEY, X), 'returned an int'),
    (lambda: nets.nnx(lambda shape, rngs: Cached(rngs)).init(KEY, X),
     'Cached keeps Cache; a Net carries nnx.Param'),
    (lambda: nets.linen(nnx.Linear(3, 4, rngs=nnx.Rngs(0))), 'by nets.nnx'),
])
def test_what_can_be_no_network_is_refused(make, message):
  with pytest.raises(ValueError, match=message):
    make()


@pytest.mark.parametrize('name', ['train', 'training', 'deterministic'])
def test_a_module_whose_call_takes_the_mode_is_told(name):
  class Told(nnx.Module):
    def __init__(self, rngs):
      self.dropout = nnx.Dropout(0.5, rngs=rngs)

    def drop(self, x, quiet):
      return self.dropout(x, deterministic=quiet)

  def call(of):
    if name == 'train':
      return lambda self, x, train=False: self.drop(x, not train)
    if name == 'training':
      return lambda self, x, *, training: self.drop(x, not training)
    return lambda self, x, deterministic=True: self.drop(x, deterministic)

  Told.__call__ = call(name)
  net = nets.nnx(lambda shape, rngs: Told(rngs))
  np.testing.assert_array_equal(net.apply(net.init(KEY, X), X), X)
  dropped = net.run({}, KEY, X)[0] == 0
  assert 0 < dropped.mean() < 1


def test_features_of_several_arrays_are_refused():
  with pytest.raises(ValueError, match='must be one array; got a dict of them'):
    nets.nnx(lambda shape, rngs: Own(3, 2, rngs)).init(KEY, dict(a=X, b=X))
