"""Norms, medians, ranks and decompositions."""

from hypothesis import given, strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax import metrics, numerics, target


def test_a_common_type_is_told_where_casts_are_forbidden():
  with jax.numpy_dtype_promotion('strict'):
    for parts, expected in [
        ((jnp.uint8, jnp.float32), 'float32'), ((jnp.int32(1), 1.0), 'float32'),
        ((jnp.bfloat16, jnp.float32), 'float32'),
    ]:
      assert numerics.common_type(*parts) == expected


def test_along_last_has_the_rank_of_what_it_meets():
  with jax.numpy_rank_promotion('raise'):
    kernel = jnp.ones((2, 3, 4)) * numerics.along_last(
        jnp.arange(4.0), jnp.ones((2, 3, 4))
    )
  np.testing.assert_array_equal(kernel[1, 2], np.arange(4))


@pytest.mark.parametrize('n', [0, 1, 2, 7, 8, 9])
def test_how_many_are_below(n):
  ordered = np.sort(np.random.default_rng(n).integers(0, 6, n))
  x = np.arange(-1, 8).reshape(3, 3)
  found = numerics.counts_below(jnp.asarray(ordered), jnp.asarray(x))
  np.testing.assert_array_equal(found, np.searchsorted(ordered, x))


def shapes_of(name, jaxpr):
  """Of the arrays that the primitive reads, wherever it is."""
  found = []
  for eqn in jaxpr.eqns:
    if eqn.primitive.name == name:
      found += [v.aval.shape for v in eqn.invars]
    for inner in jax.tree.leaves(
        eqn.params, is_leaf=lambda x: hasattr(x, 'jaxpr') or hasattr(x, 'eqns')
    ):
      inner = getattr(inner, 'jaxpr', inner)
      if hasattr(inner, 'eqns'):
        found += shapes_of(name, inner)
  return found


@pytest.mark.parametrize('name', ['svd', 'eigh'])
def test_a_cpu_decomposes_one_after_the_other(name):
  """Batches on several threads may stand still for ever."""
  fn, x = getattr(numerics, name), jnp.ones((2, 3, 4, 4))
  batched = lambda: jax.vmap(jax.vmap(lambda x: fn(x)))
  with target.tracing_for('cpu'):
    assert shapes_of(name, jax.make_jaxpr(batched())(x).jaxpr) == [(4, 4)]
  with target.tracing_for('cuda'):
    assert shapes_of(name, jax.make_jaxpr(batched())(x).jaxpr) == [(2, 3, 4, 4)]


@pytest.mark.parametrize('sides', [(5, 3), (3, 5)])
def test_decompositions_give_back_what_they_were_made_of(sides):
  x = np.random.default_rng(0).standard_normal((2, *sides)).astype(np.float32)
  left, values, right = jax.vmap(numerics.svd)(x)
  assert left.shape == (2, sides[0], 3) and right.shape == (2, 3, sides[1])
  np.testing.assert_allclose(
      np.einsum('bmr,br,brn->bmn', left, values, right), x, atol=1e-5
  )
  square = x @ x.swapaxes(1, 2)
  values, vectors = jax.vmap(numerics.eigh)(square)
  np.testing.assert_allclose(
      np.einsum('bir,br,bjr->bij', vectors, values, vectors), square, atol=1e-4
  )
  assert (np.diff(values) >= 0).all()


ROWS = 7
reals = st.floats(width=32, allow_nan=False, allow_subnormal=False)
median = jax.jit(numerics.masked_median)


@given(
    st.lists(st.tuples(reals, reals), min_size=ROWS, max_size=ROWS),
    st.lists(st.booleans(), min_size=ROWS, max_size=ROWS),
)
def test_a_masked_median_is_that_of_the_rows_it_leaves(rows, mask):
  x, mask = np.array(rows, np.float32), np.array(mask)
  with np.errstate(over='ignore', invalid='ignore'):
    want = np.median(x[mask], 0) if mask.any() else np.zeros(2, np.float32)
  np.testing.assert_array_equal(median(x, mask), want)


@pytest.mark.parametrize('rows, want', [
    ([4], 4), ([4, 1], 2.5), ([4, 1, 9], 4), ([4, 1, 9, 7], 5.5),
])
def test_a_median_of_few_rows(rows, want):
  x = np.float32(rows)[:, None]
  assert median(x, np.ones(len(x), bool)) == want


def test_a_median_of_what_is_no_number_is_none():
  x = np.array([[1.0], [np.nan], [np.nan]], np.float32)
  assert np.isnan(median(x, np.ones(3, bool)))
  assert median(x, np.array([True, False, False])) == 1


@pytest.mark.parametrize('wide', [False, True])
def test_integers_of_floats_and_back(wide):
  with jax.enable_x64(wide):
    kind = np.float64 if wide else np.float32
    x = np.array([-np.inf, -2.5, -1e-30, 0, 1e-30, 3, np.inf], kind)
    keys = numerics.as_integers(jnp.asarray(x))
    assert numerics.as_integers(jnp.asarray(kind(-0.0))) == keys[3]
    assert (np.diff(keys) > 0).all()
    back = numerics.as_floats(keys)
    assert back.dtype == kind
    np.testing.assert_array_equal(back, x)


def test_distances_are_centered_over_the_rows_that_count():
  """In units of the largest number; doubly, as in a distance covariance."""
  x = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)
  real = np.array([1, 0, 1, 1, 1, 0], bool)
  own = x[real]
  d = np.linalg.norm(own[:, None] - own[None], axis=-1) / np.abs(own).max()
  expected = np.zeros((6, 6))
  expected[np.ix_(real, real)] = (
      d - d.mean(0) - d.mean(1)[:, None] + d.mean()
  )
  found = metrics.centered_distances(jnp.asarray(x), jnp.asarray(real))
  np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize('size', [1e-25, 1, 1e25])
def test_norms_of_rows_whose_squares_are_no_32_bit_floats(size):
  rows = np.float32(size) * np.float32([[3, 4], [0, 0], [-8, 6]])
  found = jax.jit(numerics.row_norms)(rows)
  np.testing.assert_allclose(
      found / np.float32(size), [5, 0, 10], rtol=1e-6
  )


def test_a_direction_has_length_one_or_none():
  rows = np.float32([[3, 4], [0, 0], [np.nan, 1]])
  found = jax.jit(numerics.directions)(rows)
  np.testing.assert_allclose(
      found, [[0.6, 0.8], [0, 0], [np.nan, np.nan]], rtol=1e-6
  )


@pytest.mark.parametrize('wide', [False, True])
def test_integers_of_floats_that_a_cpu_takes_for_zero(wide):
  with jax.enable_x64(wide):
    kind = np.float64 if wide else np.float32
    least = np.finfo(kind).smallest_subnormal
    x = np.array([-2, -1, 0, 1, 2], kind) * least
    keys = numerics.as_integers(jnp.asarray(x))
    assert (np.diff(keys) > 0).all() and keys[2] == 0
    assert numerics.as_integers(jnp.asarray(kind(-0.0))) == 0


@pytest.mark.parametrize('n, size, asked', [
    (4, 4, [4]), (5, 4, [4]), (8, 4, [4]), (1, 4, [1]), (3, 1, [1]),
])
def test_rows_in_blocks_are_those_of_all_at_once(n, size, asked):
  """`None` of a tree stays, and the rows that fill a block are left out."""
  seen: list[int] = []
  tree = jnp.arange(2.0 * n).reshape(n, 2), None, jnp.arange(n)

  def fn(rows):
    x, none, i = rows
    seen.append(len(x))
    return x * 2 + i[:, None], none

  found, none = numerics.in_blocks(fn, tree, size)
  assert none is None and {*seen} == {*asked}
  np.testing.assert_array_equal(
      found, 2 * np.arange(2 * n).reshape(n, 2) + np.arange(n)[:, None]
  )


def test_what_fills_a_block_leaves_gradients_alone():
  x = jnp.arange(1.0, 8.0)[:, None] * jnp.ones((1, 2))

  def total(w, size):
    return numerics.in_blocks(
        lambda x: jnp.linalg.norm(x * w, axis=1), x, size
    ).sum()

  slope = jax.jit(jax.grad(total), static_argnums=1)
  np.testing.assert_allclose(slope(2.0, 3), slope(2.0, 7), rtol=1e-6)
