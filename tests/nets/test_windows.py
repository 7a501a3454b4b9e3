"""Windows over images and their derivatives, beside NumPy's."""
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax.nets.windows import windows

CASES = [
    dict(kernel=(3, 3), strides=(1, 1), pads=((1, 1), (1, 1))),
    dict(kernel=(3, 2), strides=(2, 1), pads=((0, 1), (2, 0))),
    dict(kernel=(2, 3), strides=(3, 2), pads=((0, 0), (0, 0))),
    dict(kernel=(1, 1), strides=(2, 2), pads=((0, 0), (0, 0))),
    dict(kernel=(5, 6), strides=(2, 2), pads=((2, 2), (2, 1))),
]
cases = pytest.mark.parametrize('case', CASES)


def image(seed=0):
  return np.random.default_rng(seed).normal(size=(2, 6, 7, 3)).astype('f4')


def places(case):
  """For each number of the windows, which of the padded image's it is."""
  (high, wide), (down, right) = case['kernel'], case['strides']
  padded = [n + sum(p) for n, p in zip((6, 7), case['pads'])]
  rows = range(0, padded[0] - high + 1, down)
  columns = range(0, padded[1] - wide + 1, right)
  for (y, top), (x, left) in itertools.product(
      enumerate(rows), enumerate(columns)
  ):
    for i, j, c in itertools.product(range(high), range(wide), range(3)):
      yield (y, x, (i * wide + j) * 3 + c), (top + i, left + j, c)


def padded(x, case):
  return np.pad(x, ((0, 0), *case['pads'], (0, 0)))


@functools.cache
def found(number):
  """All that is asked of a case, by one program: values, the gradient for some
  numbers, the tangent of a move, what that is, and both images in a batch."""
  take = lambda x: windows(x, **CASES[number])
  x, moved = image(), image(2)
  d = np.random.default_rng(1).normal(
      size=jax.eval_shape(take, x).shape
  ).astype('f4')

  @jax.jit
  def run(x, moved, d):
    taken, back = jax.vjp(take, x)
    _, tangent = jax.jvp(take, (x,), (moved,))
    both = jax.vmap(take)(jnp.stack([x, moved]))
    return taken, back(d)[0], tangent, take(moved), both

  return d, *map(np.asarray, run(x, moved, d))


@cases
def test_windows_are_rows_then_columns_then_channels(case):
  x, taken = image(), found(CASES.index(case))[1]
  whole, seen = padded(x, case), 0
  for to, of in places(case):
    np.testing.assert_array_equal(taken[:, *to], whole[:, *of])
    seen += 1
  assert seen == taken[0].size


@cases
def test_a_gradient_is_the_sum_over_the_windows_that_have_the_pixel(case):
  x = image()
  d, _, back, *_ = found(CASES.index(case))
  whole = np.zeros_like(padded(x, case), dtype='f8')
  for to, of in places(case):
    whole[:, *of] += d[:, *to]
  (top, _), (left, _) = case['pads']
  expected = whole[:, top : top + 6, left : left + 7]
  np.testing.assert_allclose(back, expected, atol=1e-5)


@cases
def test_forwards_and_in_batches_they_are_linear(case):
  _, taken, _, tangent, other, both = found(CASES.index(case))
  np.testing.assert_array_equal(tangent, other)
  np.testing.assert_array_equal(both, np.stack([taken, other]))


def test_a_second_derivative_passes_through_both_ways():
  """Of the sum of cubes: 6 x for each window that has the pixel."""
  case, x = CASES[0], image()
  slope = jax.grad(lambda x: (windows(x, **case) ** 3).sum())

  @jax.jit
  def run(x):
    count = jax.grad(lambda x: windows(x, **case).sum())(x)
    _, curved = jax.jvp(slope, (x,), (jnp.ones_like(x),))
    return count, curved, jax.grad(lambda x: slope(x).sum())(x)

  count, curved, twice = map(np.asarray, run(x))
  np.testing.assert_allclose(curved, 6 * x * count, rtol=1e-4, atol=1e-4)
  np.testing.assert_allclose(twice, 6 * x * count, rtol=1e-4, atol=1e-4)
