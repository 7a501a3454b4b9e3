"""The arithmetic that Paillier's ciphertexts allow (Paillier, 1999).

  E(a) E(b) = E(a + b) mod n^2,   E(a)^k = E(k a),   a, b, k integers

Each party computes through its `Arithmetic`, which counts operations.
"""
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
import math
from typing import Any, NamedTuple

import numpy as np

from vfljax import check
from vfljax.he import masks
from vfljax.he.arrays import (
    Count, Encrypted, Masked, checked, checked_pair, fits,
)
from vfljax.he.encoding import (
    FACTORS, VALUES, Code, bounded, decode, encode, integers,
)
from vfljax.he.keys import PrivateKey, PublicKey
from vfljax.he.library import gmp


class Arithmetic:
  """One party's computations on ciphertexts.

  Powers run in `workers` threads: gmpy2 releases Python's lock during
  a list of powers. So no other process gets keys or numbers.

  Attributes:
    count: The operations so far.
  """

  def __init__(self, workers: int = 1):
    check.count('workers', workers)
    self.count = Count()
    self._workers = workers

  def encrypt(self, key: PublicKey, x, code: Code = VALUES) -> Encrypted:
    """Ciphertexts of real numbers, an array of any shape.

    Raises:
      ValueError: for a number that is too large for the code.
    """
    return self.encrypt_integers(key, encode(x, code), code)

  def encrypt_integers(
      self, key: PublicKey, values: np.ndarray, code: Code
  ) -> Encrypted:
    """Ciphertexts of integers below 2^code.bits in absolute value."""
    code.check()
    fits(key, code.bits)
    bounded(values, code.bits)
    power = gmp().powmod_base_list
    blinding = [masks.unit(key.n) for _ in range(values.size)]
    powers = self._spread(
        lambda part: power(part, key.n, key.square), blinding
    )
    found = [
        (1 + key.n * (int(v) % key.n)) * r % key.square
        for v, r in zip(values.flat, powers, strict=True)
    ]
    self.did(encryptions=values.size)
    return Encrypted(
        key, integers(found, values.shape), code.fraction, code.bits
    )

  def add(self, a: Encrypted, b: Encrypted) -> Encrypted:
    """a + b, which must have the same shape, key and fraction."""
    checked_pair(a, b)
    bits = max(a.bits, b.bits) + 1
    fits(a.key, bits)
    self.did(additions=a.values.size)
    found = [x * y % a.key.square for x, y in zip(a.values.flat, b.values.flat)]
    return Encrypted(a.key, integers(found, a.shape), a.fraction, bits)

  def add_plain(self, a: Encrypted, values: np.ndarray, bits: int) -> Encrypted:
    """a + integers of the same fraction, below 2^bits; keeps a's randomness."""
    total = max(a.bits, bits) + 1
    fits(a.key, total)
    bounded(values, bits)
    if values.shape != a.shape:
      raise ValueError(f'Shapes {a.shape} and {values.shape} cannot be added: '
                       'they must be the same.')
    self.did(additions=a.values.size)
    n, square = a.key.n, a.key.square
    found = [
        c * (1 + n * (int(v) % n)) % square
        for c, v in zip(a.values.flat, values.flat, strict=True)
    ]
    return Encrypted(a.key, integers(found, a.shape), a.fraction, total)

  def matmul(self, a: Encrypted, w, code: Code = FACTORS) -> Encrypted:
    """a [m, n], encrypted, times w [n, k], real numbers: [m, k].

    m n k multiplications and m (n - 1) k additions.
    """
    return self.matmul_integers(a, encode(w, code), code)

  def matmul_integers(
      self, a: Encrypted, w: np.ndarray, code: Code
  ) -> Encrypted:
    """`matmul` for integers w, below 2^code.bits in absolute value."""
    if len(a.shape) != 2 or w.ndim != 2 or a.shape[1] != w.shape[0]:
      raise ValueError(f'Shapes {a.shape} and {w.shape} have no product: '
                       '[m, n] and [n, k] are expected.')
    (m, n), k = a.shape, w.shape[1]
    if not n:
      raise ValueError('A product of no columns has nothing to add up.')
    code.check()
    bits = a.bits + code.bits + math.ceil(math.log2(n))
    fits(a.key, bits)
    bounded(w, code.bits)
    rows = [_Powers(a.key, row, w) for row in a.values]
    found = self._spread(lambda part: [one.products() for one in part], rows)
    self.did(multiplications=m * n * k, additions=m * (n - 1) * k)
    return Encrypted(
        a.key, integers([x for row in found for x in row], (m, k)),
        a.fraction + code.fraction, bits,
    )

  def matmul_left(self, x, a: Encrypted, code: Code = FACTORS) -> Encrypted:
    """x [m, n], real numbers, times a [n, k], encrypted: [m, k]."""
    return self.matmul(a.T, np.asarray(x).T, code).T

  def hide(self, a: Encrypted) -> tuple[Encrypted, np.ndarray]:
    """(a + mask, mask), the mask `masks.SLACK` bits longer than a's numbers.

    The mask is a fresh ciphertext, so the sum's randomness does not reveal to
    the owner of the key what `a` was made from.
    """
    bits = a.bits + masks.SLACK
    mask = masks.draw(a.shape, bits)
    fresh = self.encrypt_integers(a.key, mask, Code(a.fraction, bits))
    return self.add(a, fresh), mask

  def blur(self, a: Encrypted) -> Encrypted:
    """`a` with fresh randomness and a dither of at most 2^-25, see `masks`.

    Neither reveals to the owner of the key what `a` was made from: the
    ciphertext is new, and the integer is uniform in the bits behind
    `masks.GRAIN`.
    """
    own = masks.dither(a.shape, a.fraction)
    bits = a.fraction - masks.GRAIN
    return self.add(
        a, self.encrypt_integers(a.key, own, Code(a.fraction, bits))
    )

  def decrypt(self, private: PrivateKey, a: Encrypted) -> np.ndarray:
    """Real numbers, float64.

    Raises:
      ValueError: for ciphertexts under another key.
    """
    return decode(self.decrypt_integers(private, a).values, a.fraction)

  def decrypt_integers(self, private: PrivateKey, a: Encrypted) -> Masked:
    """Decrypts to integers; masks stay on them."""
    checked(private.public, a)
    self.did(decryptions=a.values.size)
    found = [private.decrypted(c) for c in a.values.flat]
    return Masked(integers(found, a.shape), a.fraction, a.bits)

  def did(self, **counts: int) -> None:
    """Adds to the count."""
    self.count = self.count.plus(Count(**counts))

  def _spread(
      self, work: Callable[[Sequence], Sequence], jobs: list
  ) -> list[Any]:
    """Runs `work` on all jobs, divided among the workers."""
    if self._workers == 1 or len(jobs) < 2:
      return list(work(jobs))
    size = -(-len(jobs) // self._workers)
    parts = [jobs[i:i + size] for i in range(0, len(jobs), size)]
    with ThreadPoolExecutor(self._workers) as pool:
      return [one for part in pool.map(work, parts) for one in part]


class _Powers(NamedTuple):
  """A row of ciphertexts [n] and the exponents [n, k] that they get."""

  key: PublicKey
  row: np.ndarray
  exponents: np.ndarray

  def products(self) -> list[Any]:
    """The product of all powers for each column of exponents, [k].

    For a negative exponent the inverse is raised, because modulo n the exponent
    would be as long as n.
    """
    found, square = None, self.key.square
    power, invert = gmp().powmod_exp_list, gmp().invert
    for cipher, own in zip(self.row, self.exponents, strict=True):
      powers = power(cipher, [max(int(e), 0) for e in own], square)
      if any(e < 0 for e in own):
        turned = power(
            invert(cipher, square), [max(-int(e), 0) for e in own], square
        )
        powers = [x * y % square for x, y in zip(powers, turned)]
      found = powers if found is None else [
          x * y % square for x, y in zip(found, powers)
      ]
    return found or []
