"""Tests' own operations outside of `jit`: NumPy's are XLA's, bit by bit."""
import jax
from jax._src import pjit
import jax.numpy as jnp
import numpy as np
import pytest

from tests import eager

NAN, INF = float('nan'), float('inf')
X = np.float32([[1.5, -0.0, NAN, 2.5], [-INF, 1e30, 3.1, 0.0], [7, -1, 3, INF]])
Y = np.float32([[2.5, 0.0, 1.0, -3], [INF, 1e30, 0.3, 0.0], [7, -2, NAN, 1]])
WHOLE = np.int32([[2**31 - 1, -2**31, 5], [0, -7, 3]])
OTHER = np.int32([[2, -1, 5], [-3, 7, 2**30]])
B = X > 1

CASES = dict(
    arithmetic=(lambda x, y: (x + y, x - y, x * y, -x, abs(x)), X, Y),
    integers=(lambda x, y: (x + y, x - y, x * y, -x, abs(x)), WHOLE, OTHER),
    bits=(lambda x, y: (x & y, x | y, x ^ y, ~x), WHOLE, OTHER),
    truth=(lambda x, y: (x & y, x | y, x ^ y, ~x), B, Y > 1),
    equal=(lambda x, y: (x == y, x != y), X, Y),
    ordered=(lambda x, y: (x < y, x <= y, x > y, x >= y), X, Y),
    squares=(lambda x: (x**2, jnp.square(x)), X),
    finite=(jnp.isfinite, X),
    chosen=(lambda b, x, y: (jnp.where(b, x, y), jnp.where(b, x, 0)), B, X, Y),
    any_all=(lambda b: (b.any(), b.all(0), b.any(1), b.all((0, 1))), B),
    row=(lambda x, i: (x[1], x[-1], x[i], x[:, i]), X, np.int32(2)),
    beyond=(lambda x, i: jax.lax.dynamic_slice(x, (i, -i), (2, 2)), X,
            np.int32(8)),
    slices=(lambda x: (x[1:], x[:, ::2], x[:2, 1:3], x[::-1], x[None]), X),
    shapes=(lambda x: (x.reshape(2, 6), x.T, x[:1].squeeze(0), x.ravel()), X),
    wider=(lambda x: jnp.broadcast_to(x[:, :1, None], (3, 2, 5)), X),
    joined=(lambda x, y: (jnp.concatenate([x, y], 1), jnp.stack([x, y])), X, Y),
    made=(lambda: (jnp.zeros((2, 3)), jnp.full(3, 7), jnp.eye(3),
                   jnp.arange(5)),),
    types=(lambda i, b: (i.astype('f4'), i.astype('i1'), b.astype(int),
                         i.astype(bool), b.astype('f4')), WHOLE, B),
    of_floats=(lambda x: (x.astype(bool), x.astype('f4')), X),
    weak=(lambda x: (jnp.asarray(2) + 1, jnp.add(1.5, 2), x + 1), WHOLE),
    pieces=(lambda x: [*jnp.unstack(x), jnp.tile(x, (2, 1))], X),
    rows=(lambda x, i: (x[i], x.at[i].get(mode='clip'), x[i[0]]), X,
          np.int32([[1, 2], [0, -2]])),
    sums=(lambda i: (i.sum(), i.max(0), i.min(1)), WHOLE),
    largest=(lambda x: (x.argmax(0), x.argmax()), X),
)


@pytest.fixture(autouse=True)
def installed():
  if pjit._pjit_call_impl_python.__module__ != eager.__name__:
    pytest.skip('everything is compiled')


def leaves(tree):
  return [
      (x.shape, x.dtype, x.weak_type, np.asarray(x).tobytes())
      for x in jax.tree.leaves(tree)
  ]


@pytest.mark.parametrize('wide', [False, True])
@pytest.mark.parametrize('case', CASES)
def test_numpys_bits_are_xlas(case, wide, compiled_names):
  f, *args = CASES[case]
  with jax.enable_x64(wide):
    args = [jnp.asarray(x) for x in args]
    want = jax.jit(f).lower(*args).compile()(*args)
    compiled_names.clear()
    assert leaves(f(*args)) == leaves(want)
  assert not compiled_names


@pytest.fixture
def compiled_names(monkeypatch):
  """Of programs that XLA was asked for."""
  names, lower = [], pjit._resolve_and_lower
  monkeypatch.setattr(pjit, '_resolve_and_lower', lambda *args, **how: (
      names.append(how['name']), lower(*args, **how)
  )[1])
  return names


@pytest.mark.parametrize('f', [
    jnp.sum, jnp.exp, lambda x: x @ x.T, jnp.sort, lambda x: x.astype(int),
    lambda x: x / x, lambda x: x / 3, jax.jit(lambda x: x * x + x),
    jax.jit(lambda x: x + 1e8 - 1e8),
], ids=[
    'sums', 'functions', 'products', 'sorted', 'to integers', 'divided',
    'by a number', 'rounded once', 'constants added',
])
def test_what_could_differ_is_compiled(f, compiled_names):
  f(jnp.asarray(Y[:2, :2]))
  assert compiled_names


def test_what_has_a_place_is_compiled(compiled_names):
  x = jax.device_put(np.ones(3, np.float32), jax.devices()[1])
  assert (x + x).devices() == {jax.devices()[1]}
  assert len(compiled_names) == 1
  donated = jax.jit(lambda x: x + 1, donate_argnums=0)(jnp.zeros(3))
  assert donated.tolist() == [1, 1, 1] and len(compiled_names) == 2


def test_results_are_their_own():
  """A view would change, or be deleted, with what it is a view of."""
  x = np.arange(6)
  there = jnp.asarray(x)
  flat, same = there.reshape(2, 3), jax.jit(lambda x: x)(there)
  there.delete()
  assert flat.tolist() == [[0, 1, 2], [3, 4, 5]]
  assert same.tolist() == [0, 1, 2, 3, 4, 5]
