"""Ring products where there is no CPU: what is chosen, and why it holds."""
import logging
import re

import jax
from jax import export, lax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax import target
from vfljax.mpc import digits, dispatch, kernels, ring
from vfljax.mpc.schemes import SCHEMES

INT8 = ['int8_rows', 'int8_merged', 'int8_toeplitz']
DIGITS_128 = 0x7F7F7F7F7F7F7F80  # Every base-256 digit is -128.
PLATFORMS = dict(gpu=('cuda', 'rocm'), tpu=('tpu',))
PRODUCT = r'stablehlo\.(dot_general|convolution)'


def saturating(a, b, dtype=None):
  """As a GPU's matrix unit may: a sum stops at the ends of int32."""
  assert dtype == jnp.int32
  wide = lax.dot_general(
      a.astype(jnp.int64), b.astype(jnp.int64),
      (((a.ndim - 1,), (b.ndim - 2,)), ((), ())),
  )
  return jnp.clip(wide, -(2**31), 2**31 - 1).astype(jnp.int32)


def test_no_sum_of_eight_digits_reaches_the_end_of_int32():
  assert digits.INT8_LENGTH * 8 * 128 * 128 < 2**31
  assert (digits.INT8_LENGTH + 1) * 8 * 128 * 128 == 2**31


@pytest.mark.parametrize('name', INT8)
def test_the_longest_product_is_exact_where_sums_saturate(name, monkeypatch):
  """At the largest digits: the closed form, K (2^7 + 2^15 + ...)^2 mod 2^64."""
  monkeypatch.setattr(digits, 'dot', saturating)
  length = digits.INT8_LENGTH
  a = np.full((1, length), DIGITS_128, np.int64)
  with jax.enable_x64(True):
    out = jax.jit(lambda *pair: SCHEMES[name].product(
        *map(digits.split_int8, pair)
    ))(a, a.T)
  want = length * sum(-128 * 256**i for i in range(8)) ** 2
  assert int(out[0, 0]) == (want + 2**63) % 2**64 - 2**63


@pytest.mark.parametrize('name', ['int8_merged', 'int8_toeplitz'])
def test_the_self_check_notices_saturation(name, monkeypatch):
  monkeypatch.setattr(digits, 'dot', saturating)
  assert dispatch.fault('cpu', SCHEMES[name]) is None
  longer = SCHEMES[name]._replace(length=digits.INT8_LENGTH + 1)
  assert 'check values are wrong' in (dispatch.fault('cpu', longer) or '')


def test_where_there_is_no_cpu_the_check_has_many_results(monkeypatch):
  """All of them are compared, and odd shapes beside them."""
  seen = []

  def compiled(platform, scheme, *pairs):
    def call():
      seen.append([(a.shape, b.shape) for a, b in pairs])
      large, *odd = (dispatch.wrap_matmul(*pair) for pair in pairs)
      large[-1, -1] += 1
      odd[4] *= 2  # What an H100 made of it by int8 digits.
      return [large, *odd]

    return call

  monkeypatch.setattr(dispatch.racing, 'compiled', compiled)
  # Where tests on an H100 found digits wrong.
  seen_wrong = (3, 5, 4), (16, 1, 16), (1, 7, 300), (130, 33, 257), (2880, 9, 2)
  odd = [((m, k), (k, n)) for m, k, n in seen_wrong]
  size = sum(m * n for m, _, n in seen_wrong)
  said = dispatch.fault('gpu', SCHEMES['outer']) or ''
  assert seen == [[((1536, 100), (100, 1536)), *odd]]
  assert said == f'5761 of {1536 * 1536 + size} check values are wrong'
  dispatch.fault('gpu', SCHEMES['int8_toeplitz']._replace(length=100))
  # It has eight results for each.
  assert seen[-1] == [((1536, 100), (100, 192)), *odd]


def test_odd_shapes_are_checked_at_extremes():
  for a, b in dispatch._odd_problems():
    assert np.isin(a.ravel()[::5], dispatch._EXTREMES).all()
    assert np.isin(b.ravel()[::5], dispatch._EXTREMES).all()
    assert (a != 0).all() and (b != 0).all()
  others = np.delete(a.ravel(), np.s_[::5])  # Of the largest, from end to end.
  assert others.min() < -(2**63) * 0.99 and others.max() > 2**63 * 0.99


@pytest.mark.parametrize('platform', PLATFORMS)
@pytest.mark.parametrize('size', [4, 40, 512, 600])  # 512^3 = 2^27: small.
def test_nothing_is_chosen_that_does_not_compile_there(platform, size):
  """int64 products of matrices do on GPUs; convolutions nowhere else. No GPU
  gets digits, which an H100 got wrong."""
  matmul = dispatch.for_matmul(platform, size, size, size)
  conv = dispatch.for_conv(platform, size, 9, size, size)
  if platform == 'gpu':
    assert (matmul.name, conv.name) == ('naive', 'patches')
  else:
    large = 'int8_merged'
    assert matmul.name == ('int8_toeplitz' if size < 600 else large)
    assert conv.name == ('int8_toeplitz' if size < 200 else large)
  assert matmul.rows is None and conv.positions == 1 << 17  # Never in blocks.


def text_for(platform, fn, *shapes):
  """What XLA is given."""
  with jax.enable_x64(True):
    made = [jax.ShapeDtypeStruct(s, jnp.int64) for s in shapes]
    return export.export(
        jax.jit(fn), platforms=PLATFORMS[platform]
    )(*made).mlir_module()


@pytest.mark.parametrize('platform, type_', [('gpu', 'xi64>'), ('tpu', 'xi8>')])
def test_exported_products_are_of_what_is_exact_there(platform, type_):
  def both(a, b, x, w):
    return (
        kernels.matmul(a, b, platform=platform),
        kernels.conv(x, w, platform=platform),
    )

  text = text_for(
      platform, both, (512, 512), (512, 513), (2, 5, 5, 1), (3, 3, 1, 4)
  )
  lines = [x for x in text.splitlines() if re.search(PRODUCT, x)]
  assert len(lines) == (2 if platform == 'gpu' else 9), lines
  other = 'xi8>' if platform == 'gpu' else 'xi64>'
  assert all(type_ in x and other not in x for x in lines)
  assert not any('convolution' in x for x in lines)


def test_what_cannot_be_checked_is_said(caplog):
  dispatch.exact.cache_clear()
  with caplog.at_level(logging.WARNING):
    dispatch.for_matmul('tpu', 4, 4, 4)
  dispatch.exact.cache_clear()
  assert 'int8_toeplitz is unchecked: no tpu is here' in caplog.text


def test_where_all_else_is_refused_outer_products_remain(monkeypatch):
  monkeypatch.setattr(dispatch, 'exact', lambda _, name: name == 'outer')
  for platform in PLATFORMS:
    assert dispatch.for_matmul(platform, 4, 4, 4).name == 'outer'
    assert dispatch.for_conv(platform, 10, 9, 3, 4).name == 'outer'
  monkeypatch.setattr(dispatch, 'exact', lambda *_: False)
  with pytest.raises(RuntimeError, match='no scheme multiplies int64'):
    dispatch.for_matmul('gpu', 4, 4, 4)


def test_a_length_past_the_bound_is_cut():
  """The worst digits, in two blocks, through the whole way."""
  length = digits.INT8_LENGTH + 1
  a = np.full((1, length), DIGITS_128, np.int64)
  want = length * sum(-128 * 256**i for i in range(8)) ** 2
  for name in INT8:
    out = ring.matmul(a, a.T, name)
    assert int(out[0, 0]) == (want + 2**63) % 2**64 - 2**63


def test_who_names_a_device_gets_what_is_meant_for_it():
  """Also of arrays that are here: without the name this is a product of int64,
  which XLA does not have for TPUs."""
  a = jnp.ones((2, 3), jnp.int32)
  with target.tracing_for('tpu'):
    assert dispatch.platform_of(a, np.ones(3)) == 'tpu'
    platform = dispatch.platform_of()
    assert dispatch.for_matmul(platform, 2, 3, 2).name.startswith('int8')
  assert dispatch.platform_of(a) == jax.default_backend()


def test_of_arrays_that_are_nowhere_the_default_device_decides(monkeypatch):
  """By its name or itself; without one it is what JAX takes first."""
  monkeypatch.setattr(jax, 'default_backend', lambda: 'gpu')
  assert dispatch.platform_of(np.ones(3)) == 'gpu'
  for device, platform in (('tpu', 'tpu'), (jax.devices('cpu')[0], 'cpu')):
    with jax.default_device(device):
      assert dispatch.platform_of(np.ones(3)) == platform
