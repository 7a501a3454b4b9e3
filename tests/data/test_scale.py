"""Scaling against scikit-learn, and its edge cases."""
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn import preprocessing

from vfljax.data import scale


def sample(rows=50, columns=4):
  rng = np.random.default_rng(0)
  x = rng.normal(3, 2, (rows, columns)).astype('f4')
  return x, rng.random(rows) < 0.6


@functools.partial(jax.jit, static_argnums=0)
def scaled(fit, x, rows):
  return scale.transform(x, fit(x, rows))


@pytest.mark.parametrize('fit, reference', [
    (scale.fit, preprocessing.StandardScaler()),
    (scale.fit_min_max, preprocessing.MinMaxScaler()),
])
def test_equals_scikit_learn_on_the_training_rows(fit, reference):
  x, mask = sample()
  want = reference.fit(x[mask]).transform(x)
  for rows in (mask, np.flatnonzero(mask)):
    got = scaled(fit, x, rows)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert got.dtype == jnp.float32


@pytest.mark.parametrize('fit', [scale.fit, scale.fit_min_max])
def test_rows_outside_training_change_nothing(fit):
  x, mask = sample()
  changed = np.where(mask[:, None], x, 1e6).astype('f4')
  fit = jax.jit(fit)
  for a, b in zip(fit(x, mask), fit(changed, mask)):
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize('fit', [scale.fit, scale.fit_min_max])
@pytest.mark.parametrize('value', [0., 0.1, 16777217., -3e30])
def test_a_constant_column_is_zero_everywhere(fit, value):
  x, mask = sample()
  x[:, 1] = value
  x[~mask, 2], x[mask, 2] = 9, 0.1  # Constant where it counts.
  got = np.asarray(scaled(fit, x, mask))
  assert not got[:, 1:3].any() and np.isfinite(got).all()


def test_a_large_offset_keeps_its_digits():
  x, mask = sample()
  x = (x + 1e5).astype('f4')
  want = preprocessing.StandardScaler().fit(x[mask]).transform(
      x.astype('f8')
  )
  got = scaled(scale.fit, x, mask)
  np.testing.assert_allclose(got, want, atol=0.01)


def test_inside_vmap_and_a_64_bit_program():
  x, _ = sample()
  rows = np.array([np.random.default_rng(s).permutation(50)[:30]
                   for s in range(3)])
  fit = jax.jit(scale.fit)
  shifts, factors = map(np.asarray, jax.jit(jax.vmap(fit, (None, 0)))(x, rows))
  for s in range(3):
    np.testing.assert_allclose(shifts[s], x[rows[s]].mean(0), rtol=1e-5)
    one = fit(x, rows[s])
    np.testing.assert_allclose(factors[s], one.factor, rtol=1e-6)
  exact = x.astype('f8')
  with jax.enable_x64(True):
    assert fit(x, rows[0]).shift.dtype == jnp.float32
    got = scaled(scale.fit, exact, rows[0])
    assert got.dtype == jnp.float64
  want = preprocessing.StandardScaler().fit(exact[rows[0]]).transform(exact)
  np.testing.assert_allclose(got, want, rtol=1e-9)


def test_integers_and_images_become_float():
  x = np.arange(12, dtype=np.int32).reshape(4, 3)
  got = scaled(scale.fit, x, np.ones(4, bool))
  assert got.dtype == jnp.float32 and abs(np.mean(got)) < 1e-6
  pixels = np.array([[[[0, 51]], [[102, 255]]]], np.uint8)
  images = jax.jit(scale.images, static_argnums=(1, 2))
  np.testing.assert_allclose(images(pixels), pixels / 255, rtol=1e-6)
  assert images(pixels).dtype == jnp.float32
  got = images(pixels, (0.1, 0.2), (0.5, 0.25))
  want = (pixels / 255 - [0.1, 0.2]) / [0.5, 0.25]
  np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7)
  ready = (pixels / 255).astype('f4')
  np.testing.assert_array_equal(images(ready), ready)
