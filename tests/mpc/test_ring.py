"""Ring products against Python's integers, NumPy's wraparound and adjoints."""
import functools
import itertools
import logging

from hypothesis import given, settings, strategies as st
import jax
from jax import lax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax import mpc
from vfljax.mpc import dispatch, fixed_point, kernels, ring, schemes
from vfljax.mpc import conv as convolution
from vfljax.mpc.schemes import SCHEMES

LOW, HIGH = -(2**63), 2**63 - 1
DIGITS_128 = 0x7F7F7F7F7F7F7F80  # Every base-256 digit is -128.
# karatsuba's largest digits, -2^21, -2^19 and -2^21, mod 2^64.
FLOAT_WORST = 2**63 - 2**41 - 2**21


def draw(seed, *shape):
  rng = np.random.default_rng(seed)
  return rng.integers(LOW, HIGH, shape, np.int64, endpoint=True)


def wrap(value):
  """A Python integer mod 2^64 as int64 would show it."""
  return (value + 2**63) % 2**64 - 2**63


def exact_matmul(a, b):
  """By Python's integers."""
  a, b = np.asarray(a).tolist(), np.asarray(b).tolist()
  return np.array(
      [[wrap(sum(x * y for x, y in zip(r, c))) for c in zip(*b)] for r in a],
      np.int64,
  )


def exact_conv(x, w, strides, pads, dilation, groups=1):
  """By the definition, tap by tap, in NumPy's wrapping uint64."""
  x = np.pad(x, [(0, 0), *pads, (0, 0)]).view(np.uint64)
  w = w.view(np.uint64)
  kernel, c, o = w.shape[:-2], w.shape[-2], w.shape[-1] // groups
  space = [
      (n - (k - 1) * d - 1) // s + 1
      for n, k, s, d in zip(x.shape[1:-1], kernel, strides, dilation)
  ]
  out = np.zeros((len(x), *space, groups * o), np.uint64)
  for tap in itertools.product(*map(range, kernel)):
    cut = tuple(
        slice(t * d, t * d + (q - 1) * s + 1, s)
        for t, d, q, s in zip(tap, dilation, space, strides)
    )
    part = x[(slice(None), *cut)]
    for i in range(groups):
      inputs, outputs = slice(i * c, i * c + c), slice(i * o, i * o + o)
      out[..., outputs] += part[..., inputs] @ w[tap][:, outputs]
  return out.view(np.int64)


EXTREMES = np.array(
    [LOW, -1, HIGH, DIGITS_128, FLOAT_WORST, 0, 1, LOW + 1], np.int64
)


def exact_here(name):
  """On a CPU every scheme is; elsewhere the self-check must have told."""
  platform = jax.default_backend()
  return platform == 'cpu' or dispatch.exact(platform, name)


@pytest.fixture
def name(request):
  """A scheme that this backend can be asked for."""
  if not exact_here(request.param):
    pytest.skip(f'{request.param} is not exact on {jax.default_backend()}')
  return request.param


def needs_integer_convolutions(name):
  if name == 'naive' and jax.default_backend() != 'cpu':
    pytest.skip('XLA has convolutions of int64 for CPUs alone')


def all_schemes(a, b):
  """Every scheme's product, in one compilation."""
  with jax.enable_x64(True):
    return {k: np.asarray(v) for k, v in _all(a, b).items()}


@jax.jit
def _all(a, b):
  return {
      name: schemes.matmul(s, a, b) for name, s in SCHEMES.items()
      if exact_here(name)
  }


def test_every_scheme_on_all_pairs_of_extremes():
  a = np.concatenate([EXTREMES, draw(0, 8)])[:, None]
  want = exact_matmul(a, a.T)
  for name, out in all_schemes(a, a.T).items():
    np.testing.assert_array_equal(out, want, err_msg=name)


@pytest.mark.parametrize('past', [0, 1])
@pytest.mark.parametrize('name', [
    'int8_rows', 'int8_merged', 'int8_toeplitz', 'karatsuba', 'outer',
], indirect=True)
@pytest.mark.parametrize('value', [DIGITS_128, FLOAT_WORST, LOW, -1, HIGH])
def test_inner_length_at_and_past_the_limit(name, value, past):
  length = (SCHEMES[name].length or 4096) + past
  a = np.full((2, length), value, np.int64)
  a[1, ::2] = LOW
  out = ring.matmul(a, np.ascontiguousarray(a.T), name)
  first = wrap(length * value * value)
  half = -(-length // 2)
  mixed = wrap(half * LOW * value + (length - half) * value * value)
  second = wrap(half * LOW * LOW + (length - half) * value * value)
  assert np.asarray(out).tolist() == [[first, mixed], [mixed, second]]


integers = st.integers(LOW, HIGH) | st.sampled_from(EXTREMES.tolist())


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(integers, min_size=35, max_size=35))
def test_every_scheme_on_generated_integers(values):
  a = np.array(values[:15], np.int64).reshape(3, 5)
  b = np.array(values[15:], np.int64).reshape(5, 4)
  want = exact_matmul(a, b)
  for name, out in all_schemes(a, b).items():
    np.testing.assert_array_equal(out, want, err_msg=name)


@pytest.mark.parametrize('shape', [(1, 7, 300), (130, 33, 257)])
def test_every_scheme_on_odd_shapes(shape):
  m, k, n = shape
  a, b = draw(1, m, k), draw(2, k, n)
  want = dispatch.wrap_matmul(a, b)
  for name, out in all_schemes(a, b).items():
    np.testing.assert_array_equal(out, want, err_msg=name)


def test_outer_cuts_rows_and_columns():
  a, b = draw(3, 2100, 18), draw(4, 18, 301)
  np.testing.assert_array_equal(
      ring.matmul(a, b, 'outer'), dispatch.wrap_matmul(a, b)
  )


@pytest.mark.parametrize(
    'shape', [(0, 3, 2), (2, 0, 3), (2, 3, 0), (2000, 3, 0), (0, 3, 2000)]
)
@pytest.mark.parametrize('name', list(SCHEMES), indirect=True)
def test_empty_axes(shape, name):
  m, k, n = shape
  out = ring.matmul(draw(0, m, k), draw(0, k, n), name)
  np.testing.assert_array_equal(out, np.zeros((m, n), np.int64))


@pytest.mark.parametrize('shape', [(0, 3, 2), (2, 0, 3), (2, 3, 0)])
@pytest.mark.parametrize('batch', [0, 2])
def test_empty_axes_of_a_batch(shape, batch):
  m, k, n = shape
  out = ring.matmul(draw(0, batch, m, k), draw(0, batch, k, n))
  np.testing.assert_array_equal(out, np.zeros((batch, m, n), np.int64))


@pytest.mark.parametrize('shape, kernel', [
    ((2, 5, 5, 0), (3, 3, 0, 4)), ((2, 5, 5, 3), (3, 3, 3, 0)),
    ((0, 5, 5, 3), (3, 3, 3, 2)),
])
def test_convolutions_of_nothing(shape, kernel):
  """Sums of no terms: zeros, as a product's."""
  x, w = draw(0, *shape), draw(0, *kernel)
  win = convolution.window(shape, kernel)
  g = np.zeros((shape[0], 5, 5, kernel[-1]), np.int64)
  for name in ('outer', 'int8_rows', 'karatsuba'):
    out = ring.conv(x, w, scheme=name)
    np.testing.assert_array_equal(out, g, err_msg=name)
    back = ring.conv_input_gradient(g, w, shape, win, name)
    np.testing.assert_array_equal(back, np.zeros(shape), err_msg=name)
    slope = ring.conv_weight_gradient(x, g, kernel[:2], win, name)
    np.testing.assert_array_equal(slope, np.zeros(kernel), err_msg=name)


def test_sums_wrap():
  a = np.array([HIGH, LOW, -1, LOW], np.int64)
  b = np.array([1, -1, LOW, LOW], np.int64)
  assert np.asarray(ring.add(a, b)).tolist() == [LOW, HIGH, HIGH, 0]
  assert np.asarray(ring.sub(a, b)).tolist() == [
      wrap(x - y) for x, y in zip(a.tolist(), b.tolist())
  ]
  assert np.asarray(ring.neg(a)).tolist() == [-HIGH, LOW, 1, LOW]


def test_batches_broadcast():
  a, b = draw(5, 3, 1, 4, 9), draw(6, 2, 9, 5)
  out = np.asarray(ring.matmul(a, b))
  assert out.shape == (3, 2, 4, 5)
  for i, j in itertools.product(range(3), range(2)):
    np.testing.assert_array_equal(out[i, j], exact_matmul(a[i, 0], b[j]))
  flat = np.asarray(ring.matmul(a, b[0]))
  np.testing.assert_array_equal(flat[2, 0], exact_matmul(a[2, 0], b[0]))


CONVS = [
    # space, kernel, channels, out, strides, padding, dilation, groups
    ((5, 6), (3, 3), 3, 4, (1, 1), 'SAME', (1, 1), 1),
    ((7, 9), (3, 2), 18, 20, (2, 3), ((2, 0), (1, 4)), (1, 2), 1),
    ((9, 8), (3, 3), 4, 6, (2, 1), 'VALID', (2, 1), 2),
    ((11,), (4,), 6, 6, (3,), ((1, 2),), (2,), 6),
    ((4, 3, 5), (2, 2, 3), 2, 3, (1, 2, 1), 'SAME', (1, 1, 1), 1),
]


def _case(case, batch=3, top=None):
  space, kernel, c, o, strides, padding, dilation, groups = case
  shapes = (batch, *space, c), (*kernel, c // groups, o)
  win = convolution.window(*shapes, strides, padding, dilation, groups)
  x, w = (draw(i, *shape) for i, shape in enumerate(shapes))
  g = draw(2, batch, *convolution.space(shapes[0], kernel, win), o)
  if top:
    x, w, g = (v % top - top // 2 for v in (x, w, g))
  return x, w, g, win


# int8's other arrangements share int8_rows' path up to the matrix product.
@pytest.mark.parametrize('name', [
    'naive', 'patches', 'outer', 'int8_rows', 'karatsuba',
], indirect=True)
@pytest.mark.parametrize('case', CONVS, ids=str)
def test_convolutions(case, name):
  needs_integer_convolutions(name)
  x, w, _, win = _case(case)
  x[0], w[(0,) * (w.ndim - 2)] = DIGITS_128, LOW
  want = exact_conv(x, w, win.strides, win.padding, win.dilation, win.groups)
  out = ring.conv(x, w, *case[4:], scheme=name)
  np.testing.assert_array_equal(out, want)


def test_convolutions_cut_images_into_blocks():
  x, w = draw(0, 5, 24, 24, 1), draw(1, 3, 3, 1, 2)
  want = exact_conv(x, w, (1, 1), [(1, 1)] * 2, (1, 1))
  for name in filter(exact_here, ('outer', 'int8_rows', 'karatsuba')):
    np.testing.assert_array_equal(ring.conv(x, w, 1, 1, scheme=name), want)


def test_convolutions_by_outer_products_in_tiles_of_channels():
  x, w = draw(0, 1, 3, 16), draw(1, 2, 16, 136)
  want = exact_conv(x, w, (1,), [(0, 0)], (1,))
  out = ring.conv(x, w, padding='VALID', scheme='outer')
  np.testing.assert_array_equal(out, want)


def _float_conv(x, w, win):
  letters = 'XYZ'[: x.ndim - 2]
  names = (f'N{letters}C', f'{letters}IO', f'N{letters}C')
  return lax.conv_general_dilated(
      x, w, win.strides, win.padding, rhs_dilation=win.dilation,
      dimension_numbers=names, feature_group_count=win.groups,
  )


@pytest.mark.parametrize('case', [  # The second takes as long as all others.
    pytest.param(case, marks=[pytest.mark.slow] * (i == 1))
    for i, case in enumerate(CONVS)
], ids=str)
def test_gradients_of_convolutions(case):
  """On small integers float64 automatic differentiation is exact."""
  x, w, g, win = _case(case, top=1 << 12)
  with jax.enable_x64(True):
    f = functools.partial(_float_conv, win=win)
    _, pull = jax.vjp(f, *(jnp.asarray(v, jnp.float64) for v in (x, w)))
    want_x, want_w = pull(jnp.asarray(g, jnp.float64))
  got_x = ring.conv_input_gradient(g, w, x.shape, win)
  got_w = ring.conv_weight_gradient(x, g, case[1], win)
  np.testing.assert_array_equal(got_x, np.asarray(want_x).astype(np.int64))
  np.testing.assert_array_equal(got_w, np.asarray(want_w).astype(np.int64))


@pytest.mark.parametrize('case', [
    pytest.param(CONVS[1], marks=pytest.mark.slow), CONVS[2]
], ids=str)
def test_gradients_are_adjoint_over_the_whole_ring(case):
  x, w, g, win = _case(case)
  dot = lambda a, b: int(np.sum(np.asarray(a) * np.asarray(b)))
  y = ring.conv(x, w, *case[4:])
  gx = ring.conv_input_gradient(g, w, x.shape, win)
  gw = ring.conv_weight_gradient(x, g, case[1], win)
  assert dot(g, y) == dot(gx, x) == dot(gw, w)


A, B = draw(7, 4, 6), draw(8, 6, 3)
WANT = exact_matmul(A, B)


def test_a_32_bit_program_is_untouched():
  out = ring.matmul(A, B)
  assert out.dtype == jnp.int64
  assert jnp.ones(2).dtype == jnp.float32
  assert jnp.arange(2).dtype == jnp.int32
  assert (jnp.ones(2) * np.ones(2)).dtype == jnp.float32
  assert jax.jit(lambda x: x + 1.5)(1).dtype == jnp.float32


def _scanned(product, start, parts):
  """sum_i product(parts[i]), in a scan."""
  step = lambda total, part: (ring.add(total, product(part)), None)
  return lax.scan(step, start, parts)[0]


@pytest.mark.parametrize('name', list(SCHEMES), indirect=True)
def test_inside_a_32_bit_callers_transformations(name):
  """jit, vmap, scan, and the hardest: jit of vmap of scan."""
  needs_integer_convolutions(name)
  zero = np.zeros((), np.int64)
  a, b = ring.add(A, zero), ring.add(B, zero)
  x, w = draw(9, 2, 2, 1, 4, 4, 3), draw(10, 3, 3, 3, 2)
  x, w = ring.add(x, zero), ring.add(w, zero)
  stack = ring.add(np.stack([A, A])[None], zero)

  matmul = lambda a: ring.matmul(a, b, name)
  conv = lambda x: ring.conv(x, w, scheme=name)
  want = [exact_conv(np.asarray(v), np.asarray(w), (1, 1), [(1, 1)] * 2, (1, 1))
          for v in x.reshape(4, 1, 4, 4, 3)]
  none = lambda like: ring.sub(like, like)
  np.testing.assert_array_equal(jax.jit(matmul)(a), WANT)
  np.testing.assert_array_equal(jax.vmap(matmul)(stack[0])[1], WANT)
  sums = jax.jit(jax.vmap(lambda s: _scanned(matmul, none(matmul(a)), s)))
  np.testing.assert_array_equal(sums(stack)[0], ring.add(WANT, WANT))
  sums = jax.jit(jax.vmap(lambda s: _scanned(conv, none(conv(s[0])), s)))
  np.testing.assert_array_equal(sums(x)[1], want[2] + want[3])


@pytest.mark.parametrize('name', ['outer', 'karatsuba'], indirect=True)
def test_blocks_inside_a_32_bit_callers_batched_scan(name):
  """Large enough for loops over steps and over blocks of columns."""
  zero = np.zeros((), np.int64)
  a = ring.add(draw(11, 2, 2, 3, 37), zero)
  b = ring.add(draw(12, 37, 7200), zero)
  matmul = lambda a: ring.matmul(a, b, name)
  start = ring.sub(*[matmul(a[0, 0])] * 2)
  sums = jax.jit(jax.vmap(lambda s: _scanned(matmul, start, s)))(a)
  want = sum(dispatch.wrap_matmul(np.asarray(v), np.asarray(b)) for v in a[1])
  np.testing.assert_array_equal(sums[1], want)


@pytest.mark.parametrize('shape', [
    (600, 33, 530), (1, 16, 70), (70, 15, 7), (256, 2, 520),
])
def test_outer_in_tiles_and_steps(shape):
  """Several tiles or one, whole steps and the rest of one, its swap, and blocks
  of two tiles, by what 256 rows leave of the accumulator."""
  m, k, n = shape
  a, b = draw(13, m, k), draw(14, k, n)
  np.testing.assert_array_equal(
      ring.matmul(a, b, 'outer'), dispatch.wrap_matmul(a, b)
  )


def test_inside_a_32_bit_callers_gradient():
  """Integers have no gradient: a masked layer states its own, as here."""

  @jax.custom_vjp
  def layer(x, w):
    codes = [fixed_point.encode_flagged(v)[0] for v in (x, w)]
    return fixed_point.decode(ring.matmul(*codes), 48)

  def backward(saved, g):
    x, w = saved
    return layer(g, w.T), x.T @ g

  layer.defvjp(lambda x, w: (layer(x, w), (x, w)), backward)
  x, w = jnp.arange(6.0).reshape(2, 3), jnp.arange(12.0).reshape(3, 4) / 8
  loss = lambda f, x, w: (f(x, w) ** 2).sum()
  got = jax.jit(jax.grad(functools.partial(loss, layer), (0, 1)))(x, w)
  want = jax.grad(functools.partial(loss, jnp.matmul), (0, 1))(x, w)
  for one, other in zip(got, want):
    assert one.dtype == jnp.float32
    np.testing.assert_allclose(one, other, rtol=1e-6)


def test_inside_a_64_bit_program():
  with jax.enable_x64(True):
    out = jax.jit(jax.vmap(kernels.matmul, (0, None)))(np.stack([A, A]), B)
  np.testing.assert_array_equal(out[0], WANT)
  with pytest.raises(TypeError, match='enable_x64'):
    kernels.matmul(A, B)


def test_second_call_does_not_compile():
  ring.matmul(A, B)
  size = ring._matmul._cache_size()
  ring.matmul(A, B)
  assert ring._matmul._cache_size() == size


def test_bad_operands():
  with pytest.raises(TypeError, match='int32'):
    ring.matmul(A.astype(np.int32), B)
  with pytest.raises(TypeError, match='float64'):
    ring.add(A, np.ones(3))
  with pytest.raises(ValueError, match='do not fit'):
    ring.matmul(A, A)
  with pytest.raises(ValueError, match='do not fit'):
    ring.matmul(np.stack([A] * 2), np.stack([B] * 3))
  with pytest.raises(ValueError, match='do not fit'):
    ring.add(np.arange(3), np.arange(2))
  with pytest.raises(TypeError, match='array .*, not NumPy scalar int64'):
    ring.sub(A, np.int64(1))
  with pytest.raises(ValueError, match='int8_rows'):
    ring.matmul(A, B, 'fast')
  x, w = draw(0, 1, 3, 3, 2), draw(0, 2, 2, 2, 3)
  with pytest.raises(ValueError, match='3 groups'):
    ring.conv(x, w, groups=3)
  with pytest.raises(ValueError, match='strides'):
    ring.conv(x, w, strides=0)
  with pytest.raises(ValueError, match='reaching over 5'):
    ring.conv(x, w, padding='VALID', dilation=4)


@pytest.mark.parametrize('padding', [
    (1, 1), ((1, 1),), ((0.5, 1.7), (1, 1)), ((1, 1), 2), 1.0, 'same',
])
def test_a_padding_that_is_none_is_refused(padding):
  """Numbers that are no integers were cut down to some."""
  with pytest.raises(ValueError, match='padding must be .*SAME'):
    convolution.window((1, 3, 3, 2), (2, 2, 2, 3), padding=padding)


def test_paddings_are_integers_of_any_kind():
  x, w = draw(0, 1, 3, 3, 2), draw(0, 2, 2, 2, 3)
  for padding in (np.int64(1), 1, np.ones((2, 2), int)):
    win = convolution.window(x.shape, w.shape, padding=padding)
    assert win.padding == ((1, 1), (1, 1))
  with pytest.raises(ValueError, match='kernel must be an integer of at least'):
    ring.conv(x, w[:0])


@pytest.mark.parametrize('x_shape, w_shape', [
    ((1, 3), (3, 4)), ((1, 3, 2), (2, 2, 2, 3)), ((1, 3, 3, 2), (2, 2, 3)),
])
def test_a_kernel_has_as_many_axes_as_the_images(x_shape, w_shape):
  """One at least."""
  with pytest.raises(ValueError, match='conv needs .*, out]; got '):
    convolution.window(x_shape, w_shape)


def _rounded(a, b):
  """A product that lost its low bits, as emulated float64 might."""
  return schemes.SCHEMES['naive'].product(a, b) & -16


def test_an_inexact_scheme_is_passed_over_and_logged(monkeypatch, caplog):
  bad = SCHEMES['outer']._replace(product=_rounded)
  monkeypatch.setitem(SCHEMES, 'outer', bad)
  dispatch.exact.cache_clear()
  with caplog.at_level(logging.WARNING):
    chosen = dispatch._first('cpu', ('outer', 'karatsuba'))
  dispatch.exact.cache_clear()
  assert chosen.name == 'karatsuba'
  assert 'outer is not used on cpu' in caplog.text
  assert 'check values are wrong' in caplog.text


def _refused(a, b):
  raise NotImplementedError('no int8 here')


def test_a_scheme_a_backend_refuses_is_passed_over():
  bad = SCHEMES['int8_rows']._replace(product=_refused)
  assert 'no int8 here' in (dispatch.fault('cpu', bad) or '')


def test_float_length_is_not_too_long():
  """One more doubling of it would not be exact, so the bound is not idle."""
  bad = SCHEMES['karatsuba']._replace(length=4 * SCHEMES['karatsuba'].length)
  a = np.full((1, bad.length), FLOAT_WORST, np.int64)
  a[:, 0] += 1
  with jax.enable_x64(True):
    out = jax.jit(functools.partial(schemes.matmul, bad))(a, a.T.copy())
  assert int(out[0, 0]) != int(dispatch.wrap_matmul(a, a.T.copy())[0, 0])


@pytest.mark.slow
def test_dispatch_takes_the_race_and_the_shape():
  assert dispatch.for_matmul('cpu', 4, 4, 4).name == 'naive'
  fastest = dispatch.ranking('cpu')[0]
  assert dispatch.for_matmul('cpu', 512, 512, 512).name == fastest
  assert set(dispatch.ranking('cpu')) == {'outer', 'int8_rows', 'karatsuba'}
  assert dispatch.for_conv('cpu', 50176, 25, 6, 6).name == 'naive'
  one = 'outer' if dispatch._outer_wins_of_one_channel('cpu') else 'naive'
  assert dispatch.for_conv('cpu', 50176, 25, 1, 6).name == one


def test_outer_products_of_many_columns():
  """Four tiles, the last not full; a last step half full."""
  a, b = draw(0, 3, 24), draw(1, 24, 600)
  np.testing.assert_array_equal(
      ring.matmul(a, b, 'outer'), dispatch.wrap_matmul(a, b))


def test_a_whole_program_of_64_bits_with_wide_vectors():
  """Compiled by `mpc.jit`, whatever the caller's types; not inside a jit."""
  rng = np.random.default_rng(3)
  a, b = (rng.integers(-(2**63), 2**63 - 1, (20, 20)) for _ in range(2))
  compiled = mpc.jit(kernels.matmul, compiler_options={})
  np.testing.assert_array_equal(compiled(a, b), dispatch.wrap_matmul(a, b))
  if jax.default_backend() == 'cpu':  # The only one for which options are set.
    with pytest.raises(ValueError, match='compiler_options'):
      jax.jit(mpc.jit(lambda x: x + 1))(1.0)


def test_karatsuba_takes_sums_that_are_too_long_in_pieces():
  """Of its worst odd digits, twice as many as one piece can have, less one."""
  one = -(2**21) + (1 - 2**19) * 2**22
  a = np.full((1, 2619), one, np.int64)
  assert int(ring.matmul(a, a.T, 'karatsuba')[0, 0]) == wrap(2619 * one * one)
