"""Arrays of ciphertexts and of masked integers, and counts of operations.

An `Encrypted` has a bound on its plaintexts that follows from the ranges of its
operands, not from the data. A result that might not fit is refused before it is
computed.
"""
from typing import Any, NamedTuple

import numpy as np

from vfljax import check
from vfljax.he.keys import PublicKey
from vfljax.he.library import gmp


class Encrypted(NamedTuple):
  """An array of ciphertexts.

  Attributes:
    key: The key that they are under.
    values: An object array of ciphertexts, integers between 0 and n^2.
    fraction: Bits behind the point of their plaintexts.
    bits: |plaintext| < 2^bits, as integers.
    sums: Of `packing.Sums`, else (): width and number of a ciphertext's slots,
      how many numbers each slot adds up, whether a mask is among them, and the
      shape of the arrays that are added up.
  """

  key: PublicKey
  values: np.ndarray
  fraction: int
  bits: int
  sums: tuple[Any, ...] = ()

  @property
  def shape(self) -> tuple[int, ...]:
    return self.values.shape

  @property
  def T(self) -> 'Encrypted':
    """Transposed."""
    return self._replace(values=self.values.T)

  @property
  def bytes(self) -> int:
    """Bytes on the wire."""
    return self.values.size * self.key.bytes


class Count(NamedTuple):
  """How often each operation was done, on single ciphertexts."""

  encryptions: int = 0
  additions: int = 0
  multiplications: int = 0
  decryptions: int = 0

  def plus(self, other: 'Count') -> 'Count':
    return Count(*(a + b for a, b in zip(self, other, strict=True)))


class Masked(NamedTuple):
  """Integers that are hidden by masks, or shares.

  Attributes:
    values: An object array of integers.
    fraction: Bits behind the point.
    bits: Bits of each number on the wire, without its sign.
  """

  values: np.ndarray
  fraction: int
  bits: int

  @property
  def bytes(self) -> int:
    return self.values.size * -(-(self.bits + 1) // 8)


def checked(key: PublicKey, cipher: Encrypted) -> Encrypted:
  """Returns a received array, if it has ciphertexts under `key`.

  Raises:
    ValueError: for another key, and for numbers that are no ciphertexts.
  """
  if cipher.key != key:
    raise ValueError(
        f'Ciphertexts under {cipher.key!r} where those under {key!r} belong: '
        "encrypt with the receiver's key."
    )
  mpz = type(key.n)
  for at, value in np.ndenumerate(cipher.values):
    if not isinstance(value, (int, mpz)) or isinstance(value, bool):
      raise ValueError(f'{type(value).__name__} at {at} is no ciphertext: an '
                       'integer is expected.')
    if value <= 0:
      raise ValueError(f'A ciphertext is positive; at {at} is {value}.')
    if value >= key.square:
      raise ValueError(
          f'The ciphertext at {at} has {value.bit_length()} bits and is not '
          f'below n^2, of {key.square.bit_length()} bits.'
      )
    if gmp().gcd(value, key.n) != 1:
      raise ValueError(f'The number at {at} is no ciphertext: it has a factor '
                       'in common with the key.')
  return cipher


def fits(key: PublicKey, bits: int) -> None:
  """Refuses results that might wrap around the modulus.

  Raises:
    ValueError: says how many bits the result takes; and for a key that is none
      to encrypt with.
  """
  if not isinstance(key, PublicKey):
    raise ValueError(f'Encryption takes a PublicKey, such as that of '
                     f'private.public; got {check.kind(key)}.')
  if bits > key.room:
    raise ValueError(
        f'The result may take {bits} bits; a key of {key.bits} bits has room '
        f'for {key.room}. Take a longer key or fewer bits of fraction.'
    )


def checked_pair(a: Encrypted, b: Encrypted) -> None:
  """Refuses two arrays that cannot be added.

  Raises:
    ValueError: for two keys, two shapes or two fractions.
  """
  if a.key != b.key:
    raise ValueError(f'Ciphertexts under two keys, {a.key!r} and {b.key!r}, '
                     'cannot be added: encrypt both under one.')
  if a.shape != b.shape or a.fraction != b.fraction:
    raise ValueError(
        f'Shapes {a.shape} and {b.shape}, of {a.fraction} and {b.fraction} '
        'bits of fraction, cannot be added: they must be the same.'
    )
