"""Winograd's convolutions and their derivatives, beside XLA's."""
from functools import partial
import re

import jax
from jax import export, lax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.devices import of_a_cpu
from vfljax.nets import convolution, winograd

SIZES = [(4, 6), (5, 4), (4, 3), (1, 1)]
TILES = [(2, 2), (4, 4), (2, 4), (4, 2)]


@pytest.fixture
def double():
  with jax.enable_x64(True):
    yield


def drawn(seed, *shape, dtype='f8'):
  return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def xlas(x, kernel):
  return lax.conv_general_dilated(
      x, kernel, (1, 1), 'SAME', dimension_numbers=('NHWC', 'HWIO', 'NHWC')
  )


@pytest.mark.usefixtures('double')
@pytest.mark.parametrize('tile', TILES)
@pytest.mark.parametrize('size', SIZES)
def test_a_convolution_and_its_gradients_are_xlas(size, tile):
  x, kernel = drawn(0, 2, *size, 3), drawn(1, 3, 3, 3, 5)
  dy = drawn(2, 2, *size, 5)

  @jax.jit
  def both(x, kernel, dy):
    ways = []
    for way in (partial(winograd.convolve, tile=tile), xlas):
      y, back = jax.vjp(way, x, kernel)
      ways.append((y, *back(dy)))
    return ways

  ours, theirs = both(x, kernel, dy)
  for found, expected in zip(ours, theirs, strict=True):
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures('double')
@pytest.mark.parametrize('tile', [(2, 2), (4, 4)])
def test_derivatives_of_gradients_and_of_many_are_xlas(tile):
  """As attacks by gradients take them, each sample for itself."""
  x, kernel = drawn(0, 4, 1, 4, 4, 2), drawn(1, 3, 3, 2, 3)

  @jax.jit
  def both(x, kernel):
    def second(way, x):
      loss = lambda kernel: (way(x, kernel) ** 2).sum()
      matched = lambda kernel: (jax.grad(loss)(kernel) ** 2).sum()
      forward = jax.jvp(jax.grad(loss), (kernel,), (kernel,))[1]
      return jax.grad(matched)(kernel), forward

    return [
        jax.vmap(lambda x, way=way: second(way, x))(x)
        for way in (partial(winograd.convolve, tile=tile), xlas)
    ]

  ours, theirs = both(x, kernel)
  jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11), ours, theirs
  )


@pytest.mark.usefixtures('double')
@pytest.mark.parametrize('tile, times', [((2, 2), 3), ((4, 4), 4)])
def test_float32_errs_little_more_than_one_product_of_patches(tile, times):
  x, kernel = drawn(0, 2, 16, 8, 64), drawn(1, 3, 3, 64, 32) / 24

  def error(found):
    return np.sqrt(np.mean((found - xlas(x, kernel)) ** 2))

  small = x.astype('f4'), kernel.astype('f4')
  patches = error(convolution.convolve(*small, how='patches'))
  assert error(winograd.convolve(*small, tile)) < min(times * patches, 1e-6)
  assert patches < 1e-6  # Products add up as the processor's library does.


@pytest.mark.parametrize('tile', TILES)
def test_the_way_back_places_nothing_among_zeros(tile):
  """A stack for each split: of slices JAX would make padded arrays."""
  x, kernel = drawn(0, 2, 4, 4, 3), drawn(1, 3, 3, 3, 5)

  def gradients(x, kernel, dy):
    way = partial(winograd.convolve, tile=tile)
    return jax.vjp(way, x, kernel)[1](dy)

  text = str(jax.make_jaxpr(gradients)(x, kernel, drawn(2, 2, 4, 4, 5)))
  # Of neighbouring tiles on two axes, and an even image's; and their ways back.
  assert text.count('= pad[') <= 2 * (4 + 1)


@of_a_cpu
@pytest.mark.parametrize('tile', TILES)
def test_each_sum_is_one_kernel(tile):
  """Of one axis, ahead or back: XLA has no reason to compute one twice."""
  x, kernel = drawn(0, 8, 8, 8, 3, dtype='f'), drawn(1, 3, 3, 3, 5, dtype='f')

  def gradients(x, kernel, dy):
    way = partial(winograd.convolve, tile=tile)
    return jax.vjp(way, x, kernel)[1](dy)

  dy = drawn(2, 8, 8, 8, 5, dtype='f')
  text = jax.jit(gradients).lower(x, kernel, dy).compile().as_text()
  kernels = re.findall(r'= \S+ fusion\(.*calls=%(\S+),', text)
  stacked = [
      name for name in kernels
      if ' concatenate(' in text.split(f'\n%{name} (')[1].split('\n}')[0]
  ]
  assert len(stacked) == 4


NOT_WORTH_IT = dict(
    few_inputs=dict(shape=(2, 8, 8, 3), kernel=(3, 3, 3, 8)),
    many_outputs=dict(shape=(2, 8, 8, 8), kernel=(3, 3, 8, 64)),
    few_tiles=dict(shape=(1, 8, 8, 16)),
    small_images=dict(shape=(64, 3, 1, 64), kernel=(3, 3, 64, 64)),
    windows_of_5=dict(kernel=(5, 5, 16, 16), pads=((2, 2), (2, 2))),
    strides=dict(strides=(2, 1)),
    no_zeros_outside=dict(pads=((0, 0), (0, 0))),
    half=dict(dtype='bfloat16'),
)


def asked(
    shape=(2, 8, 8, 16), kernel=(3, 3, 16, 16), dtype='f4', strides=(1, 1),
    pads=((1, 1), (1, 1)),
):
  x, kernel = jnp.zeros(shape, dtype), jnp.zeros(kernel, dtype)
  return x, kernel, strides, pads


@pytest.mark.parametrize('case', NOT_WORTH_IT.values(), ids=NOT_WORTH_IT)
def test_it_is_for_what_it_is_quicker_at(case):
  assert convolution.quickest(*asked()) == 'winograd'
  assert convolution.quickest(*asked(**case)) == 'patches'


BEST = [
    ((128, 32, 16, 64), (4, 4)), ((128, 4, 2, 64), (4, 2)),
    ((128, 3, 7, 64), (4, 4)), ((128, 2, 1, 64), (2, 2)),
    ((128, 6, 9, 64), (2, 4)), ((1, 32, 16, 64), (4, 4)),
    ((128, 32, 16, 63), (2, 2)), ((1, 32, 8, 64), (2, 2)),
    ((32, 8, 4, 256), (2, 2)),
]


@pytest.mark.parametrize('image, tile', BEST)
def test_a_tile_has_four_pixels_where_these_are_few_places(image, tile):
  assert winograd.best(image) == tile


def test_where_a_side_of_four_is_worth_it_where_two_is_not():
  wide = dict(shape=(128, 3, 3, 64), kernel=(3, 3, 64, 64))
  assert convolution.quickest(*asked(**wide)) == 'winograd'
  narrow = dict(shape=(128, 3, 3, 63), kernel=(3, 3, 63, 64))
  assert convolution.quickest(*asked(**narrow)) == 'patches'


def test_the_tile_is_the_best_unless_given():
  x = drawn(0, 2, 16, 16, 64, dtype='f')
  kernel = drawn(1, 3, 3, 64, 8, dtype='f')
  best, four, two = (
      np.asarray(winograd.convolve(x, kernel, tile))
      for tile in (None, (4, 4), (2, 2))
  )
  np.testing.assert_array_equal(best, four)
  assert (best != two).any()


@pytest.mark.usefixtures('double')
@pytest.mark.parametrize('tile', [(2, 2), (4, 4)])
def test_many_kernels_with_an_image_each_are_xlas(tile):
  x, kernels = drawn(0, 2, 1, 4, 5, 2), drawn(1, 2, 3, 3, 2, 3)
  ways = partial(winograd.convolve, tile=tile), xlas
  ours, theirs = (jax.jit(jax.vmap(way))(x, kernels) for way in ways)
  np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11)


@pytest.mark.usefixtures('double')
def test_float64_stays_one_product():
  assert convolution.quickest(*asked(dtype='f8')) == 'patches'


def test_any_number_of_images_can_be_exported():
  images, = export.symbolic_shape('b')
  x = jax.ShapeDtypeStruct((images, 8, 8, 16), jnp.float32)
  kernel = drawn(1, 3, 3, 16, 16, dtype='f4')
  made = export.export(jax.jit(convolution.convolve))(x, kernel)
  assert made.out_avals[0].shape == (images, 8, 8, 16)


@of_a_cpu
def test_convolve_takes_it_on_a_cpu_unless_told_otherwise():
  x, kernel = (
      drawn(seed, *size, dtype='f4')
      for seed, size in enumerate([(2, 8, 8, 16), (3, 3, 16, 16)])
  )
  named = jax.jit(convolution.convolve, static_argnames='how')
  found = np.asarray(named(x, kernel))
  patches = np.asarray(named(x, kernel, how='patches'))
  np.testing.assert_array_equal(found, jax.jit(winograd.convolve)(x, kernel))
  np.testing.assert_allclose(found, patches, rtol=1e-4, atol=1e-4)
  assert (found != patches).any()


@pytest.mark.parametrize('way', ['ahead', 'back', 'many'])
def test_xla_leaves_it_a_function(way):
  """Else what makes the image would be computed for each place anew."""
  x, kernel = drawn(0, 4, 8, 8, 8, dtype='f'), drawn(1, 3, 3, 8, 8, dtype='f')
  kernels = kernel[None]
  made = lambda x, kernel: winograd.convolve(jnp.tanh(x), kernel)
  back = jax.grad(lambda x, kernel: made(x, kernel).sum(), 1)
  fn, *inputs = dict(
      ahead=(made, x, kernel), back=(back, x, kernel),
      many=(jax.vmap(made, (None, 0)), x, kernels),
  )[way]
  assert ' call(' in jax.jit(fn).lower(*inputs).compile().as_text()
