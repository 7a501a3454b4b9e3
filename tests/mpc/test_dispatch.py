"""Who is chosen at and beside each bound, by which race, after which check.

No product is made but the self-check's own.
"""
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax import target
from vfljax.mpc import conv as convolution
from vfljax.mpc import dispatch, kernels, racing, x64
from vfljax.mpc.schemes import SCHEMES

RACE = ('karatsuba', 'int8_rows', 'outer')


@pytest.fixture
def all_exact(monkeypatch):
  """A machine on which everything is exact and karatsuba has won the race."""
  monkeypatch.setattr(dispatch, 'exact', lambda platform, name: True)
  monkeypatch.setattr(dispatch, 'ranking', lambda platform: RACE)
  monkeypatch.setattr(
      dispatch, '_outer_wins_of_one_channel', lambda platform: False
  )


@pytest.mark.parametrize('m, k, n, name', [
    (32, 32, 32, 'naive'),  # 2^15 products are few,
    (32, 32, 33, 'karatsuba'),  # more are not,
    (1000, 512, 16, 'naive'),  # but where the right side has 2^13 elements
    (1000, 513, 16, 'karatsuba'),
    (1000, 481, 17, 'karatsuba'),  # and 16 columns.
])
def test_small_products_on_a_cpu_are_xlas_own(all_exact, m, k, n, name):
  assert dispatch.for_matmul('cpu', m, k, n).name == name


@pytest.mark.parametrize('taps, c, o, name', [
    (16, 8, 31, 'naive'), (16, 8, 32, 'karatsuba'),
    (16, 16, 16, 'karatsuba'),  # 2^12 weights, many channels on both sides,
    (256, 16, 1, 'naive'), (17, 15, 16, 'naive'),  # on one alone.
    (512, 8, 1, 'naive'), (513, 8, 1, 'karatsuba'),  # 2^12 weights or more.
    (25, 1, 6, 'naive'),
])
def test_small_kernels_on_a_cpu_are_xlas_own(all_exact, taps, c, o, name):
  assert dispatch.for_conv('cpu', 50176, taps, c, o).name == name


@pytest.mark.parametrize('wins', [False, True])
def test_one_channel_takes_outer_products_where_they_won(
    all_exact, monkeypatch, wins
):
  monkeypatch.setattr(
      dispatch, '_outer_wins_of_one_channel', lambda platform: wins
  )
  chosen = lambda c, o: dispatch.for_conv('cpu', 50176, 9, c, o).name
  assert chosen(1, 6) == ('outer' if wins else 'naive')
  assert chosen(1, 1) == chosen(2, 6) == 'naive'


def test_few_columns_are_cheaper_in_one_dot(all_exact, monkeypatch):
  """Where int8 won."""
  monkeypatch.setattr(dispatch, 'ranking', lambda platform: ('int8_rows',))
  chosen = lambda n: dispatch.for_matmul('cpu', 1000, 1000, n).name
  assert [chosen(n) for n in (16, 17)] == ['int8_toeplitz', 'int8_rows']


def test_few_products_on_a_tpu(all_exact):
  matmul = lambda *sizes: dispatch.for_matmul('tpu', *sizes).name
  conv = lambda *sizes: dispatch.for_conv('tpu', *sizes).name
  few, many = 'int8_toeplitz', 'int8_merged'
  assert matmul(1 << 9, 1 << 9, 1 << 9) == few  # 2^27 of them.
  assert matmul(1 << 9, 1 << 9, (1 << 9) + 1) == many
  assert conv(1 << 16, 8, 16, 16) == few
  assert conv((1 << 16) + 1, 8, 16, 16) == many


def test_no_gpu_gets_digits(all_exact):
  """Whatever the size: an H100 got them wrong at odd shapes."""
  for size in (4, 1 << 12):
    assert dispatch.for_matmul('gpu', size, size, size).name == 'naive'
    assert dispatch.for_conv('gpu', size, 9, size, size).name == 'patches'


@pytest.fixture
def clock(monkeypatch):
  """Has rivals take as many seconds as they give."""
  now, ran = [1e3], []

  def compiled(platform, fn, *arguments):
    def call():
      seconds = fn(*arguments)
      ran.append(seconds)
      # One call is undisturbed, not the first; the fast are disturbed most.
      alone = ran.count(seconds) % (1 + racing._TURNS) == 3
      now[0] += seconds if alone else 30 - seconds

    return call

  monkeypatch.setattr(racing, 'compiled', compiled)
  monkeypatch.setattr(racing.time, 'perf_counter', lambda: now[0])


def test_the_fastest_comes_first(clock):
  order = lambda **rivals: racing.order('cpu', rivals, 2.0)
  slow, medium, fast = lambda x: 3 * x, lambda x: 2 * x, lambda x: x
  assert order(a=slow, b=medium, c=fast) == ('c', 'b', 'a')
  assert order(a=medium, b=fast, c=slow) == ('b', 'a', 'c')


def test_a_call_has_the_functions_results_with_all_their_bits():
  pair = np.full((2, 2), 2**62 + 1), np.eye(2, dtype=np.int64)
  call = racing.compiled('cpu', lambda a, b: dict(sum=a + b), *pair)
  np.testing.assert_array_equal(call()['sum'], pair[0] + pair[1])


@pytest.fixture
def raced(monkeypatch):
  """Who raced, on arrays of which shapes, if 'karatsuba' is not exact."""
  found = []

  def order(platform, rivals, *arguments):
    assert platform == 'cpu'
    with jax.enable_x64(True):
      for fn in rivals.values():
        outs = jax.eval_shape(fn, *arguments)
      found.append((set(rivals), [x.shape for x in arguments], outs.shape))
    return tuple(reversed(rivals))

  monkeypatch.setattr(racing, 'order', order)
  monkeypatch.setattr(dispatch, 'exact', lambda _, name: name != 'karatsuba')
  return found


def test_exact_schemes_race_on_a_product_of_a_product(raced):
  assert dispatch.ranking.__wrapped__('cpu') == ('int8_rows', 'outer')
  assert raced == [(
      {'outer', 'int8_rows'}, [(128, 512), (512, 256), (256, 128)], (128, 128)
  )]


def test_one_channel_has_a_race_of_its_own(raced, monkeypatch):
  wins = dispatch._outer_wins_of_one_channel.__wrapped__
  assert not wins('cpu')  # 'naive' is named last, and comes first here.
  assert raced == [(
      {'outer', 'naive'}, [(16, 28, 14, 1), (5, 5, 1, 6)], (16, 28, 14, 6)
  )]
  monkeypatch.setattr(racing, 'order', lambda *rest: ('outer', 'naive'))
  assert wins('cpu')
  monkeypatch.setattr(dispatch, 'exact', lambda *rest: False)
  assert not wins('cpu')


@pytest.mark.parametrize('value', [
    -(2**63), -1, 2**63 - 1, 0x7F7F7F7F7F7F7F80,  # Whose digits are all -128.
])
def test_the_self_check_notices_one_extreme_taken_for_another(value):
  """As where a conversion stops short of an end, or a digit has no -128."""

  def product(a, b):
    other = value + 1 if value < 2**63 - 1 else value - 1
    return SCHEMES['naive'].product(jnp.where(a == value, other, a), b)

  bad = SCHEMES['naive']._replace(product=product)
  assert 'check values are wrong' in (dispatch.fault('cpu', bad) or '')


@pytest.fixture
def told(monkeypatch):
  """What the dispatcher is asked: (platform, sizes) of each product."""
  calls = []

  def asked(platform, *sizes):
    calls.append((platform, sizes))
    return SCHEMES['int8_rows']

  monkeypatch.setattr(dispatch, 'for_matmul', asked)
  monkeypatch.setattr(dispatch, 'for_conv', asked)
  return calls


@pytest.mark.parametrize('groups', [1, 2])
def test_the_dispatcher_is_told_the_product_that_is_made(told, groups):
  """Rows, taps and channels of each: of a batch of 5 with 4 taps in 6 x 7."""
  ints = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.int64)
  x, w, g = ints(5, 6, 7, 4), ints(2, 2, 4 // groups, 8), ints(5, 3, 4, 8)
  win = convolution.window(x.shape, w.shape, 2, 'SAME', 1, groups)
  with jax.enable_x64(True):
    for fn in (
        lambda x, w, g: kernels.conv(x, w, 2, 'SAME', 1, groups),
        lambda x, w, g: kernels.conv_input_gradient(g, w, x.shape, win),
        lambda x, w, g: kernels.conv_weight_gradient(x, g, (2, 2), win),
    ):
      jax.eval_shape(fn, x, w, g)
  c, o = 4 // groups, 8 // groups
  assert [sizes for _, sizes in told] == [
      (5 * 3 * 4, 4, c, o),  # Rows are positions of the result,
      (5 * 6 * 7, 4, o, c),
      (4 * c, 5 * 3 * 4, o),  # or what a patch has.
  ]


def test_a_compilers_options_come_before_ours(monkeypatch):
  told = []
  monkeypatch.setattr(
      jax, 'jit', lambda fn, **options: told.append(options) or fn
  )
  name, = x64.WIDE
  with target.tracing_for('cpu'):
    x64.jit(len)
    x64.jit(len, compiler_options={name: 128, 'other': 1})
  assert told == [
      dict(compiler_options={name: 512}),
      dict(compiler_options={name: 128, 'other': 1}),
  ]


@pytest.mark.parametrize('said, asked', [('tpu', 'tpu'), ('', 'gpu')])
def test_a_scheme_is_chosen_for_where_it_will_run(told, said, asked):
  """Which may be said; else the target knows."""
  def all_of(x, w):
    win = convolution.window(x.shape, w.shape)
    out = kernels.conv(x, w, platform=said)
    kernels.conv_weight_gradient(x, out, (3, 3), win, platform=said)
    kernels.conv_input_gradient(out, w, x.shape, win, platform=said)
    kernels.matmul(x[0, :, :, 0], x[0, :, :, 0], platform=said)

  with target.tracing_for('gpu'), jax.enable_x64(True):
    of = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.int64)
    jax.eval_shape(all_of, of(1, 4, 4, 1), of(3, 3, 1, 2))
  assert [where for where, _ in told] == [asked] * 4


@pytest.mark.parametrize('said', ['no kernel', 'no kernel\nand its trace'])
def test_a_refusal_is_told_in_its_first_line(monkeypatch, said):
  def refuses(platform, scheme):
    raise RuntimeError(said)

  monkeypatch.setattr(dispatch, '_wrong', refuses)
  found = dispatch.fault('cpu', SCHEMES['naive'])
  assert found == 'it fails: RuntimeError: no kernel'
