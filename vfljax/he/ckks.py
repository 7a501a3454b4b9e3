"""CKKS through TenSEAL: approximate, with thousands of numbers a ciphertext.

Only sums are needed, so a ring of degree 4096 with moduli of 60 and 49 bits is
enough. It gives 2048 numbers a ciphertext and 128 bits of security, by the
table of the homomorphic encryption standard (109 bits of modulus). At a scale
of 2^40, numbers are decrypted with errors of about 1e-8, and sums below 2^19:
those of two numbers below 2^18, of `terms` below 2^19 / terms.

A mask needs 64 bits more than the number that it hides, and only 60 are
available. So `sfa` packs Paillier's plaintexts; `spnn`, which has no masks, may
use CKKS. Decrypted numbers must not be published, because their errors reveal
the key (Li and Micciancio, 2021). The server of `spnn` does send on what it
computes from them.
"""
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from vfljax import check
from vfljax.he.arrays import Count
from vfljax.he.cipher import Arithmetic
from vfljax.he.encoding import reals
from vfljax.he.library import tenseal

DEGREE, MODULI, SCALE = 4096, (60, 49), 40
SLOTS = DEGREE // 2
BYTES = 2 * DEGREE * 8  # Of a ciphertext, but for a header.
ROOM = 2.0 ** (MODULI[0] - SCALE - 1)  # Sums from here on wrap around.


class Sealed(NamedTuple):
  """A party's vectors under one key.

  Attributes:
    context: Whose: the public one.
    shape: Of the array that they hold.
    vectors: Serialized ciphertexts, of `SLOTS` numbers each but the last.
    bound: What their numbers are below.
  """

  context: 'PublicContext'
  shape: tuple[int, ...]
  vectors: tuple[bytes, ...]
  bound: float

  def carried(self, kind: str, keys: Mapping[str, Any]) -> tuple[Any, int]:
    """What a channel does with it: see `party.Channel`.

    Raises:
      ValueError: for another key than is declared.
    """
    if keys.get(kind.removeprefix('under ')) is not self.context:
      raise ValueError("CKKS ciphertexts under another key: encrypt with the "
                       "receiver's.")
    return self, sum(map(len, self.vectors))


class PublicContext:
  """What others encrypt and add with."""

  def __init__(self, text: bytes):
    self._made = tenseal().context_from(text)

  def seal(self, party: Arithmetic, x, terms: int = 2) -> Sealed:
    """Vectors of real numbers of any shape.

    Args:
      party: Who encrypts.
      x: The numbers.
      terms: How many such arrays will be added up.

    Raises:
      ValueError: for a number of 2^19 / terms or more (2^18 of a single term,
        as TenSEAL encodes no larger ones), or not finite or real.
    """
    check.count('terms', terms)
    given, most = reals(x), ROOM / max(terms, 2)
    flat = given.ravel()
    if not np.all(np.abs(flat) < most):  # NaN is not, either.
      worst = flat[np.nanargmax(np.where(np.isfinite(flat), abs(flat), np.inf))]
      raise ValueError(f'{worst:.3g} cannot be encoded: numbers below '
                       f'{most:g} are expected.')
    vector = tenseal().ckks_vector
    parts = [flat[i:i + SLOTS] for i in range(0, len(flat), SLOTS)]
    party.did(encryptions=len(parts))
    sent = tuple(vector(self._made, p).serialize() for p in parts)
    return Sealed(self, given.shape, sent, most)

  def add(self, party: Arithmetic, a: Sealed, b: Sealed) -> Sealed:
    """Slot by slot.

    Raises:
      ValueError: for another key, another shape, or a sum that might wrap
        around: `seal` has to know of its terms.
    """
    if a.context is not self or b.context is not self:
      raise ValueError('CKKS ciphertexts under another key.')
    if len(a.vectors) != len(b.vectors):
      raise ValueError(f'{len(a.vectors)} and {len(b.vectors)} vectors cannot '
                       'be added.')
    if a.shape != b.shape:  # As many numbers would be added out of place.
      raise ValueError(f'Arrays of shapes {a.shape} and {b.shape} cannot be '
                       'added: they must be the same.')
    if a.bound + b.bound > ROOM * (1 + 1e-9):  # Of rounded thirds.
      raise ValueError(
          f'Numbers below {a.bound:g} and {b.bound:g}: their sum may reach '
          f'{ROOM:g} and would wrap around. Say seal(..., terms=) of how many '
          'there are.'
      )
    party.did(additions=len(a.vectors))
    read = lambda text: tenseal().ckks_vector_from(self._made, text)
    return Sealed(self, a.shape, tuple(
        (read(x) + read(y)).serialize()
        for x, y in zip(a.vectors, b.vectors, strict=True)
    ), a.bound + b.bound)

  def ciphers(self, count: int) -> int:
    """Ciphertexts for so many numbers."""
    check.count('numbers', count, 0)
    return -(-count // SLOTS)

  def opened(
      self, party: Arithmetic, private: 'PrivateContext', total: Sealed,
      shape: tuple[int, ...],
  ) -> np.ndarray:
    """The sums, real numbers of `shape`."""
    return private.opened(party, total, shape)


class PrivateContext:
  """The secret key. It cannot be copied out of its process.

  Attributes:
    public: What belongs to it.
  """

  def __init__(self):
    ts = tenseal()
    self._made = ts.context(
        ts.SCHEME_TYPE.CKKS, DEGREE, coeff_mod_bit_sizes=list(MODULI)
    )
    self._made.global_scale = 2.0 ** SCALE
    self.public = PublicContext(self._made.serialize(save_secret_key=False))

  def __reduce__(self):
    raise TypeError('A private key does not leave its party.')

  def opened(
      self, party: Arithmetic, total: Sealed, shape: tuple[int, ...]
  ) -> np.ndarray:
    """Real numbers of `shape`."""
    if total.context is not self.public:
      raise ValueError('CKKS ciphertexts under another key.')
    party.did(decryptions=len(total.vectors))
    read = lambda text: tenseal().ckks_vector_from(self._made, text).decrypt()
    found = [x for text in total.vectors for x in read(text)]
    return np.asarray(found, np.float64).reshape(shape)


def count(parties: int, numbers: int) -> Count:
  """Of a sum of so many parties' numbers, each encrypting its own."""
  check.sizes('count', parties=parties, numbers=numbers)
  each = -(-numbers // SLOTS)
  return Count(parties * each, (parties - 1) * each, 0, each)
