"""Words of many keys, each one's where it asks for them."""
import math

from hypothesis import given, settings
from hypothesis import strategies as st
import jax
import numpy as np
import pytest

from vfljax.draws.words import words

SIDES = st.lists(
    st.sampled_from([0, 1, 2, 5, 64, 127, 128, 129, 300]), max_size=2
)


def assert_jaxs(shapes, number=4):
  keys = jax.random.split(jax.random.key(number), len(shapes))
  found = jax.jit(lambda keys: words(keys, shapes))(keys)
  for key, shape, own in zip(keys, shapes, found, strict=True):
    assert own.shape == shape and own.dtype == np.uint32
    np.testing.assert_array_equal(own, jax.random.bits(key, shape))


@pytest.mark.parametrize('shapes', [
    [(3,)], [(128,), (128,)], [(0,), (129, 2), (), (0, 4), (127,)], [(0,)],
    [(1000, 3), (1,), (256,), (7, 7)],
])
def test_words_are_jaxs(shapes):
  """Also of nothing, of whole rows, and of one more or less."""
  assert_jaxs(shapes)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.lists(SIDES.map(tuple), min_size=1, max_size=6))
def test_whatever_is_asked_for(shapes):
  assert_jaxs([s for s in shapes if math.prod(s) < 2000] or [()])
