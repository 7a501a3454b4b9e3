"""Keys made before a loop: the same; whatever else a round does stays in it."""
import jax
from jax import lax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax import ahead

KEY, ROUNDS = jax.random.key(3), 5
FACTOR = jnp.array([2.0, -1.0, 0.5])


def play(state, x):
  """Keys of keys, of a number, of what a round computes; a draw of each."""
  total, own = state
  number, key = x
  k_split, k_fold = jax.random.split(key)
  k_deep = jax.random.fold_in(jax.random.split(k_split, 3)[1], 7)
  k_number = jax.random.fold_in(k_fold, number)
  k_own, own = jax.random.split(jax.random.fold_in(own, 1))
  keys = k_deep, k_fold, k_number, k_own
  drawn = sum(jax.random.normal(k, (3,)) * FACTOR for k in keys)
  total = total + drawn * number
  return (total, own), dict(drawn=drawn, total=total.sum())


def given(key):
  xs = jnp.arange(ROUNDS), jax.random.split(key, ROUNDS)
  return (jnp.zeros(3), jax.random.fold_in(key, 9)), xs


def assert_same(found, want):
  for tree in (found, want):
    assert len(jax.tree.leaves(tree)) == 4
  for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(want)):
    if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
      x, y = map(jax.random.key_data, (x, y))
    np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize('many', [False, True])
def test_a_loop_is_the_same(many):
  """Also of many trainings at a time, as a GPU plays them."""
  keys = jax.random.split(KEY, 2)
  wrap = (lambda f: jax.jit(jax.vmap(f))) if many else jax.jit
  key = keys if many else KEY
  found = wrap(lambda key: ahead.scan(play, *given(key)))(key)
  want = wrap(lambda key: lax.scan(play, *given(key)))(key)
  assert_same(found, want)


def loop(scan):
  """Its equations as text, and how many arrays of numbers go into it."""
  made = jax.make_jaxpr(lambda key: scan(play, *given(key)))(KEY)
  (own,) = [e for e in made.jaxpr.eqns if e.primitive.name == 'scan']
  numbers = [v for v in own.invars if jnp.issubdtype(v.aval.dtype, jnp.number)]
  return str(own.params['jaxpr']), len(numbers)


def test_keys_of_keys_are_made_before_it_and_others_in_it():
  """In it: of a number that is no constant, of the state's key, and draws."""
  (inside, numbers), (plain, want) = loop(ahead.scan), loop(lax.scan)
  assert plain.count('random_split[') == 3
  assert plain.count('random_fold_in') == 3
  assert inside.count('random_split[') == 1
  assert inside.count('random_fold_in') == 2
  assert numbers == want  # Keys alone are carried in, and nothing drawn.


@pytest.mark.parametrize('kind', ['rbg', 'unsafe_rbg'])
def test_keys_of_another_generator_are_the_same(kind):
  key = jax.random.key(5, impl=kind)
  found = jax.jit(lambda key: ahead.scan(play, *given(key)))(key)
  assert_same(found, jax.jit(lambda key: lax.scan(play, *given(key)))(key))


def test_a_loop_without_keys_is_a_loop():
  scan = lambda s: ahead.scan(lambda s, x: (s + x, s), s, jnp.arange(4.0))
  total, seen = jax.jit(scan)(jnp.float32(1))
  np.testing.assert_array_equal(seen, [1, 1, 2, 4])
  assert total == 7


def test_a_loop_of_no_rounds_leaves_its_state():
  state, xs = given(KEY)
  none = jax.tree.map(lambda x: x[:0], xs)
  (total, _), seen = jax.jit(lambda s, xs: ahead.scan(play, s, xs))(state, none)
  np.testing.assert_array_equal(total, state[0])
  assert seen['drawn'].shape == (0, 3)


def test_what_does_not_depend_on_a_round_is_read_in_each():
  """Arrays of who calls it, not of its arguments, as a training's samples."""

  @jax.jit
  def run(table):
    step = lambda s, x: (s + table[x], table.sum())
    return ahead.scan(step, jnp.float32(0), jnp.arange(3))

  total, sums = run(jnp.array([1.0, 2.0, 4.0]))
  assert total == 7
  np.testing.assert_array_equal(sums, [7, 7, 7])
