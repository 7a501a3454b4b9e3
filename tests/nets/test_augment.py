"""Flips and shifts of images."""
import jax
import numpy as np
import pytest

from tests import small_networks
from vfljax import nets
from vfljax.nets import augment
from vfljax.types import Net

KEY = jax.random.key(0)


def drawn(*shape):
  return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def test_flip_mirrors_half_of_the_images():
  x = drawn(400, 2, 3, 1)
  y = np.asarray(jax.jit(augment.flip)(KEY, x))
  same = (y == x).all((1, 2, 3))
  mirrored = (y == x[:, :, ::-1]).all((1, 2, 3))
  assert (same ^ mirrored).all()
  assert abs(mirrored.mean() - 0.5) < 0.1  # 4 standard errors.


def test_shift_moves_by_up_to_as_many_pixels_each_way():
  x = np.zeros((2000, 5, 5, 1), np.float32)
  x[:, 2, 2] = 1
  y = np.asarray(jax.jit(lambda k, x: augment.shift(k, x, 1))(KEY, x))
  assert (y.sum((1, 2, 3)) == 1).all()
  where = y.mean(0)[1:4, 1:4, 0]  # The nine places, equally likely.
  np.testing.assert_allclose(where, 1 / 9, atol=0.03)
  far = np.asarray(jax.jit(lambda x: augment.shift(KEY, x, 2))(x))
  np.testing.assert_allclose(far.mean(0)[..., 0], 1 / 25, atol=0.03)
  filled = np.asarray(jax.jit(lambda x: augment.shift(KEY, x, 5, -7.0))(x))
  assert ((filled == -7) | (filled == 0) | (filled == 1)).all()
  assert (filled == -7).any()


def test_training_sees_augmented_images_and_inference_does_not():
  seen = Net(lambda key, x: (), lambda params, x: x)
  net = augment.augmented(seen, flips=True, pixels=1)
  x = drawn(8, 4, 4, 1)
  np.testing.assert_array_equal(net.apply((), x), x)
  y, _ = jax.jit(lambda key: net.run((), key, x))(KEY)
  assert (y != x).any()
  assert augment.augmented(seen) is seen
  with pytest.raises(ValueError, match='pixels'):
    augment.augmented(seen, pixels=-1)


def test_an_augmented_network_learns_as_before():
  net = augment.augmented(nets.mlp(3), pixels=1)
  x = np.ones((4, 3, 3, 1), np.float32)
  params = small_networks.drawn(net, x)
  slope = jax.jit(jax.grad(lambda p: net.run(p, KEY, x)[0].sum()))(params)
  assert all(np.isfinite(g).all() for g in jax.tree.leaves(slope))
