"""Convolutions by banded matrices and their derivatives, beside XLA's."""
import jax
from jax import lax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.devices import of_a_cpu
from vfljax.nets import banded, convolution

LAYERS = dict(  # kernel, strides, pads
    same=((5, 5), (1, 1), ((2, 2), (2, 2))),
    inside=((2, 4), (1, 1), ((0, 0), (0, 0))),
    steps=((3, 2), (2, 3), ((1, 0), (0, 2))),
    left_over=((3, 3), (1, 3), ((1, 1), (0, 0))),
)


def drawn(seed, *shape, dtype='f8'):
  return np.random.default_rng(seed).normal(size=shape).astype(dtype)


@pytest.mark.parametrize('layer', LAYERS.values(), ids=LAYERS)
def test_a_convolution_and_its_gradients_are_xlas(layer):
  window, strides, pads = layer

  def xlas(x, kernel):
    return lax.conv_general_dilated(
        x, kernel, strides, pads, dimension_numbers=('NHWC', 'HWIO', 'NHWC')
    )

  def ours(x, kernel):
    return banded.convolve(x, kernel, strides, pads)

  @jax.jit
  def both(x, kernel):
    ways = []
    for way in (ours, xlas):
      y, back = jax.vjp(way, x, kernel)
      ways.append((y, *back(jnp.cos(y))))
    return ways

  with jax.enable_x64(True):
    found, expected = both(drawn(0, 2, 6, 7, 3), drawn(1, *window, 3, 4))
  for own, other in zip(found, expected, strict=True):
    np.testing.assert_allclose(own, other, rtol=1e-12, atol=1e-12)


WORTH_IT = dict(
    lenet5_1=dict(shape=(128, 28, 14, 1), kernel=(5, 5, 1, 6)),
    lenet5_2=dict(shape=(128, 14, 7, 6), kernel=(5, 5, 6, 16)),
)
NOT_WORTH_IT = dict(
    many_outputs=dict(kernel=(5, 5, 6, 32)),
    wide_images=dict(shape=(128, 14, 28, 6)),
    few_images=dict(shape=(8, 14, 7, 6)),
    single_pixels=dict(kernel=(1, 1, 6, 2), pads=((0, 0), (0, 0))),
    half=dict(dtype='bfloat16'),
)


def asked(
    shape=(128, 14, 7, 6), kernel=(5, 5, 6, 16), dtype='f4',
    pads=((2, 2), (2, 2)),
):
  return jnp.zeros(shape, dtype), jnp.zeros(kernel, dtype), (1, 1), pads


@pytest.mark.parametrize('case', WORTH_IT.values(), ids=WORTH_IT)
def test_it_is_for_lenet5(case):
  assert convolution.quickest(*asked(**case)) == 'banded'


@pytest.mark.parametrize('case', NOT_WORTH_IT.values(), ids=NOT_WORTH_IT)
def test_it_is_for_what_it_is_quicker_at(case):
  assert convolution.quickest(*asked(**case)) == 'patches'


@of_a_cpu
def test_convolve_takes_it_on_a_cpu_unless_told_otherwise():
  x = drawn(0, 16, 8, 7, 2, dtype='f4')
  kernel = drawn(1, 5, 5, 2, 4, dtype='f4')
  named = jax.jit(convolution.convolve, static_argnames='how')
  own = jax.jit(lambda x, w: banded.convolve(x, w, (1, 1), ((2, 2), (2, 2))))
  found = np.asarray(named(x, kernel))
  patches = np.asarray(named(x, kernel, how='patches'))
  np.testing.assert_array_equal(found, own(x, kernel))
  np.testing.assert_allclose(found, patches, rtol=1e-4, atol=1e-4)
  assert (found != patches).any()
