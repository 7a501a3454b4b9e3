"""The shuffle: a permutation for every key, and every order alike."""
import functools
import itertools

from hypothesis import given, strategies as st
import jax
import numpy as np
import pytest

from vfljax import permuting, target
from vfljax.permuting import permutation


@functools.cache
def orders(n):
  """(keys, their permutations), compiled once for all tests."""
  keys = jax.random.split(jax.random.key(n), 200 if n < 10_000 else 5)
  return keys, np.asarray(jax.jit(jax.vmap(lambda k: permutation(k, n)))(keys))


def hashed(x):
  """The round function, by Python's integers."""
  for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B), (16, 1)):
    x = (x ^ x >> shift) * factor % 2**32
  return x


def walked(i, keys, n, low, high):
  """Six rounds on `low` and `high` bits, again while i is not below n."""
  while True:
    left, right = divmod(i, 2**low)
    for even, odd in keys.reshape(3, 2):
      right ^= hashed(left ^ int(even)) % 2**low
      left ^= hashed(right ^ int(odd)) % 2**high
    if (i := left * 2**low + right) < n:
      return i


@pytest.mark.parametrize('n, low, high', [
    (512, 4, 5),  # First: without a walk, which a wrong network may not end.
    (257, 4, 5), (300, 4, 5), (1000, 5, 5),
])
def test_is_the_network_that_it_says_by_pythons_integers(n, low, high):
  key = jax.random.key(n)
  keys = np.asarray(jax.random.bits(key, (6,), np.uint32))
  want = [walked(i, keys, n, low, high) for i in range(n)]
  order = jax.jit(permutation, static_argnums=1)(key, n)
  np.testing.assert_array_equal(order, want)


@pytest.mark.parametrize('n', [1, 2, 255, 256, 257, 511, 512, 513, 3220, 60000])
def test_is_a_permutation(n):
  keys, drawn = orders(n)
  np.testing.assert_array_equal(
      np.sort(drawn), np.tile(np.arange(n), (len(keys), 1))
  )


@pytest.mark.parametrize('n', [
    257, 511, 512, pytest.param(4097, marks=pytest.mark.slow)
])
def test_a_walk_of_fixed_length_gives_the_same_orders(n):
  """As on an accelerator, which walks step by step and does not look when all
  are inside; a CPU looks up where walks come back, of some keys twice."""
  keys, want = orders(n)
  with target.tracing_for('cuda'):
    fixed = jax.jit(jax.vmap(lambda k: permutation(k, n))).trace(keys)
    np.testing.assert_array_equal(fixed.lower().compile()(keys), want)
    text = str(fixed.jaxpr)
  assert ' while' not in text and ('scan' in text) == (n != 512)


def test_a_walk_is_long_enough_for_its_certainty():
  """Outside after t steps: n (1 - n / 2^bits)^t numbers, on average."""
  assert permuting._enough_steps(512, 9, 40) == 0
  for n, certainty in itertools.product((257, 300, 511, 3220, 60000), (3, 40)):
    bits = (n - 1).bit_length()
    steps = permuting._enough_steps(n, bits, certainty)
    left = n * (1 - n / 2**bits) ** np.array([steps, steps - 1])
    assert left[0] <= 2.0**-certainty < left[1]


@given(st.integers(0, 2**32 - 1))
def test_is_a_permutation_for_any_key(seed):
  drawn = jitted(jax.random.key(seed))
  np.testing.assert_array_equal(np.sort(drawn), np.arange(300))


jitted = jax.jit(lambda key: permutation(key, 300))


@pytest.fixture(scope='module')
def drawn():
  keys = jax.random.split(jax.random.key(0), 20000)
  return np.asarray(jax.jit(jax.vmap(lambda k: permutation(k, 300)))(keys))


def chi_square(counts):
  """Pearson's statistic over its degrees of freedom: 1 if all are alike."""
  expected = counts.mean()
  return ((counts - expected) ** 2 / expected).sum() / (counts.size - 1)


def test_every_value_is_as_likely_at_every_place(drawn):
  for place in (0, 1, 17, 150, 299):
    counts = np.bincount(drawn[:, place], minlength=300)
    assert 0.7 < chi_square(counts) < 1.3


def test_neighbours_are_unrelated(drawn):
  """Steps between neighbours, modulo n, are uniform on 1..n-1."""
  steps = (drawn[:, 1:] - drawn[:, :-1]) % 300
  counts = np.bincount(steps.ravel(), minlength=300)[1:]
  assert 0.7 < chi_square(counts) < 1.3


@pytest.mark.parametrize('a, b', [(0, 1), (0, 150), (7, 299)])
def test_pairs_of_places_are_unrelated(drawn, a, b):
  """Joint counts of two places, by thirtieths of the range."""
  bins = drawn[:, a] // 30 * 10 + drawn[:, b] // 30
  counts = np.bincount(bins, minlength=100).reshape(10, 10)
  # Two places cannot hold the same value, which thins the diagonal: 29/30.
  expected = np.full((10, 10), 30 * 30.0)
  np.fill_diagonal(expected, 30 * 29.0)
  expected *= counts.sum() / expected.sum()
  statistic = ((counts - expected) ** 2 / expected).sum() / 99
  assert 0.55 < statistic < 1.5
