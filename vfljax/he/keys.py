"""Paillier's keys (Paillier, 1999), made and used by python-paillier (phe).

A key of 1024 bits is what VMask measures (its section V-A) and what Table III
is compared with: about 80 bits of security, which NIST has not allowed since
2014. For data that matter take 2048 bits (112 bits of security), whose
encryptions and decryptions take several times as long, or 3072 (128 bits).
"""
import numbers
from typing import Any

from vfljax.he.library import gmp, paillier

LEAST, USUAL = 1024, 1024


class PublicKey:
  """A modulus n: whoever has it can encrypt and compute.

  Attributes:
    n: The modulus, odd.
    square: n^2; ciphertexts are below it.
    bits: Of n.
  """

  def __init__(self, n: Any):
    mpz = gmp().mpz
    if not isinstance(n, numbers.Integral) or n < 0:
      raise ValueError(f'A modulus is a positive integer; got {n!r}.')
    self.n = mpz(n)
    self.bits = int(self.n.bit_length())
    if self.bits < LEAST:
      raise ValueError(_too_small(self.bits))
    if self.n % 2 == 0:
      raise ValueError('A modulus is the product of two large primes, and so '
                       'it is odd.')
    self.square = self.n * self.n

  def __eq__(self, other: object) -> bool:
    return isinstance(other, PublicKey) and self.n == other.n

  def __hash__(self) -> int:
    return hash(self.n)

  def __repr__(self) -> str:
    return f'PublicKey({self.bits} bits, ...{int(self.n) % 10**6:06d})'

  @property
  def room(self) -> int:
    """Bits that a plaintext's absolute value may have: below n / 2."""
    return self.bits - 2

  @property
  def bytes(self) -> int:
    """Of a ciphertext on the wire."""
    return -(-2 * self.bits // 8)


class PrivateKey:
  """The factors of a modulus. It cannot be copied out of its process.

  Attributes:
    public: What belongs to it.
  """

  def __init__(self, own: Any):
    if not hasattr(own, 'public_key'):  # Not shown: it may be a secret factor.
      raise ValueError('A PrivateKey is of a private key of phe, not of '
                       f'{type(own).__name__}; take keys.generate().')
    self.public = PublicKey(own.public_key.n)
    self._own = own

  def __repr__(self) -> str:
    return f'PrivateKey(of {self.public!r})'

  def __reduce__(self):
    raise TypeError('A private key does not leave its party.')

  def __deepcopy__(self, memo):
    raise TypeError('A private key does not leave its party.')

  def __copy__(self):
    raise TypeError('A private key does not leave its party.')

  def decrypted(self, cipher: Any) -> int:
    """The integer in (-n/2, n/2) of one ciphertext."""
    value = self._own.raw_decrypt(int(cipher))
    n = int(self.public.n)
    return value - n if value > n // 2 else value


def generate(bits: int = USUAL) -> PrivateKey:
  """A new pair of keys, from the system's randomness.

  Args:
    bits: Of the modulus: 1024 as in the papers, 2048 or more for data that
      matter.

  Raises:
    ValueError: for fewer than 1024 bits, or an odd number of them.
  """
  if not isinstance(bits, numbers.Integral):
    raise ValueError(f'The bits of a key are an integer; got {bits!r}.')
  if bits < LEAST:
    raise ValueError(_too_small(bits))
  if bits % 2:
    raise ValueError(f'A key has an even number of bits; got {bits}.')
  gmp()  # phe works without it, tens of times slower.
  _, own = paillier().generate_paillier_keypair(n_length=bits)
  return PrivateKey(own)


def _too_small(bits: int) -> str:
  return (
      f'A Paillier key of {bits} bits can be broken: take 1024, as in the '
      'papers, or 2048, which is safe today.'
  )
