"""Draws made as one: the same bits, in fewer operations."""
from hypothesis import given, settings
from hypothesis import strategies as st
import jax
from jax import lax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.drawing import draws
from vfljax import nets
from vfljax.draws import bundled

IMAGES, COLUMNS = jnp.ones((4, 28, 14, 1)), jnp.ones((4, 7))
SMALL = nets.mlp(5, 3)
KEY = jax.random.key(3)


def assert_same(fn, *arguments):
  """Asserts that bundling changes no bit, nor the structure."""
  ours, plain = (jax.jit(f)(*arguments) for f in (bundled(fn), fn))
  assert jax.tree.structure(ours) == jax.tree.structure(plain)
  for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(plain), strict=True):
    assert (a.shape, a.dtype) == (b.shape, b.dtype)
    if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
      a, b = jax.random.key_data(a), jax.random.key_data(b)
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize('name, options', [
    ('lenet5', {}), ('conv2', {}),
    pytest.param('resnet20', dict(channels=(8, 16)), marks=pytest.mark.slow),
])
def test_networks_begin_the_same(name, options):
  begin = lambda key: nets.make(name, 6, **options).init(key, IMAGES)
  assert_same(begin, KEY)


def test_a_network_is_one_operation_for_its_keys_and_one_for_its_weights():
  begin = lambda key: nets.make('lenet5', 6).init(key, IMAGES)
  assert draws(begin, KEY) == ['random_fold_in', 'random_bits'] * 10
  assert draws(bundled(begin), KEY) == ['random_fold_in', 'threefry2x32']


def test_arguments_may_have_names_and_numbers_are_left_alone():
  """What is called with numbers compiles nothing, and may take what it will."""
  def add(key, *, by, how='sum'):
    assert how in ('sum', 'text')
    return by + sum(jax.random.normal(k) for k in jax.random.split(key, 3))

  together = jax.jit(lambda key: bundled(add)(key, by=2.0))
  assert together(KEY) == jax.jit(lambda key: add(key, by=2.0))(KEY)
  assert bundled(add)(KEY, by=1, how='text') == add(KEY, by=1)


def test_functions_in_loops_keep_their_constants():
  table = np.arange(6.0, dtype=np.float32)
  drawn = jax.jit(lambda key, x: x * table + jax.random.normal(key, (6,)))

  def looped(key, x):
    rows = lax.map(lambda key: drawn(key, x), jax.random.split(key, 3))
    return rows, lax.cond(
        x > 0, lambda: drawn(key, x), lambda: drawn(key, 2 * x)
    )

  assert_same(looped, KEY, jnp.float32(2))


def test_two_networks_are_as_many_operations_as_one():
  def begin(key):
    return [SMALL.init(k, COLUMNS) for k in jax.random.split(key)]

  assert_same(begin, KEY)
  assert draws(bundled(begin), KEY) == [
      'random_split', 'random_fold_in', 'threefry2x32'
  ]


def test_draws_of_one_shape_are_one_draw_of_all_keys():
  fn = lambda keys: [jax.random.normal(k, (3, 2)) for k in keys]
  keys = list(jax.random.split(KEY, 4))
  assert_same(fn, keys)
  assert draws(bundled(fn), keys) == ['random_bits']


def test_draws_of_two_shapes_are_not_made_word_by_word():
  fn = lambda a, b: (jax.random.normal(a, (3, 2)), jax.random.normal(b, (5,)))
  assert_same(fn, KEY, jax.random.key(4))
  assert draws(bundled(fn), KEY, KEY) == ['random_bits'] * 2


def test_keys_made_together_go_on_in_any_order():
  """All, some, twice and beside those from elsewhere."""

  def fn(key, other):
    made = [jax.random.fold_in(key, i) for i in range(4)]
    split = [jax.random.split(k) for k in (key, other, made[3])]
    some = made[2], other, made[0], made[2], split[1][0], made[1]
    turned = made[::-1]
    return (
        [jax.random.normal(k, (3,)) for k in some],
        [jax.random.fold_in(k, 9) for k in turned], made[2], split,
        [jax.random.uniform(k, (n,)) for n, k in enumerate(turned)],
    )

  assert_same(fn, KEY, jax.random.key(8))


def test_keys_stay_together():
  """Of one draw for each of many keys none is cut out."""
  def fn(key):
    keys = [jax.random.fold_in(key, i) for i in range(5)]
    return [jax.random.bits(k, (n,)) for n, k in enumerate(keys, start=2)]

  made = jax.make_jaxpr(bundled(fn))(KEY)
  cut = [
      e for e in made.jaxpr.eqns if e.primitive.name in ('slice', 'squeeze')
      and jnp.issubdtype(e.outvars[0].aval.dtype, jax.dtypes.prng_key)
  ]
  assert not cut


def test_a_draw_that_decides_about_another_comes_before_it():
  def fn(key):
    first = jax.random.randint(key, (), 0, 100)
    return jax.random.normal(jax.random.fold_in(key, first), (4,))

  assert_same(fn, KEY)


@pytest.mark.parametrize('kind', ['rbg', 'unsafe_rbg'])
def test_keys_of_another_kind(kind):
  """Their words are not made one by one."""
  key = jax.random.key(5, impl=kind)
  shapes = (3,), (7,), (2, 5), (30,)
  assert_same(lambda key: [
      jax.random.normal(jax.random.fold_in(key, i), shape)
      for i, shape in enumerate(shapes)
  ], key)


def test_words_that_are_made_in_pairs():
  """As JAX made them by default until 0.5: a word depends on how many."""
  with jax.threefry_partitionable(False):
    keys = list(jax.random.split(KEY, 4))
    assert_same(lambda keys: [
        jax.random.uniform(k, (n,)) for n, k in enumerate(keys, start=3)
    ], keys)


@pytest.mark.parametrize('dtype', [jnp.uint8, jnp.uint16, jnp.uint32])
def test_words_of_other_lengths(dtype):
  keys = list(jax.random.split(KEY, 4))
  assert_same(lambda keys: [
      jax.random.bits(k, (n,), dtype) for n, k in enumerate(keys, start=3)
  ], keys)


def test_draws_of_nothing_and_of_one_number():
  keys = list(jax.random.split(KEY, 4))
  shapes = (0,), (), (1, 1), (2, 0, 3)
  assert_same(lambda keys: [
      jax.random.uniform(k, s) for s, k in zip(shapes, keys)
  ], keys)


def test_gammas_are_drawn_as_they_were():
  assert_same(lambda key: jax.random.beta(key, 0.75, 1.5, (3,)), KEY)


def test_draws_in_loops():
  def fn(key, x):
    def body(carry, i):
      key, total = carry
      key, *own = jax.random.split(key, 5)
      noise = [jax.random.normal(k, (n,)) for n, k in enumerate(own, start=2)]
      drawn = sum(x.sum() for x in noise)
      found = lax.cond(
          i > 1, lambda k: jax.random.uniform(k, (2,)),
          lambda k: jax.random.normal(k, (2,)) + x, own[0],
      )
      return (key, total + drawn), found

    first = lax.scan(body, (key, 0.0), jnp.arange(4), reverse=True)
    more = lambda state: state[1] < x + 3
    step = lambda state: (
        jax.random.fold_in(state[0], 1),
        state[1] + jax.random.uniform(state[0]),
    )
    return first, lax.while_loop(more, step, (key, x)), lax.map(
        lambda k: jax.random.normal(k, (2,)), jax.random.split(key, 3)
    )

  assert_same(fn, KEY, jnp.float32(0.5))


def test_networks_that_begin_in_loops():
  begin = lambda key: SMALL.init(key, COLUMNS)
  several = lambda keys: lax.map(begin, keys)
  keys = jax.random.split(KEY, 2)
  assert_same(several, keys)
  assert draws(bundled(several), keys) == ['random_fold_in', 'threefry2x32']


def test_derivatives_functions_and_vmap():
  @jax.jit
  def drawn(key, scale):
    return scale * jax.random.normal(key, (3,))

  def fn(keys, scale):
    loss = lambda s: (drawn(keys[0], s) * drawn(keys[1], s)).sum()
    each = jax.vmap(lambda k: [jax.random.uniform(k, (n,)) for n in (1, 2, 3)])
    return jax.value_and_grad(loss)(scale), each(keys), keys[0], 7, scale

  assert_same(fn, jax.random.split(KEY, 3), jnp.float32(2))


def test_for_several_cells_at_a_time():
  begin = lambda key: SMALL.init(key, COLUMNS)
  keys = jax.random.split(KEY, 3)
  assert_same(jax.vmap(bundled(begin)), keys)
  several = (jax.jit(jax.vmap(f))(keys) for f in (bundled(begin), begin))
  jax.tree.map(np.testing.assert_array_equal, *several)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(
    st.tuples(st.integers(0, 3), st.lists(st.integers(0, 4), max_size=3)),
    min_size=1, max_size=8,
))
def test_any_shapes_from_any_keys(asked):
  def fn(key):
    keys = jax.random.split(key, 4)
    return [jax.random.bits(keys[i], tuple(shape)) for i, shape in asked]

  ours, plain = bundled(fn)(KEY), fn(KEY)
  for a, b in zip(ours, plain, strict=True):
    np.testing.assert_array_equal(a, b)
