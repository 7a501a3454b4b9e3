"""A layer's product, and its weights' gradient by each way of computing it.

That they are quicker is in `experiments/bench/core.json` and `models.json`.
"""
from functools import partial

import jax
from jax import core, export
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax import nets, target
from vfljax.nets import convolution, product

WAYS = {  # (rows, k, n) of each.
    'turned': (300, 60, 3), 'wide': (64, 256, 130), '': (30, 20, 10),
}
RNG = np.random.default_rng(0)


def drawn(*shape):
  return RNG.normal(size=shape).astype(np.float32)


def traced(platform, fn, *arguments) -> str:
  with target.tracing_for(platform):
    return str(jax.make_jaxpr(lambda *xs: fn(*xs))(*arguments))


def gradients(platform, m, k, n) -> str:
  """How those of x and w are computed."""
  loss = lambda x, w: product.product(x, w).sum()
  return traced(platform, jax.grad(loss, (0, 1)), drawn(m, k), drawn(k, n))


@pytest.mark.parametrize('way', WAYS)
@pytest.mark.parametrize('lead', [(), (3, 2)])
def test_gradients_are_those_of_the_formula(way, lead):
  m, k, n = WAYS[way]
  x, w, d = drawn(*lead, m, k), drawn(k, n), drawn(*lead, m, n)

  @jax.jit
  def run(x, w, d):
    y, back = jax.vjp(product.product, x, w)
    return y, back(d), x @ w

  y, (dx, dw), plain = run(x, w, d)
  wide = lambda a: np.asarray(a, np.float64)
  rows = wide(x).reshape(-1, k)
  np.testing.assert_array_equal(y, plain)
  np.testing.assert_allclose(dx, wide(d) @ wide(w).T, rtol=1e-4, atol=1e-4)
  want = rows.T @ wide(d).reshape(-1, n)
  np.testing.assert_allclose(dw, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize('way', WAYS)
def test_all_of_differentiation_works(way):
  """One argument alone, forwards, twice, and for many at a time."""
  m, k, n = WAYS[way]
  x, w, dx, dw = drawn(m, k), drawn(k, n), drawn(m, k), drawn(k, n)
  own = lambda x, w: (product.product(x, w) ** 3).sum()
  plain = lambda x, w: ((x @ w) ** 3).sum()
  near = lambda a, b: np.testing.assert_allclose(
      a, b, rtol=1e-3, atol=1e-3 * np.abs(b).max()
  )

  @jax.jit
  def run(x, w, dx, dw):
    def all_of(f):
      return (
          [jax.grad(f, which)(x, w) for which in (0, 1)],
          jax.jvp(f, (x, w), (dx, dw)),
          jax.jvp(jax.grad(f, 1), (x, w), (dx, dw))[1],
          jax.vmap(jax.grad(f, 1), (None, 0))(x, jnp.stack([w, dw])),
      )

    return all_of(own), all_of(plain)

  jax.tree.map(near, *jax.tree.map(np.asarray, run(x, w, dx, dw)))


@pytest.mark.parametrize('m, k, n, way', [
    (128, 128, 10, 'turned'), (128, 128, 32, 'turned'), (128, 128, 33, ''),
    (127, 128, 10, ''), (1028, 57, 16, ''), (1028, 57, 2, 'turned'),
    (1028, 57, 1, ''), (128, 256, 128, 'wide'), (63, 512, 256, ''),
    (64, 512, 256, 'wide'), (128, 392, 256, ''),
])
def test_which_way(m, k, n, way):
  found = gradients('cpu', m, k, n)
  kept = found.count('optimization_barrier')
  assert kept == {'turned': 2, 'wide': 1, '': 0}[way]
  assert ('concatenate' in found) == (way == 'wide')
  # The product that is slow: both matrices along their first axis.
  assert ('([0], [0])' in found) == (way != 'turned')


@pytest.mark.parametrize('platform', ['cuda', 'tpu'])
def test_elsewhere_all_is_as_it_was(platform):
  for m, k, n in WAYS.values():
    assert 'barrier' not in gradients(platform, m, k, n)


def test_what_is_traced_for_a_cpu_may_be_differentiated_for_another():
  m, k, n = WAYS['turned']
  x, w = drawn(m, k), drawn(k, n)
  with target.tracing_for('cpu'):
    found = jax.make_jaxpr(product.product)(x, w)
  with target.tracing_for('cuda'):
    run = partial(core.eval_jaxpr, found.jaxpr, found.consts)
    loss = lambda w: run(x, w)[0].sum()
    assert 'barrier' not in str(jax.make_jaxpr(jax.grad(loss))(w))
    np.testing.assert_allclose(
        jax.grad(loss)(w), x.T @ jnp.ones((m, n)), rtol=1e-4, atol=1e-4
    )


def test_any_number_of_rows_can_be_exported():
  rows, = export.symbolic_shape('b')
  x = jax.ShapeDtypeStruct((rows, 60), jnp.float32)
  made = export.export(jax.jit(product.product))(x, drawn(60, 3))
  assert made.out_avals[0].shape == (rows, 3)


@pytest.mark.parametrize('x, w', [
    (jnp.bfloat16, jnp.bfloat16), (jnp.float32, jnp.bfloat16),
])
def test_other_types_are_left_alone(x, w):
  m, k, n = WAYS['turned']
  loss = lambda a, b: product.product(a, b).sum().astype(jnp.float32)
  both = drawn(m, k).astype(x), drawn(k, n).astype(w)
  assert 'barrier' not in traced('cpu', jax.grad(loss, 1), *both)


def test_layers_compute_so():
  net, x = nets.mlp(3), drawn(300, 60)
  params = net.init(jax.random.key(0), x)
  loss = lambda p: net.apply(p, x).sum()
  assert 'barrier' in traced('cpu', jax.grad(loss), params)
  image, kernel = drawn(8, 16, 16, 2), drawn(3, 3, 2, 4)
  loss = lambda w: convolution.convolve(image, w, how='patches').sum()
  assert 'barrier' in traced('cpu', jax.grad(loss), kernel)


def test_a_layer_that_asks_for_more_gets_it():
  x, w = drawn(300, 60), drawn(60, 3)
  rows = (((1,), (0,)), ((), ()))
  for options in (dict(precision='highest'), dict(precision=None)):
    found = product.dot_general(x, w, rows, **options)
    np.testing.assert_allclose(found, x @ w, rtol=1e-5, atol=1e-5)
  turned = product.dot_general(w, x, (((0,), (1,)), ((), ())), precision=None)
  np.testing.assert_allclose(turned, (x @ w).T, rtol=1e-5, atol=1e-5)
  loss = lambda w: product.dot_general(x, w, rows, precision='highest').sum()
  assert 'barrier' not in traced('cpu', jax.grad(loss), w)
