"""What depends on what in traced programs, loops and branches among them."""
import jax
from jax import lax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax import flow


def sources(fn, *args, **rules):
  """For each output of fn(a, b, ...) the letters of what it depends on."""
  traced = jax.make_jaxpr(fn)(*args)
  names = 'abcdefgh'[: len(traced.in_avals)]
  found = flow.follow(traced, names, flow.Rules(**rules))
  return [''.join(sorted(taint)) for taint in found]


X = jnp.zeros(3)


@jax.custom_vjp
def second(a, b):
  return b


second.defvjp(lambda a, b: (b, a), lambda a, g: (a * g, g))


def walk(a, b, c):
  """A carry that only the second step brings from b to a."""
  return lax.scan(lambda abc, _: ((abc[1], abc[2], abc[2]), abc[0]),
                  (a, b, c), None, length=3)


@pytest.mark.parametrize('fn, expected', [
    (lambda a, b, c: (a, b + c, 3.0), ['a', 'bc', '']),
    (jax.jit(lambda a, b, c: (c, a * b, jnp.ones(2))), ['c', 'ab', '']),
    (lambda a, b, c: jax.checkpoint(lambda x: (x, b))(a), ['a', 'b']),
    (walk, ['abc', 'bc', 'c', 'abc']),
    (lambda a, b, c: lax.fori_loop(
        0, 3, lambda i, ab: (ab[1], ab[1] * 2), (a, b)), ['ab', 'b']),
    (lambda a, b, c: lax.while_loop(
        lambda ab: ab[1].sum() < 3, lambda ab: (ab[0] + 1, ab[1]), (a, b)
    ), ['ab', 'b']),
    (lambda a, b, c: lax.while_loop(  # Each with constants of its own.
        lambda xy: xy[0].sum() < c[0], lambda xy: (xy[0] + 1, xy[1] * b), (a, a)
    ), ['ac', 'abc']),
    (lambda a, b, c: lax.while_loop(  # How often, the first step does not say.
        lambda xyz: xyz[0].sum() < 3, lambda xyz: (xyz[1], xyz[1], xyz[2] + 1),
        (jnp.ones(3), b, c),
    ), ['b', 'b', 'bc']),
    (lambda a, b, c: lax.cond(
        a.sum() > 0, lambda: (b * 2, c), lambda: (b, b)), ['ab', 'abc']),
    (lambda a, b, c: second(a, b), ['b']),
    (lambda a, b, c: jax.grad(lambda a: second(a, b).sum())(a), ['a']),
    (lambda a, b, c: jax.vmap(lambda a, b: (a, b))(a, b), ['a', 'b']),
    (lambda a, b, c: lax.map(lambda x: x * c[0], a), ['ac']),
    (lambda a, b, c: lax.scan(
        lambda s, x: (s + x, (x * a, s)), b[0], c), ['bc', 'ac', 'bc']),
    (lambda a, b, c: jnp.sort(a) + jax.nn.relu(b), ['ab']),
    (lambda a, b, c: jax.vjp(lambda a: a * b, a)[1](c)[0], ['bc']),
    # What an unknown program inside does with its inputs is not looked at.
    (lambda a, b, c: lax.reduce(a, b[0], lax.add, (0,)), ['ab']),
    (lambda a, b, c: lax.custom_linear_solve(
        lambda x: x * a, b, lambda f, b: b), ['ab']),
])
def test_outputs_depend_on(fn, expected):
  assert sources(fn, X, X, X) == expected


def test_shards_are_followed():
  mesh = jax.sharding.Mesh(jax.devices()[:1], ('i',))
  p = jax.sharding.PartitionSpec('i')
  both = jax.shard_map(
      lambda a, b: (a, b * 2), mesh=mesh, in_specs=(p, p), out_specs=(p, p)
  )
  assert sources(both, X, X) == ['a', 'b']


def test_constants_have_sources_inside_of_programs_too():
  told = jnp.arange(3.0)
  inner = jax.jit(lambda a: a + told)
  name = lambda value: 'told' if np.shape(value) == (3,) else ''
  for fn in inner, lambda a: inner(a) * 2, lambda a: lax.map(inner, a):
    traced = jax.make_jaxpr(fn)(X)
    assert 'told' in flow.follow(traced, 'a', flow.Rules(name))[0]


def test_a_path_names_the_places_on_the_way():
  """Each once, though it computes twice there."""
  def first(a):
    return a * 2 * a

  def then(a):
    return jnp.sin(first(a))

  traced = jax.make_jaxpr(then)(X)
  found, = flow.follow(traced, ['a'])
  one, two = flow.path(found['a'])
  assert 'first (test_flow.py:' in one and 'then (test_flow.py:' in two


def test_of_several_ways_the_first_is_told():
  def one(a):
    return a * 2

  def other(a):
    return a * 3

  found, = flow.follow(jax.make_jaxpr(lambda a: one(a) + other(a))(X), ['a'])
  assert 'one (test_flow.py:' in flow.path(found['a'])[0]


def test_side_effects_are_refused():
  def shout(a):
    jax.debug.print('{}', a)
    return a

  with pytest.raises(ValueError, match='side effects'):
    sources(shout, X)
