"""Linen modules of one's own as networks: what they are told, and refused."""
from flax import linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax import nets
from vfljax.types import Net

KEY = jax.random.key(0)
X = jnp.ones((3, 64))


class Train(nn.Module):
  @nn.compact
  def __call__(self, x, train: bool):
    return nn.Dropout(0.5)(x, deterministic=not train)


class Training(nn.Module):
  @nn.compact
  def __call__(self, x, training=False):
    return nn.Dropout(0.5)(x, deterministic=not training)


class Deterministic(nn.Module):
  @nn.compact
  def __call__(self, x, *, deterministic=True):
    return nn.Dropout(0.5)(x, deterministic=deterministic)


class Masked(nn.Module):
  @nn.compact
  def __call__(self, x, mask, deterministic, scale=1.0):
    return x * mask * scale


class Constant(nn.Module):
  @nn.compact
  def __call__(self, x):
    return x + self.variable('constants', 'c', jnp.zeros, 64).value


class Twofold(nn.Module):
  @nn.compact
  def __call__(self, x):
    return x, x


@pytest.mark.parametrize('module', [Train, Training, Deterministic])
def test_a_module_is_told_whether_it_trains(module):
  """By the argument that it has for it; without weights it has none."""
  net = nets.linen(module())
  params = net.init(KEY, X)
  assert not jax.tree.leaves(params)
  np.testing.assert_array_equal(net.apply(params, X), X)
  y, _ = net.run(params, KEY, X)
  assert set(np.unique(y)) == {0, 2}


@pytest.mark.parametrize('make, message', [
    (Masked, 'Masked needs mask; .* train, training, deterministic'),
    (lambda: Train, 'must be a Linen module; .* an instance'),
    (lambda: nets.mlp(2), 'must be a Linen module'),
])
def test_what_can_be_no_network_is_refused(make, message):
  with pytest.raises(ValueError, match=message):
    nets.linen(make())


class Both(nn.Module):
  """Two parts of other authors, each of which has its own word for it."""

  @nn.compact
  def __call__(self, x, train=False, deterministic=True):
    u = nn.Dropout(0.5)(x, deterministic=not train)
    return jnp.stack([u, nn.Dropout(0.5)(x, deterministic=deterministic)])


def test_a_module_is_told_by_every_word_that_it_takes():
  net = nets.linen(Both())
  assert (net.apply({}, X) == 1).all()
  dropped = net.run({}, KEY, X)[0] == 0
  assert dropped.any((1, 2)).all() and not dropped.all((1, 2)).any()


def test_two_outputs_are_refused():
  """As a recurrent layer has, which returns its carry, too."""
  net = nets.linen(Twofold())
  with pytest.raises(ValueError, match='Twofold returns a tuple; a Net'):
    net.apply(net.init(KEY, X), X)


class Auxiliary(nn.Module):
  @nn.compact
  def __call__(self, x, train=False):
    return (x, x) if train else x


def test_two_outputs_of_training_alone_are_refused():
  """As of networks with another head, which is left out at inference."""
  net = nets.linen(Auxiliary())
  assert net.apply({}, X) is X
  with pytest.raises(ValueError, match='Auxiliary returns a tuple; a Net'):
    net.run({}, KEY, X)


def test_a_collection_that_would_be_lost_is_refused():
  with pytest.raises(ValueError, match="Constant keeps constants; .*'batch_st"):
    nets.linen(Constant()).init(KEY, X)


def test_statistics_that_nothing_keeps_are_refused():
  """They would be lost, round by round, and inference see none of them."""
  train = lambda w, key, x: (x @ w, x.mean(0))
  net = Net(lambda key, x: jnp.eye(2), lambda w, x: x @ w, train)
  with pytest.raises(ValueError, match='give the Net absorb='):
    net.run(jnp.eye(2), KEY, jnp.ones((3, 2)))
  kept = net._replace(absorb=lambda w, stats: w + stats)
  np.testing.assert_array_equal(
      kept.run(jnp.eye(2), KEY, jnp.ones((3, 2)))[1], [1, 1]
  )
  net._replace(train=lambda w, key, x: (x, ())).run((), KEY, jnp.ones((3, 2)))
