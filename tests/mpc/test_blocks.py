"""How products are cut: what is worked on at once, and that nothing is lost."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax.mpc import bilinear, blocks, conv, outer, schemes


def shapes_seen(cut, *shape):
  """Of what a function is given, and of the result, on shapes alone."""
  seen = []

  def fn(part):
    seen.append(part.shape)
    return part

  with jax.enable_x64(True):
    out = jax.eval_shape(
        lambda x: cut(fn, x), jax.ShapeDtypeStruct(shape, jnp.int64)
    )
  return seen, out.shape


@pytest.mark.parametrize('n, width', [(8, 8), (3, 3), (9, 8), (20, 8)])
def test_no_more_columns_at_once_than_asked_for(n, width):
  """As few as a caller's caches hold, and none more than there are."""
  seen, shape = shapes_seen(lambda fn, x: blocks.in_columns(fn, x, 8), 2, n)
  assert set(seen) == {(2, width)} and shape == (2, n)


@pytest.mark.parametrize('length, size, most', [
    (8, 8, 8), (9, 8, 5), (20, 8, 7), (3, None, 3), (0, 8, 0),
])
def test_rows_are_cut_into_equal_blocks(length, size, most):
  seen, shape = shapes_seen(
      lambda fn, x: schemes.in_blocks(fn, x, size), length, 2
  )
  assert set(seen) == {(most, 2)} and shape == (length, 2)


@pytest.mark.parametrize('most', [outer.TILE, outer.TILE // 2])
def test_tiles_are_one_or_an_even_number_that_holds_all_columns(most):
  for n in range(1, 8 * most):
    tiles, width = outer.tiling(n, most)
    assert width <= most and tiles * width >= n
    if n > most:
      assert tiles % 2 == 0 and width % 8 == 0
      assert (tiles - 2) * most < n  # No two of them for nothing.
    else:
      assert (tiles, width) == (1, n)


def test_a_weight_gradient_is_of_the_images_of_all_blocks():
  """Five images of five positions, two in a block: three blocks."""
  draw = np.random.default_rng(0).integers
  x, g = draw(-(2**40), 2**40, (5, 6)), draw(-(2**20), 2**20, (5, 5))
  win = conv.window((5, 6, 1), (2, 1, 1), padding='VALID')
  scheme = schemes.SCHEMES['patches']._replace(positions=10)
  with jax.enable_x64(True):
    found = conv.weight_gradient(
        scheme, jnp.asarray(x)[..., None], jnp.asarray(g)[..., None], (2,), win
    )
  expected = [(x[:, tap : tap + 5] * g).sum() for tap in range(2)]
  np.testing.assert_array_equal(found[:, 0, 0], expected)


@pytest.mark.parametrize('rows', [(63,), (4, 16)])
def test_an_input_gradient_of_few_and_of_many_rows(rows):
  """Of many it is the product the other way round."""
  draw = np.random.default_rng(0).integers
  g, w = (draw(-(2**62), 2**62, shape) for shape in ((*rows, 2), (3, 2)))
  with jax.enable_x64(True):
    layer = bilinear.dense((*rows, 3), w.shape)
    found = layer.input_gradient(jnp.asarray(g), jnp.asarray(w))
  np.testing.assert_array_equal(found, g @ w.T)  # NumPy's wraps, too.


def test_a_kernel_may_be_as_wide_as_the_image():
  win = conv.window((1, 3, 1), (3, 1, 1), padding='VALID')
  assert conv.space((1, 3, 1), (3,), win) == (1,)
  with pytest.raises(ValueError, match='does not fit an axis of 2'):
    conv.window((1, 2, 1), (3, 1, 1), padding='VALID')


def test_groups_share_the_outputs():
  with pytest.raises(ValueError, match='2 groups'):
    conv.window((1, 5, 4), (3, 2, 3), groups=2)
