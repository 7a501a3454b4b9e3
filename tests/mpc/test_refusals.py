"""What secret sharing refuses: numbers, keys and shapes that make no sense."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax.mpc import (
    beaver, bilinear, conv, fixed_point, kernels, one_sided, prg, ring,
    sharing, to_active, wire, x64,
)

NOT_WHOLE = (1.5, True, np.nan)


def zeros(*shape):
  return np.zeros(shape, np.int64)


def said(**fields):
  given = dict(name='E', sender='passive', receiver='active', flight=1)
  return wire.Message(zeros(3), **given | fields)


@pytest.mark.parametrize('network, why', [
    (dict(bandwidth=0), 'bandwidth must be a number above 0'),
    (dict(bandwidth=-1), 'bandwidth must be a number above 0'),
    (dict(bandwidth=np.nan), 'bandwidth must be a number above 0'),
    (dict(bandwidth=True), 'bandwidth must be a number above 0'),
    (dict(latency=-1e-9), 'latency must be a number of at least 0'),
    (dict(latency=np.nan), 'latency must be a number of at least 0'),
    (dict(latency='1 ms'), 'latency must be a number of at least 0'),
])
def test_a_network_that_cannot_be(network, why):
  for transcript in ((), (said(),)):
    with pytest.raises(ValueError, match=why):
      wire.seconds(transcript, wire.Network(**network))
  assert wire.seconds((said(),), wire.Network(latency=0)) > 0
  assert wire.seconds((said(),), wire.Network(np.inf, 0.5)) == 0.5


def test_a_message_has_a_flight_and_a_width():
  for flight in (-1, *NOT_WHOLE):
    with pytest.raises(ValueError, match='flight must be an integer'):
      said(flight=flight)
  for width in (0, -1, *NOT_WHOLE):
    with pytest.raises(ValueError, match='width must be an integer'):
      said(width=width)
  assert wire.count((said(flight=0),)).offline_bytes == 24
  assert jax.tree.map(lambda x: x, said(width=1)).size == 3


def test_fraction_bits_of_a_range():
  for bits in (-1, 127, *NOT_WHOLE):
    with pytest.raises(ValueError, match='fraction bits must be an integer'):
      fixed_point.limit(bits)
  assert (fixed_point.limit(0), fixed_point.limit(126)) == (2.0**63, 2.0**-63)


@pytest.mark.parametrize('x', [
    '1.5', ['1.5'], [b'1'], np.asarray(['2020-01-01'], 'M8[D]'),
])
def test_texts_and_dates_have_no_code(x):
  """NumPy takes '1.5' for 1.5 and a date for its days since 1970."""
  with pytest.raises(TypeError, match='x must be real'):
    fixed_point.encode(x)


def test_keys_have_no_code():
  with pytest.raises(TypeError, match='x must be real; got key'):
    fixed_point.encode(jax.random.key(0))


def raw(*shape):
  return np.zeros(shape, np.uint32)


KEYS = {
    'an int': (5, ValueError, 'key must be a JAX key, as jax'),
    'None': (None, ValueError, 'key must be a JAX key.* got None'),
    'floats': (np.zeros(2), ValueError, 'key must be a JAX key'),
    'several': (raw(2, 2), ValueError, 'key must be one key'),
    'keys': (None, ValueError, 'key must be one key'),
    "chacha's": (raw(8), TypeError, 'not raw one of 8 words'),
    "rbg's": (None, TypeError, 'takes a threefry key, not rbg'),
}


@pytest.mark.parametrize('name', KEYS)
def test_what_is_no_threefry_key(name):
  """Of an array of keys the words were drawn as of one, without a word."""
  value, error, why = KEYS[name]
  if name == 'keys':
    value = jax.random.split(jax.random.key(0))
  elif name == "rbg's":
    value = jax.random.key(0, impl='rbg')
  for run in (
      lambda: sharing.share(value, zeros(3)),
      lambda: x64.entry(prg.THREEFRY.words)(value, (2,)),
      lambda: one_sided.seeds(prg.THREEFRY, value),
  ):
    with pytest.raises(error, match=why):
      run()


def test_raw_keys_and_mapped_ones_are_keys():
  typed = jax.random.key(3, impl='threefry2x32')
  share = lambda key: sharing.share(key, zeros(3))
  both = jnp.stack([jax.random.key_data(typed)] * 2)
  many = jax.vmap(share)(both)
  np.testing.assert_array_equal(many[1], share(typed))


def test_a_generator_goes_by_its_name_or_itself():
  for name, generator in prg.REGISTRY.items():
    assert prg.get(name) is prg.get(generator) is generator
  with pytest.raises(ValueError, match="no PRG 'rbg'; there are threefry, cha"):
    prg.get('rbg')


def test_a_stream_is_numbered_and_its_words_counted():
  for generator, key in (
      (prg.THREEFRY, jax.random.key(0)),
      (prg.CHACHA20, prg.chacha20_key(bytearray(32))),
  ):
    with pytest.raises(TypeError, match='numbered by an integer, not bool'):
      generator.fold(key, True)
    for shape in ((-1,), (1.5,), (-2, -3), (True,)):
      with pytest.raises(ValueError, match='A size of the shape must be'):
        x64.entry(generator.words)(key, shape)
    assert x64.entry(generator.words)(key, (0, 2)).shape == (0, 2)
  with pytest.raises(ValueError, match='of 32 bytes, not 256'):
    prg.chacha20_key(np.zeros(32))


def test_parties_that_are_not_there():
  triple = x64.entry(lambda parties: beaver.triple(
      prg.THREEFRY, jax.random.key(0), jnp.matmul, (2, 3), (3, 2), parties
  ))
  for parties in (0, 1, *NOT_WHOLE):
    with pytest.raises(ValueError, match='parties must be an integer of at le'):
      triple(parties)
  reveal = x64.entry(beaver.reveal)
  for to in (-1, 2, *NOT_WHOLE):
    with pytest.raises(ValueError, match=r'to must be an integer in \[0, 1\]'):
      reveal(zeros(2, 3), to)
  with pytest.raises(TypeError, match='y must be an int64 array'):
    reveal(np.zeros((2, 3)), 0)


def test_bits_that_are_dropped():
  for drop in (-8, 57, *NOT_WHOLE):
    for run, count in ((one_sided.answer, 3), (one_sided.open_product, 4)):
      with pytest.raises(ValueError, match='drop must be an integer'):
        run(np.matmul, *[zeros(2, 2)] * count, drop)
  assert not one_sided.answer(np.matmul, *[zeros(2, 2)] * 3, 56).any()
  assert not one_sided.open_product(np.matmul, *[zeros(2, 2)] * 4, 56).any()


def test_what_the_active_party_keeps_is_of_the_input():
  f, kernel = bilinear.dense((2, 3), (3, 4)), zeros(3, 4)
  shares = to_active.Shares(kernel, kernel)
  p = prg.THREEFRY
  with jax.enable_x64(True):
    seeds = one_sided.seeds(p, jax.random.key(0))
    c, _ = to_active.deal(p, seeds, (0, 0, 0), f)
    with pytest.raises(ValueError, match=r'e must be of shape \(2, 3\)'):
      to_active.backward(f, zeros(2, 4), zeros(1, 3), shares, c)
    new, *_ = to_active.backward(f, zeros(2, 4), zeros(2, 3), shares, c)
  assert new.passive.shape == (3, 4)


def test_a_window_of_whole_numbers():
  x, w = zeros(1, 4, 2), zeros(3, 2, 2)
  with pytest.raises(ValueError, match=r'positive int or 1 of .*not \(1, 2\)'):
    ring.conv(x, w, (1, 2))
  for groups in (True, 1.0):
    with pytest.raises(ValueError, match='conv: groups must be an integer'):
      ring.conv(x, w, groups=groups)
  for padding in (True, ((True, 1),)):
    with pytest.raises(ValueError, match='padding must be SAME, VALID, an int'):
      ring.conv(x, w, padding=padding)


WINDOW = conv.window((1, 4, 2), (3, 2, 5))
OUTPUT = r"g must be shaped as the output of x .*; it is"


@pytest.mark.parametrize('g, x_shape', [
    (zeros(1, 4, 5), (1, 9, 2)), (zeros(1, 4, 5), (7, 4, 2)),
    (zeros(1, 3, 5), (1, 4, 2)), (zeros(1, 4, 6), (1, 4, 2)),
])
def test_an_input_gradient_of_another_convolution(g, x_shape):
  """What was missing was padded with zeros, and what was too much cut."""
  with pytest.raises(ValueError, match=OUTPUT):
    ring.conv_input_gradient(g, zeros(3, 2, 5), x_shape, WINDOW)


def test_a_weight_gradient_of_another_convolution():
  for x, g in (
      (zeros(1, 4, 2), zeros(1, 3, 5)), (zeros(3, 4, 2), zeros(1, 4, 5)),
  ):
    with pytest.raises(ValueError, match=OUTPUT):
      ring.conv_weight_gradient(x, g, (3,), WINDOW)
  wide = WINDOW._replace(groups=2)
  with pytest.raises(ValueError, match='2 groups of 1 input channels do not'):
    ring.conv_weight_gradient(zeros(1, 4, 3), zeros(1, 4, 5), (3,), wide)
  with pytest.raises(ValueError, match='2 input channels do not fit x with 3'):
    ring.conv_input_gradient(
        zeros(1, 4, 5), zeros(3, 2, 5), (1, 4, 3), WINDOW
    )


@pytest.mark.parametrize('kind', [np.int32, np.float64])
def test_kernels_take_ring_elements(kind):
  """int32 was multiplied mod 2^32, and floats as floats."""
  a, x, w = (np.zeros(s, kind) for s in ((2, 2), (1, 4, 2), (3, 2, 2)))
  for run in (
      lambda: kernels.matmul(a, zeros(2, 2)),
      lambda: kernels.matmul(zeros(2, 2), a),
      lambda: kernels.conv(x, zeros(3, 2, 2)),
      lambda: kernels.conv(zeros(1, 4, 2), w),
      lambda: kernels.conv_input_gradient(x, zeros(3, 2, 2), (1, 4, 2), WINDOW),
      lambda: kernels.conv_weight_gradient(zeros(1, 4, 2), x, (3,), WINDOW),
  ):
    with pytest.raises(TypeError, match='must be an int64 array'):
      x64.entry(run)()


def test_shapes_that_are_none():
  for rows in (-1, *NOT_WHOLE):
    with pytest.raises(ValueError, match='A size of a shape must be an integ'):
      bilinear.dense((rows, 3), (3, 2))
    with pytest.raises(ValueError, match='A size of a shape must be an integ'):
      bilinear.convolution((rows, 4, 2), (3, 2, 2))
  assert bilinear.dense((0, 3), (3, 2)).y_shape == (0, 2)


@pytest.mark.parametrize('number', [2**32, -1, 2**40 + 7])
def test_an_array_of_a_number_names_no_other_stream(number):
  """Step 2^32, as NumPy counts it, had the masks of step 0."""
  for generator, key in (
      (prg.THREEFRY, jax.random.key(0)),
      (prg.CHACHA20, prg.chacha20_key(bytearray(32))),
  ):
    data = lambda found: np.asarray(
        found if found.dtype == np.uint32 else jax.random.key_data(found)
    )
    with pytest.raises(ValueError, match='numbered from 0 to 2.32 - 1'):
      generator.fold(key, np.asarray(number))
    np.testing.assert_array_equal(
        data(generator.fold(key, jnp.asarray(7))), data(generator.fold(key, 7))
    )


def test_a_window_may_be_of_arrays():
  """Its error was of what JAX can hash."""
  x, w = zeros(1, 5, 4, 1), zeros(2, 2, 1, 1)
  pads = np.asarray([[1, 0], [0, 2]])
  assert ring.conv(x, w, np.asarray([1, 2]), pads).shape == (1, 5, 3, 1)
  with pytest.raises(ValueError, match='strides must be an integer'):
    ring.conv(x, w, np.asarray([1.0, 2.0]))
