"""Encrypted sums of several parties' numbers, one or many per ciphertext.

A plaintext has a thousand bits and a number about sixty. If numbers are only
added up, many fit side by side,

  v_1 + v_2 2^w + v_3 2^(2 w) + ...

in slots of w bits, which have room for the sum, its sign and its mask. All
numbers in a ciphertext then share its cost.
"""
import math
from typing import NamedTuple

import numpy as np

from vfljax.he import masks
from vfljax.he.arrays import Encrypted, Masked
from vfljax import check
from vfljax.he.cipher import Arithmetic
from vfljax.he.encoding import VALUES, Code, decode, encode, integers
from vfljax.he.keys import PrivateKey, PublicKey


class Sums(NamedTuple):
  """How numbers that are added up lie in ciphertexts of a key.

  Attributes:
    key: Whose ciphertexts.
    terms: How many parties' numbers are added, 1 or more.
    packed: Whether several share a ciphertext.
    masked: Whether there is a mask among the terms, 64 bits longer than the
      sum of the others.
    code: Of each number.
  """

  key: PublicKey
  terms: int = 2
  packed: bool = False
  masked: bool = False
  code: Code = VALUES

  @property
  def total(self) -> int:
    """Bits of a sum without its mask and its sign."""
    check.count('terms', self.terms)
    self.code.check()
    return self.code.bits + math.ceil(math.log2(self.terms))

  @property
  def width(self) -> int:
    """Bits of a slot, sign and mask included."""
    return self.total + (masks.SLACK + 1 if self.masked else 0) + 1

  @property
  def slots(self) -> int:
    """Numbers in a ciphertext.

    Raises:
      ValueError: if the key has no room for one.
    """
    width = self.width  # It looks at what makes it, packed or not.
    if not self.packed:
      return 1
    slots = (self.key.room - self.terms) // width
    if not slots:
      raise ValueError(
          f'A packed number takes {width} bits, and the key has room for '
          f'{self.key.room - self.terms}: take a longer key or a shorter code.'
      )
    return slots

  def ciphers(self, count: int) -> int:
    """Ciphertexts for so many numbers."""
    check.count('numbers', count, 0)
    return -(-count // self.slots)

  def seal(self, party: Arithmetic, x) -> Encrypted:
    """[ciphertexts] of real numbers of any shape.

    Raises:
      ValueError: for a number that is too large.
    """
    return self._sealed(party, encode(x, self.code))

  def seal_masked(
      self, party: Arithmetic, x
  ) -> tuple[Encrypted, np.ndarray]:
    """([ciphertexts] of x and a mask, the mask: integers of x's shape).

    Raises:
      ValueError: where slots have no room for a mask.
    """
    if not self.masked:
      raise ValueError('These sums have no room for a mask: masked=True.')
    values = encode(x, self.code)
    mask = masks.draw(values.shape, self.total + masks.SLACK)
    return self._sealed(party, values + mask, True), mask

  def add(self, party: Arithmetic, a: Encrypted, b: Encrypted) -> Encrypted:
    """The sums of both.

    Raises:
      ValueError: for more than `terms` or two masks, which would run into the
        next slot, and for arrays of two shapes.
    """
    terms = self._terms(a) + self._terms(b)
    if terms > self.terms:
      raise ValueError(
          f'Slots have room for a sum of {self.terms} terms; this is one of '
          f'{terms}. Take Sums(key, {terms}, ...).'
      )
    (*_, masked, shape), (*_, also, other) = a.sums, b.sums
    if masked and also:
      raise ValueError('Both have a mask, and slots have room for one: '
                       'seal_masked is for one of the terms.')
    if shape != other:  # Packed, they may fill as many ciphertexts.
      raise ValueError(f'Arrays of shapes {shape} and {other} cannot be added: '
                       'they must be the same.')
    return party.add(a, b)._replace(
        sums=(self.width, self.slots, terms, masked or also, shape)
    )

  def _terms(self, a: Encrypted) -> int:
    """How many numbers are added up in slots like these; ValueError if none."""
    if a.sums[:2] != (self.width, self.slots):
      raise ValueError(
          'Ciphertexts that other sums have made, or that were not added by '
          'Sums.add, have other slots.'
      )
    return a.sums[2]

  def open(
      self, party: Arithmetic, private: PrivateKey, total: Encrypted,
      shape: tuple[int, ...],
  ) -> Masked:
    """The sums, integers of `shape`; real numbers by `decode`.

    Raises:
      ValueError: for another number of them, or slots that are none of these.
    """
    self._terms(total)
    if total.fraction != self.code.fraction:  # Slots may be as wide.
      raise ValueError(
          f'Numbers of {total.fraction} bits of fraction are not opened as of '
          f'{self.code.fraction}: take the Sums that sealed them.'
      )
    numbers = int(np.prod(shape, dtype=int))
    if numbers != math.prod(total.sums[4]):
      raise ValueError(
          f'Ciphertexts of an array of shape {total.sums[4]} do not hold an '
          f'array of shape {shape}.'
      )
    found = party.decrypt_integers(private, total)
    return Masked(
        self.unpack(found.values, shape), self.code.fraction, self.width - 1
    )

  def opened(
      self, party: Arithmetic, private: PrivateKey, total: Encrypted,
      shape: tuple[int, ...],
  ) -> np.ndarray:
    """The sums, real numbers of `shape`, where there is no mask."""
    found = self.open(party, private, total, shape)
    return decode(found.values, found.fraction)

  def pack(self, values: np.ndarray) -> np.ndarray:
    """[ciphers] integers from those of any shape, in C order."""
    flat, s = [int(v) for v in values.flat], self.slots
    groups = [flat[i:i + s] for i in range(0, len(flat), s)]
    packed = [
        sum(v << (self.width * i) for i, v in enumerate(group))
        for group in groups
    ]
    return integers(packed, (len(packed),))

  def unpack(
      self, packed: np.ndarray, shape: tuple[int, ...]
  ) -> np.ndarray:
    """The integers back; a negative one has borrowed from the slot above."""
    whole, half, found = 1 << self.width, 1 << (self.width - 1), []
    for rest in map(int, packed.flat):
      for _ in range(self.slots):
        low = (rest + half) % whole - half
        found.append(low)
        rest = (rest - low) >> self.width
    return integers(found[:int(np.prod(shape, dtype=int))], shape)

  def _sealed(
      self, party: Arithmetic, values: np.ndarray, masked: bool = False
  ) -> Encrypted:
    code = Code(self.code.fraction, self.width * self.slots)
    made = party.encrypt_integers(self.key, self.pack(values), code)
    return made._replace(
        sums=(self.width, self.slots, 1, masked, values.shape)
    )
