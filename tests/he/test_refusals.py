"""What encryption refuses: numbers that make no sense and were taken once."""
import numpy as np
import pytest

from vfljax.he import (
    acml, blindfl, ckks, encoding, hardy, local, masks, packing, sfa, spnn,
    views,
)
from vfljax.he.cipher import Arithmetic
from vfljax.he.encoding import Code
from vfljax.he.keys import PrivateKey, PublicKey
from vfljax.he.party import MASKED, Channel, Declared, Party

ZERO = encoding.integers([0], (1,))
ODD = 2**1024 + 1  # Of 1025 bits; whether it is a product nobody can tell.


def key():
  return PublicKey(ODD)


@pytest.mark.parametrize('workers', [0, 1.5, True, np.nan, np.inf, None])
def test_workers_are_a_number_of_threads(workers):
  with pytest.raises(ValueError, match='workers must be an integer'):
    Arithmetic(workers)


@pytest.mark.parametrize('n, why', [
    (-ODD, 'a positive integer'), (2.0**1023, 'a positive integer'),
    (None, 'a positive integer'), (2**1024, 'it is odd'),
    (2**1022 + 1, 'can be broken'),
])
def test_a_modulus_is_odd_and_positive(n, why):
  with pytest.raises(ValueError, match=why):
    PublicKey(n)


def test_a_modulus_is_one_key():
  """However often it is made, as where it was sent."""
  assert key() == key() != PublicKey(ODD + 2)
  assert len({key(), key(), PublicKey(ODD + 2)}) == 2


def test_a_party_without_a_key_says_so():
  with pytest.raises(ValueError, match='The active party has no key in this'):
    _ = Party('active').public


@pytest.mark.parametrize('code, what', [
    (Code(np.nan, 56), 'Bits of fraction'), (Code(1.5, 56), 'Bits of fraction'),
    (Code(-1, 56), 'Bits of fraction'), (Code(True, 56), 'Bits of fraction'),
    (Code(40, np.nan), 'Bits'), (Code(40, 56.5), 'Bits'), (Code(40, 0), 'Bits'),
])
def test_a_code_has_whole_bits(code, what):
  """No number is larger than NaN: nothing would be refused."""
  some = lambda: Arithmetic().encrypt_integers(key(), ZERO, code)
  cipher = Arithmetic().encrypt_integers(key(), ZERO[None], Code(40, 56))
  product = lambda: Arithmetic().matmul_integers(cipher, ZERO[None], code)
  slot = lambda: packing.Sums(key(), code=code).width
  for run in (some, product, slot, lambda: encoding.encode([0.0], code)):
    with pytest.raises(ValueError, match=f'{what} must be an integer'):
      run()


def test_bits_alone():
  for bits in (np.nan, 56.5, np.inf, True):
    with pytest.raises(ValueError, match='Bits must be an integer'):
      encoding.bounded(ZERO, bits)
  for bits in (-1, 1.5, True):
    with pytest.raises(ValueError, match='Bits of fraction must be an integer'):
      encoding.decode(ZERO, bits)
  for bits in (-1, 0, 1.5, True):
    with pytest.raises(ValueError, match='Bits of a mask must be an integer'):
      masks.draw((2,), bits)
  with pytest.raises(ValueError, match='True is no integer'):
    encoding.bounded(encoding.integers([True], (1,)), 5)


@pytest.mark.parametrize('x', [
    ['1.5'], np.asarray(['2020-01-01'], 'M8[D]'), np.asarray([b'1']), [1j],
])
def test_texts_and_dates_are_no_numbers(x):
  """NumPy takes '1.5' for 1.5 and a date for its days since 1970."""
  for run in (lambda: encoding.encode(x, encoding.VALUES),
              lambda: ckks.PublicContext.seal(None, Arithmetic(), x)):
    with pytest.raises(ValueError, match='real ones are expected'):
      run()


def test_one_encrypts_with_a_public_key():
  with pytest.raises(ValueError, match='takes a PublicKey.* got an int'):
    Arithmetic().encrypt(ODD, [1.0])


def test_numbers_of_numbers():
  for terms in (0, 1.5, True, np.nan):
    with pytest.raises(ValueError, match='terms must be an integer'):
      _ = packing.Sums(key(), terms).slots
  for count in (-3, 1.5, True, np.nan):
    for run in (packing.Sums(key()).ciphers,
                lambda n: ckks.PublicContext.ciphers(None, n)):
      with pytest.raises(ValueError, match='numbers must be an integer'):
        run(count)
    for pair in ((count, 2), (2, count)):
      with pytest.raises(ValueError, match='count: .* must be an integer'):
        ckks.count(*pair)
    with pytest.raises(ValueError, match='rows must be an integer'):
      blindfl.shares_code(count)
  assert packing.Sums(key()).ciphers(0) == ckks.PublicContext.ciphers(None, 0)
  for k in (0, -1, 1.5, True):
    with pytest.raises(ValueError, match='k must be an integer'):
      sfa.Passive(k, None, None)
    with pytest.raises(ValueError, match='of passive parties must be an int'):
      sfa.messages(k)


@pytest.mark.parametrize('rate', [np.nan, np.inf, -0.1, True, '0.1'])
def test_a_rate_is_finite_and_not_negative(rate):
  piece = np.zeros((2, 2))
  for run in (
      lambda: local.Bottom(None, {}, rate), lambda: local.Top(None, {}, rate),
      lambda: hardy.Passive('passive', np.zeros(2), rate, key()),
      lambda: acml.Active(None, piece, rate, key()),
      lambda: blindfl.Active(None, rate, None, key(), (piece, piece), 4),
  ):
    with pytest.raises(ValueError, match='rate must be a number of at least 0'):
      run()


def test_shapes_of_a_party():
  for weights in (np.zeros((3, 1)), 0.5):
    with pytest.raises(ValueError, match=r'weights must be \[n\]'):
      hardy.Passive('passive', weights, 0.1, key())
  for weights in (np.zeros(3), np.zeros((2, 2, 2))):
    with pytest.raises(ValueError, match=r'weights must be \[d, h\]'):
      acml.Active(None, weights, 0.1, key())
  for shape in ((0, 3), (-1, 2), (True, 2), (2, 1.5)):
    with pytest.raises(ValueError, match='shape must be an integer'):
      acml.Passive(None, shape, None)
  for shape, noise in (((2,), None), ((2, 3), np.zeros((5, 5)))):
    with pytest.raises(ValueError, match=r'shape must be \(d, h\)'):
      acml.Passive(None, shape, None, noise=noise)


COSTS = {
    'acml': (acml.cost, (2, 2, 2)), 'blindfl': (blindfl.cost, (2, 2, 2, 2)),
    'hardy': (hardy.cost, (2, 2, 2)),
    'sfa': (lambda *sizes: sfa.cost(packing.Sums(key()), *sizes), (2, 2)),
    'spnn': (lambda *sizes: spnn.cost(packing.Sums(key()), *sizes), (2, 2, 2)),
}


@pytest.mark.parametrize('protocol', COSTS)
def test_a_batch_that_cannot_be_costs_nothing(protocol):
  cost, sizes = COSTS[protocol]
  cost(*sizes)
  for at in range(len(sizes)):
    for size in (0, -1, 1.5, True, np.nan):
      with pytest.raises(ValueError, match='cost: .* must be an integer'):
        cost(*sizes[:at], size, *sizes[at + 1:])
  if protocol in ('acml', 'blindfl', 'hardy'):
    for bits in (0, 1000, -1, 1024.5, np.nan):
      with pytest.raises(ValueError, match='cost: bits must be an integer'):
        cost(*sizes, bits)


def test_a_protocol_that_is_none():
  one = Declared(1, 'a', 'b', 'm', MASKED)
  for flight in (0, -1, 1.5, True, np.nan):
    with pytest.raises(ValueError, match="flight of 'm' must be an integer"):
      Channel([one._replace(flight=flight)], {})
  with pytest.raises(ValueError, match='Two messages have one name'):
    Channel([one, one._replace(flight=2)], {})
  assert Channel(iter([one]), {}).declared == (one,)


def test_a_reader_who_is_not_there():
  """It would see nothing, and nothing looks like a secret that was kept."""
  line = acml.channel(key())
  with pytest.raises(ValueError, match="'pasive' is none .* active, passive"):
    views.readable(line, 'pasive')
  with pytest.raises(ValueError, match="'hiden' is none .*, hidden, noise, "):
    views.opened(line, 'passive', own={'hiden': ZERO})
  assert views.readable(line, 'passive') == {}


def test_a_private_key_of_no_key():
  """What was given is not shown: it may be a prime of a modulus."""
  with pytest.raises(ValueError, match='not of int; take keys') as said:
    PrivateKey(123457)
  assert '123457' not in str(said.value)


def test_a_whole_number_beyond_any_float():
  with pytest.raises(ValueError, match='larger than any float64'):
    encoding.encode([2**1100], Code(0, 2048))


@pytest.mark.parametrize('by', [True, 1.5, None])
def test_shifts_are_whole_numbers(by):
  with pytest.raises(ValueError, match='by must be a whole number'):
    encoding.shifted(ZERO, by)


@pytest.mark.parametrize('bad', [np.nan, np.inf])
def test_weights_of_hardy_are_numbers(bad):
  with pytest.raises(ValueError, match='weights must be finite'):
    hardy.Passive('passive', [0.0, bad], 0.1, key())


@pytest.mark.parametrize('kind', ['flaots', 'Masked', 'a', ''])
def test_a_kind_that_there_is_not(kind):
  with pytest.raises(ValueError, match=f"'x' is of the kind '{kind}'; kinds"):
    Channel([Declared(1, 'a', 'b', 'x', kind)], {'a': key()})


@pytest.mark.parametrize('name', ['acml', 'blindfl', 'hardy'])
def test_bytes_of_a_key_that_is_no_multiple_of_four_bits(name):
  """A ciphertext under 1026 bits takes 257 bytes; 256 were counted."""
  cost, sizes = COSTS[name]
  odd, next_ = PublicKey(2**1025 + 1), PublicKey(2**1027 + 1)
  assert (odd.bits, odd.bytes, next_.bytes) == (1026, 257, 257)
  assert cost(*sizes, 1026) == cost(*sizes, next_.bits) != cost(*sizes, 1024)
