"""Fixed point, generators and shares, against Python, NumPy and RFC 8439."""
import fractions

from hypothesis import given, strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from vfljax.mpc import fixed_point, prg, sharing

LOW, HIGH = -(2**63), 2**63 - 1


@given(st.lists(st.floats(-(2.0**38), 2.0**38), min_size=8, max_size=8))
def test_encode_rounds_to_nearest_even(values):
  codes = np.asarray(fixed_point.encode(np.array(values), 24)).tolist()
  assert codes == [round(fractions.Fraction(v) * 2**24) for v in values]


def test_a_result_of_integers_would_be_cut_off():
  codes = fixed_point.encode(np.array([-0.99]))
  with pytest.raises(TypeError, match='dtype must be a float, not int32'):
    fixed_point.decode(codes, 24, jnp.int32)
  assert fixed_point.decode(codes, 24, jnp.bfloat16).dtype == jnp.bfloat16


@pytest.mark.parametrize('call', [
    lambda x: prg.THREEFRY.words(jax.random.key(0), (3,)),
    lambda x: prg.CHACHA20.words(prg.chacha20_key(bytes(32)), (3,)),
    lambda x: sharing.share_raw(jax.random.key(0), x),
    lambda x: fixed_point.encode_raw(jnp.asarray([300.0]), 24),
])
def test_half_a_word_hides_nothing(call):
  """In a 32-bit program a share would show the upper half of the value."""
  x = fixed_point.encode(np.array([1e9]))
  with pytest.raises(TypeError, match='needs 64-bit types'):
    call(x)


def test_decode_undoes_encode():
  x = np.random.default_rng(0).normal(size=(3, 50)).astype(np.float32)
  back = fixed_point.decode(fixed_point.encode(x, 40), 40)
  assert back.dtype == jnp.float32
  np.testing.assert_array_less(np.abs(np.asarray(back) - x), 2.0**-24)
  wide = fixed_point.decode(fixed_point.encode(x, 40), 40, np.float64)
  assert wide.dtype == np.float64
  np.testing.assert_array_less(np.abs(np.asarray(wide) - x), 2.0**-41 + 1e-20)


@pytest.mark.parametrize(
    'value, bits, bound, says',
    [
        (3.0, 62, None, ['x[1, 0] = 3', '|x| < 2', '1.5 times', 'bits <= 61']),
        (-(2.0**39), 24, None, ['= -5.49756e+11', '1 times', 'bits <= 23']),
        (200.0, 24, 128.0, ['|x| < 128', '1.56 times', 'bound above 200']),
        (np.nan, 24, None, ['= nan', 'No setting holds it']),
        (-np.inf, 24, None, ['= -inf', 'No setting holds it']),
        (1e30, 0, None, ['no number of fraction bits']),
    ],
)
def test_values_out_of_range_are_named(value, bits, bound, says):
  x = np.zeros((3, 2))
  x[1, 0] = value
  with pytest.raises(ValueError) as caught:
    fixed_point.encode(x, bits, bound)
  for part in says:
    assert part in str(caught.value)
  codes, flag = jax.jit(
      lambda x: fixed_point.encode_flagged(x, bits, bound)
  )(x)
  assert bool(flag) and codes.shape == x.shape
  x[1, 0] = 0
  assert not bool(fixed_point.encode_flagged(x, bits, bound)[1])


def test_the_advice_holds():
  x = 5e7
  for bits in (40, 50, 62):
    with pytest.raises(ValueError) as caught:
      fixed_point.encode(x, bits)
    fits = int(str(caught.value).split('bits <= ')[1].split()[0])
    fixed_point.encode(x, fits)
    with pytest.raises(ValueError):
      fixed_point.encode(x, fits + 1)


def test_traced_values_are_clipped_not_wrapped():
  codes = jax.jit(fixed_point.encode)(jnp.asarray([1e30, -1e30, jnp.nan, 1.0]))
  assert np.asarray(codes).tolist() == [
      2**63 - 1024, -(2**63) + 1024, 0, 1 << 24
  ]


@pytest.mark.parametrize('value, bound', [(1e30, None), (3.0, 0.5)])
def test_a_constant_is_looked_at_under_a_trace_too(value, bound):
  """It is there, whatever is traced around it."""
  for x in (np.array([0.1, value]), jnp.asarray([0.1, value], jnp.float32)):
    def encoded(shift, x=x):
      return fixed_point.encode(x, 24, bound)[0] + shift
    with pytest.raises(ValueError, match=r'x\[1\] = .* 1 of 2 values'):
      jax.eval_shape(encoded, jnp.int32(0))
  inside = jax.jit(lambda: fixed_point.encode(np.array([0.25]), 24, 0.5))()
  assert np.asarray(inside).tolist() == [1 << 22]


def test_a_bound_that_cannot_be_checked_is_refused():
  """Traced values beyond it would be clipped without a word."""
  x = jnp.asarray([0.1, 3.0])
  with pytest.raises(ValueError, match='use encode_flagged'):
    jax.jit(lambda x: fixed_point.encode(x, 24, 0.5))(x)
  with pytest.raises(ValueError, match=r'x\[1\] = 3 .* 1 of 2 values'):
    fixed_point.encode(x, 24, 0.5)
  codes, told = jax.jit(lambda x: fixed_point.encode_flagged(x, 24, 0.5))(x)
  assert bool(told) and np.asarray(codes).tolist() == [
      round(float(x[0]) * 2**24), 2**23
  ]


@given(st.floats(1e-6, 100), st.integers(0, 24))
def test_what_is_within_a_bound_has_its_own_code(bound, bits):
  """Rounding may take it to the bound; then it is not one step short of it."""
  inside = np.nextafter(bound, 0) * np.array([1, -1, 0.5])
  codes, told = fixed_point.encode_flagged(inside, bits, bound)
  assert not bool(told)
  expected = [round(float(v) * 2**bits) for v in inside]
  assert np.asarray(codes).tolist() == expected


def test_products_near_the_wrap_are_flagged():
  safe, near = np.array([2**62, -(2**62)]), np.array([0, -(2**62) - 1])
  assert not bool(fixed_point.decode_flagged(safe, 48)[1])
  value, flag = fixed_point.decode_flagged(near, 48)
  assert bool(flag) and value.dtype == jnp.float32


def test_the_range_is_open_at_both_ends():
  for bits in (24, 62):
    top = fixed_point.limit(bits)
    assert top == 2.0 ** (63 - bits)
    assert bool(fixed_point.encode_flagged(top, bits, 2 * top)[1])
    for value in (top, -top):
      with pytest.raises(ValueError, match='is outside the fixed-point range'):
        fixed_point.encode(value, bits)
      inside = np.nextafter(value, 0.0)
      assert int(fixed_point.encode(inside, bits)) == int(inside * 2.0**bits)
  for bound in (0.5, -0.5):
    assert bool(fixed_point.encode_flagged(bound, 24, 0.5)[1])


@given(st.lists(st.integers(LOW, HIGH), min_size=4, max_size=4))
def test_truncate_rounds_half_up(values):
  for bits in (0, 1, 24, 62):
    got = fixed_point.truncate(np.array(values, np.int64), bits)
    half = fractions.Fraction(1, 2)
    want = [(fractions.Fraction(v, 2**bits) + half).__floor__() for v in values]
    assert np.asarray(got).tolist() == want


def test_bits_out_of_range():
  for call in (fixed_point.encode, fixed_point.truncate):
    with pytest.raises(ValueError, match=r'in \[0, 62\]'):
      call(np.zeros(1, np.int64), 63)
  with pytest.raises(TypeError, match='int32'):
    fixed_point.decode(jnp.zeros(2, jnp.int32))


KEY = bytes(range(32))


def _nonce(text):
  return jnp.asarray(np.frombuffer(bytes.fromhex(text), '<u4'), jnp.uint32)


def _keystream(key, first, count, nonce):
  counters = jnp.arange(first, first + count, dtype=jnp.uint32)
  blocks = prg.chacha20_blocks(prg.chacha20_key(key), counters, nonce)
  return np.asarray(blocks).astype('<u4').tobytes()


def test_chacha20_block_of_rfc_8439_section_2_3_2():
  block = _keystream(KEY, 1, 1, _nonce('000000090000004a00000000'))
  assert block.hex() == (
      '10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e'
      'd2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e'
  )


def test_chacha20_encryption_of_rfc_8439_section_2_4_2():
  text = (
      b"Ladies and Gentlemen of the class of '99: If I could offer you only "
      b'one tip for the future, sunscreen would be it.'
  )
  stream = _keystream(KEY, 1, 2, _nonce('000000000000004a00000000'))
  cipher = bytes(a ^ b for a, b in zip(text, stream))
  assert cipher.hex() == (
      '6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0b'
      'f91b65c5524733ab8f593dabcd62b3571639d624e65152ab8f530c359f0861d8'
      '07ca0dbf500d6a6156a38e088a22b65e52bc514d16ccf806818ce91ab7793736'
      '5af90bbf74a35be6b40b8eedf2785e42874d'
  )


def test_chacha20_of_rfc_8439_appendix_a_1():
  zero = _nonce('00' * 12)
  blocks = _keystream(bytes(32), 0, 2, zero)
  assert blocks.hex() == (
      '76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7'
      'da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586'
      '9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed'
      '29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f'
  )


def test_chacha20_words_are_the_keystream():
  with jax.enable_x64(True):
    words = prg.CHACHA20.words(prg.chacha20_key(KEY), (5, 4))
  stream = _keystream(KEY, 0, 3, _nonce('00' * 12))
  want = np.frombuffer(stream, '<i8')[:20].reshape(5, 4)
  np.testing.assert_array_equal(words, want)


def test_a_chacha20_streams_key_is_the_start_of_a_block_of_its_own():
  """Two parties' releases have to draw the same masks from a seed."""
  key = prg.CHACHA20.fold(prg.chacha20_key(KEY), 0x0A0B0C0D)
  block = _keystream(KEY, 0, 1, _nonce('01000000' '0d0c0b0a' '00000000'))
  assert np.asarray(key).astype('<u4').tobytes() == block[:32]


@pytest.mark.parametrize('name, most', [
    ('threefry', 2**31 - 1), ('chacha20', 8 * (2**32 - 1)),
])
def test_a_stream_holds_as_many_words_as_it_has_counters(name, most):
  """More would begin from the front again; looked at without drawing."""
  generator = prg.get(name)
  with jax.enable_x64(True):
    draw = lambda count: jax.eval_shape(
        lambda: generator.words(_key(name), (count,))
    )
    assert draw(most).shape == (most,)
    with pytest.raises(ValueError, match=f'{most + 1} words are more than'):
      draw(most + 1)


def test_chacha20_wants_its_own_key():
  with pytest.raises(TypeError, match='256-bit'):
    sharing.share(jax.random.key(0), np.arange(3), prg='chacha20')
  with pytest.raises(ValueError, match='32 bytes'):
    prg.chacha20_key(b'short')
  with pytest.raises(ValueError, match='threefry'):
    sharing.share(jax.random.key(0), np.arange(3), prg='rot13')
  # The data of a jax.random key has the type, and a NumPy key the length.
  for key in (np.zeros(2, np.uint32), np.zeros(8, np.int32)):
    with jax.enable_x64(True), pytest.raises(TypeError, match='256-bit'):
      prg.CHACHA20.words(jnp.asarray(key), (3,))


def _key(name, number=0):
  if name == 'threefry':
    return jax.random.key(number)
  return prg.chacha20_key(number.to_bytes(32, 'little'))


def _pvalue(words, planes=8):
  """Chi-squared of the bytes of ring elements being uniform."""
  octets = np.ascontiguousarray(words).view(np.uint8).reshape(-1, planes)
  counts = np.stack([np.bincount(column, minlength=256) for column in octets.T])
  return stats.chisquare(counts, axis=1).pvalue.min()


@pytest.mark.parametrize('name', list(prg.REGISTRY))
def test_streams_differ_and_repeat(name):
  with jax.enable_x64(True):
    draw = lambda key: np.asarray(prg.get(name).words(key, (64,)))
    keys = [_key(name), _key(name, 1)]
    keys += [prg.stream(prg.get(name), keys[0], *path)
             for path in [(0,), (1,), (0, 0), (0, 1), (1, 0), (2**32 - 1,)]]
    drawn = [draw(key) for key in keys]
    np.testing.assert_array_equal(draw(keys[3]), drawn[3])
  assert len(np.unique(np.concatenate(drawn))) == 64 * len(keys)


@pytest.mark.parametrize('name', ['threefry', 'chacha20'])
def test_streams_are_numbered_up_to_32_bits(name):
  """A Python number beyond int32 is the same stream as that of a uint32."""
  generator = prg.get(name)
  key = _key(name)
  data = lambda key: np.asarray(
      key if name == 'chacha20' else jax.random.key_data(key)
  )
  for number in (2**31, 2**32 - 1):
    found = data(generator.fold(key, number))
    traced = jax.jit(generator.fold)(key, np.uint32(number))
    np.testing.assert_array_equal(found, data(traced))
    assert (found != data(generator.fold(key, number - 2**31))).any()
  for number in (-1, 2**32):
    with pytest.raises(ValueError, match='numbered from 0'):
      generator.fold(key, number)
  with pytest.raises(TypeError, match='not float32'):  # 1.9 would be 1.
    jax.eval_shape(generator.fold, key, np.float32(1.9))


@pytest.mark.parametrize(
    'name, parties', [('threefry', 2), ('threefry', 5), ('chacha20', 3)]
)
def test_shares_sum_to_the_secret_and_are_uniform(name, parties):
  x = np.zeros((40, 250), np.int64)
  x[:3, 0] = LOW, HIGH, -1
  shares = sharing.share(_key(name, 7), x, parties, name)
  assert shares.shape == (parties, 40, 250)
  np.testing.assert_array_equal(sharing.reconstruct(shares), x)
  np.testing.assert_array_equal(sharing.reconstruct(list(shares)), x)
  for some in shares:  # A constant secret, each share uniform all the same.
    assert _pvalue(np.asarray(some)) > 1e-4
  partial = np.asarray(sharing.reconstruct(shares[1:]))
  assert _pvalue(partial) > 1e-4  # All but one say nothing either.


def test_what_is_reconstructed_is_an_array_of_jax():
  """Also of NumPy's, and of a single share."""
  share = np.array([HIGH, 2])
  for shares in ([share], [share, share], share, share[None]):
    assert isinstance(sharing.reconstruct(shares), jax.Array)


def test_one_numbers_shares_are_a_vector():
  assert int(sharing.reconstruct(np.array([HIGH, 2, -1]))) == LOW
  with pytest.raises(ValueError, match=r'at least 1 axes; its shape is \(\)'):
    sharing.reconstruct(np.array(1))


def test_a_share_that_is_not_uniform_would_be_seen():
  rng = np.random.default_rng(0)
  small = rng.integers(-(2**50), 2**50, 10000, np.int64)
  assert _pvalue(small) < 1e-10


def test_sharing_is_traced_and_checked():
  x = np.arange(6).reshape(2, 3)
  key = jax.random.key(1)
  inside = jax.jit(lambda key: sharing.share(key, x, 3))(key)
  np.testing.assert_array_equal(inside, sharing.share(key, x, 3))
  np.testing.assert_array_equal(sharing.reconstruct(inside), x)
  batched = jax.vmap(lambda key: sharing.share(key, x, 3))(key[None])
  np.testing.assert_array_equal(batched[0], inside)
  for other in ('rbg', 'unsafe_rbg'):
    with pytest.raises(TypeError, match=f'not .*{other}'):
      sharing.share(jax.random.key(0, impl=other), x)
  with pytest.raises(ValueError, match='parties must be an integer of'):
    sharing.share(jax.random.key(0), x, 1)
  with pytest.raises(TypeError, match='float64'):
    sharing.share(jax.random.key(0), x * 1.0)
  with pytest.raises(ValueError, match='all parties'):
    sharing.reconstruct([])


def test_a_key_of_chacha20_is_not_among_its_words():
  key, generator = _key('chacha20'), prg.get('chacha20')
  with jax.enable_x64(True):
    words = np.asarray(generator.words(key, (64,))).view(np.uint32)
  for number in range(3):
    assert not np.isin(generator.fold(key, number), words).any()
