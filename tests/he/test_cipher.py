"""Paillier over arrays: arithmetic, counts, ranges and refusals."""
import copy
from pathlib import Path
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from vfljax import he
from vfljax.he import encoding, library, masks
from vfljax.he.arrays import Count, Encrypted, checked
from vfljax.he.encoding import FACTORS, VALUES, Code


@pytest.fixture
def arithmetic():
  return he.Arithmetic()


@pytest.mark.parametrize('workers', [1, 2])
def test_sums_and_products_are_those_of_real_numbers(keys, workers):
  private, party = keys[0], he.Arithmetic(workers)
  x = np.array([[1.5, -2.25, 0.0], [3.0, 1e-3, -7.0]])
  w = np.array([[0.5, -1.0], [2.0, 0.0], [-0.125, 4.0]])
  sealed = party.encrypt(private.public, x)
  open_ = lambda a: party.decrypt(private, a)
  np.testing.assert_allclose(open_(sealed), x, atol=2e-12)
  twice = party.add(sealed, sealed)
  np.testing.assert_allclose(open_(twice), 2 * x, atol=4e-12)
  np.testing.assert_allclose(open_(party.matmul(sealed, w)), x @ w, atol=1e-6)
  left = party.matmul_left(w, sealed)
  np.testing.assert_allclose(open_(left), w @ x, atol=1e-6)
  hidden, mask = party.hide(sealed)
  found = party.decrypt_integers(private, hidden)
  back = encoding.decode(found.values - mask, found.fraction)
  np.testing.assert_allclose(back, x, atol=2e-12)


def test_powers_let_go_of_pythons_lock(keys):
  """So that threads take them side by side: this one goes on meanwhile."""
  n, turns = keys[0].public.n, 0
  power = library.gmp().powmod_base_list
  work = threading.Thread(target=power, args=([n - 2] * 300, n, n * n))
  work.start()
  while work.is_alive():
    turns += 1
    time.sleep(0.001)
  assert turns > 20  # With the lock held there would be one or two.


def test_every_operation_is_counted(keys, arithmetic):
  a = arithmetic.encrypt(keys[0].public, np.ones((2, 3)))
  assert arithmetic.count == (6, 0, 0, 0)
  arithmetic.matmul(a, np.ones((3, 5)))
  assert arithmetic.count == (6, 20, 30, 0)
  arithmetic.hide(a)
  assert arithmetic.count == (12, 26, 30, 0)
  arithmetic.blur(arithmetic.add_plain(a, np.zeros((2, 3), object), 1))
  assert arithmetic.count == (18, 38, 30, 0)
  arithmetic.decrypt(keys[0], a)
  assert arithmetic.count == (18, 38, 30, 6)
  assert Count(1, 2, 3, 4).plus(Count(1, 1, 1, 1)) == (2, 3, 4, 5)


def test_ciphertexts_of_one_number_differ_and_are_phes(keys, arithmetic):
  """phe, which did not encrypt, decrypts; and the other way round."""
  a = arithmetic.encrypt(keys[0].public, np.full(3, 2.0))
  assert len(set(a.values)) == 3
  own = keys[0]._own
  assert own.raw_decrypt(int(a.values[0])) == 2 << VALUES.fraction
  theirs = np.array([own.public_key.raw_encrypt(5 << 40)], object)
  cipher = Encrypted(keys[0].public, theirs, 40, 56)
  assert arithmetic.decrypt(keys[0], cipher) == [5.0]


def test_a_mask_is_drawn_anew_and_longer_than_what_it_hides(keys, arithmetic):
  a = arithmetic.encrypt(keys[0].public, np.zeros(200), Code(0, 8))
  _, mask = arithmetic.hide(a)
  assert len(set(mask)) == 200
  sizes = [int(m).bit_length() for m in mask]
  assert max(sizes) == 8 + masks.SLACK and min(sizes) > 8 + masks.SLACK - 20
  assert abs(np.mean(sizes) - (8 + masks.SLACK - 1)) < 0.5


def test_a_hidden_ciphertext_has_fresh_randomness(keys, arithmetic):
  """Else who decrypts it could tell which ciphertexts it was made from."""
  a, key = arithmetic.encrypt(keys[0].public, np.zeros(3)), keys[0].public
  hidden, mask = arithmetic.hide(a)
  bare = arithmetic.add_plain(a, mask, a.bits + masks.SLACK)
  assert not {*hidden.values} & {*bare.values} and hidden.key == key


def test_shifts_round_to_the_nearest():
  given = np.array([7, -7, 5, -5, 1 << 80], object)
  found = encoding.shifted(given, -2)
  assert list(found) == [2, -2, 1, -1, 1 << 78]
  assert (encoding.shifted(found, 2) == 4 * found).all()


def test_blurred_ciphertexts_are_others_of_nearly_the_same(keys, arithmetic):
  a = arithmetic.encrypt(keys[0].public, np.array([3.0, -4.0]))
  found = []
  for _ in range(20):
    b = arithmetic.blur(a)
    assert not {*a.values} & {*b.values}
    found.append(arithmetic.decrypt(keys[0], b) - [3.0, -4.0])
  assert abs(np.array(found)).max() <= 2.0 ** -25
  assert np.std(found) == pytest.approx(2.0 ** -24 / 12 ** 0.5, rel=0.4)


def test_a_dither_is_uniform_about_0():
  draws = masks.dither((100, 100), 40).ravel()
  assert min(draws) >= -2 ** 15 and max(draws) < 2 ** 15
  assert abs(np.mean(draws)) < 6 * 2 ** 16 / 12 ** 0.5 / 100
  assert np.std(draws) == pytest.approx(2 ** 16 / 12 ** 0.5, rel=0.05)
  x = np.array([0.5, -3.0], np.float32)
  found = masks.dithered(x, VALUES)
  assert abs(encoding.decode(found, VALUES.fraction) - x).max() <= 2.0 ** -25
  assert (found != masks.dithered(x, VALUES)).any()


@pytest.mark.parametrize('x, code, said', [
    (np.array([[1.0], [7e4]]), VALUES, r'7e\+04 at \(1, 0\) takes 57 bits'),
    (np.array([-7e4]), VALUES, 'there is room for 56'),
    (np.array([np.nan]), VALUES, 'nan at'),
    (np.array([-np.inf]), FACTORS, '-inf at'),
    (np.array([3e5]), FACTORS, 'takes 43 bits'),
    (np.array([1.0, -1e300]), VALUES, r'-1e\+300 at \(1,\) takes 1037 bits'),
    (np.array([1 + 2j]), VALUES, 'real ones are expected'),
])
def test_what_overflows_the_encoding_is_refused_with_its_size(x, code, said):
  with pytest.raises(ValueError, match=said):
    encoding.encode(x, code)


@pytest.mark.parametrize('code', [
    (-1, 56), (1.5, 10), (40, 0), (4000, 4010), (True, 3),
])
def test_codes_have_whole_bits(code):
  with pytest.raises(ValueError, match='must be an integer'):
    encoding.encode([0.1], encoding.Code(*code))


def test_a_dither_needs_bits_behind_the_grain():
  with pytest.raises(ValueError, match='behind 24 bits of fraction'):
    masks.dithered([0.1], encoding.Code(24, 40))


def test_the_largest_that_fits_does():
  most = 2.0 ** 16 - 2.0 ** -24
  found = encoding.encode(np.array([most, -most]), FACTORS)
  assert [int(v).bit_length() for v in found] == [40, 40]
  assert (encoding.decode(found, 24) == [most, -most]).all()


def test_what_might_wrap_is_refused_before_it_is_computed(keys, arithmetic):
  a = arithmetic.encrypt(keys[0].public, np.ones((1, 1)))
  for _ in range(24):
    a = arithmetic.matmul(a, np.ones((1, 1)))
  done = arithmetic.count
  with pytest.raises(ValueError, match='may take 1056 bits; .* room for 1022'):
    arithmetic.matmul(a, np.ones((1, 1)))
  assert arithmetic.count == done
  with pytest.raises(ValueError, match='An integer of 9 bits'):
    arithmetic.encrypt_integers(
        keys[0].public, np.array([-300], object), Code(0, 8)
    )


def test_the_last_bit_before_half_of_n_is_there_and_no_other(keys, arithmetic):
  """|v| < 2^1022 <= n / 2; a sum has a bit more than its larger term."""
  most, key = (1 << 1022) - 1, keys[0].public
  ends = np.array([most, -most], object)
  sealed = arithmetic.encrypt_integers(key, ends, Code(0, 1022))
  assert (arithmetic.decrypt_integers(keys[0], sealed).values == ends).all()
  half = np.array([most // 2, -(most // 2)], object)
  less = arithmetic.encrypt_integers(key, half, Code(0, 1021))
  twice = arithmetic.add(less, less)
  assert twice.bits == arithmetic.add_plain(less, half, 1021).bits == 1022
  for wrong in (
      lambda: arithmetic.add(sealed, less), lambda: arithmetic.hide(sealed),
      lambda: arithmetic.add_plain(less, ends, 1022),
      lambda: arithmetic.encrypt_integers(key, ends, Code(0, 1023)),
  ):
    with pytest.raises(ValueError, match='room for 1022'):
      wrong()


@pytest.mark.parametrize('bits', [512, 1022, 0])
def test_a_key_that_is_too_small_is_refused(bits):
  with pytest.raises(ValueError, match='1024, as in the papers, or 2048'):
    he.generate(bits)
  with pytest.raises(ValueError, match='can be broken'):
    he.PublicKey((1 << max(bits - 1, 1)) + 1)


def test_a_size_is_an_integer():
  for bits in ('1024', 1024.0):
    with pytest.raises(ValueError, match='bits of a key are an integer'):
      he.generate(bits)  # pyright: ignore[reportArgumentType]


def test_2048_bits_by_choice(arithmetic):
  private = he.generate(2048)
  assert private.public.bits == 2048 and private.public.bytes == 512
  a = arithmetic.encrypt(private.public, np.array([-1.25]))
  assert arithmetic.decrypt(private, a) == [-1.25]
  with pytest.raises(ValueError, match='even number'):
    he.generate(2049)


def test_a_ciphertext_under_another_key_is_refused(keys, arithmetic):
  one, other = (arithmetic.encrypt(k.public, np.ones(2)) for k in keys[:2])
  for wrong in (
      lambda: arithmetic.add(one, other),
      lambda: arithmetic.decrypt(keys[1], one),
      lambda: checked(keys[1].public, one),
  ):
    with pytest.raises(ValueError, match='under'):
      wrong()


def test_the_smallest_number_that_may_be_a_ciphertext_is_1(keys, arithmetic):
  """Of 0, blinded by 1."""
  a = arithmetic.encrypt(keys[0].public, np.zeros(1))
  a.values[0] = 1
  assert arithmetic.decrypt(keys[0], a) == [0]


@pytest.mark.parametrize('make, said', [
    (lambda c, key: -c, 'positive'),
    (lambda c, key: 0 * c, 'positive'),
    (lambda c, key: c + key.square, 'bits and is not below'),
    (lambda c, key: key.square, 'is not below'),
    (lambda c, key: key.n, 'factor in common'),
    (lambda c, key: 1.5, 'float at'),
    (lambda c, key: True, 'bool at'),
])
def test_numbers_that_are_no_ciphertexts_are_refused(
    keys, arithmetic, make, said
):
  a = arithmetic.encrypt(keys[0].public, np.ones(2))
  a.values[1] = make(a.values[1], keys[0].public)
  with pytest.raises(ValueError, match=said):
    arithmetic.decrypt(keys[0], a)


def test_shapes_and_fractions_have_to_agree(keys, arithmetic):
  a = arithmetic.encrypt(keys[0].public, np.ones((1, 2)))
  with pytest.raises(ValueError, match='cannot be added'):
    arithmetic.add(a, a.T)
  with pytest.raises(ValueError, match='bits of fraction'):
    arithmetic.add(a, a._replace(fraction=3))
  with pytest.raises(ValueError, match='have no product'):
    arithmetic.matmul(a, np.ones((3, 1)))
  with pytest.raises(ValueError, match='integer of at least 1; got 0'):
    he.Arithmetic(0)


def test_integers_are_held_to_what_is_said_of_them(keys, arithmetic):
  """A bound that does not hold would let a sum wrap around unseen."""
  a, code = arithmetic.encrypt(keys[0].public, np.ones((2, 3))), Code(0, 8)
  done = arithmetic.count
  large, broken = np.full((3, 1), 256, object), np.full((3, 1), 1.5)
  for wrong, said in (
      (lambda: arithmetic.matmul_integers(a, large, code), 'integer of 9 bits'),
      (lambda: arithmetic.matmul_integers(a, broken, code), 'no integer'),
      (lambda: arithmetic.add_plain(a.T, -large.repeat(2, 1), 8), 'of 9 bits'),
      (lambda: arithmetic.add_plain(a, np.zeros((3, 2), object), 8), 'Shapes'),
      (lambda: arithmetic.encrypt_integers(keys[0].public, broken, code),
       'no integer'),
      (lambda: arithmetic.matmul(a._replace(values=a.values[:, :0]),
                                 np.ones((0, 3))), 'nothing to add up'),
  ):
    with pytest.raises(ValueError, match=said):
      wrong()
  assert arithmetic.count == done


def test_no_rows_are_no_work(keys, arithmetic):
  none = arithmetic.encrypt(keys[0].public, np.zeros((0, 3)))
  found = arithmetic.decrypt(keys[0], arithmetic.matmul(none, np.ones((3, 2))))
  assert found.shape == (0, 2) and arithmetic.count == (0, 0, 0, 0)
  nobodys = np.zeros((0, 3), object)  # They take no bits.
  assert encoding.bounded(nobodys, 0) is nobodys


def test_what_is_secret_is_drawn_by_the_operating_system():
  """Not by a generator with a seed, which somebody else has as well."""
  files = sorted(Path(he.__file__).parent.glob('*.py'))
  assert len(files) > 10
  for file in files:
    text = file.read_text()
    assert 'np.random' not in text and 'jax.random' not in text, file.name
  found = masks.normal((200, 30))
  assert abs(found.mean()) < 0.1 and abs(found.std() - 1) < 0.1
  assert len(np.unique(found)) == found.size


def test_a_private_key_is_not_copied_and_not_shown(keys):
  for copied in (copy.copy, copy.deepcopy, pickle.dumps):
    with pytest.raises(TypeError, match='does not leave its party'):
      copied(keys[0])
  own = keys[0]._own
  text = repr(keys[0])
  assert str(own.p) not in text and str(own.q) not in text
  last = str(own.public_key.n)[-6:]  # So much tells one key from another.
  assert repr(keys[0].public) == f'PublicKey(1024 bits, ...{last})'


@pytest.mark.slow
def test_without_the_extra_it_says_what_to_type():
  code = (
      'import sys\n'
      'sys.modules["gmpy2"] = None\n'
      'import vfljax.he, vfljax.he.blindfl, vfljax.he.spnn\n'
      'try:\n'
      '  vfljax.he.generate(1024)\n'
      'except ValueError as error:\n'
      '  print(error)\n'
  )
  done = subprocess.run(
      [sys.executable, '-c', code], capture_output=True, text=True, check=True
  )
  assert done.stdout.startswith(
      "gmpy2 cannot be imported: pip install 'vfljax[he]' ("
  )
