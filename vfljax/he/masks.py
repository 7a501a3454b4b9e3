"""Masks that hide integers; the operating system draws each one once.

The sum of a number below 2^b in absolute value and a draw from [0, 2^(b + 64))
reveals as little as the draw alone: the two distributions differ by less than
2^-63.

This assumes that both have the same fraction bits. If the draw has fewer than
the number, the number's last bits are not hidden, and equations modulo a power
of 2 can be solved like others. Also, exactly opened products of integers reveal
more than real numbers: from a W an attacker finds the lattice that a's columns
span, and with it the columns, up to sums and differences of a few. So secrets
are uniform in all bits behind `GRAIN` (`dithered`), and so are their products
when opened (`dither`).
"""
import random
import secrets
from typing import Any

import numpy as np

from vfljax import check
from vfljax.he.encoding import FACTORS, Code, encode, integers
from vfljax.he.library import gmp

SLACK = 64  # Bits by which a mask is longer than what it hides.
GRAIN = FACTORS.fraction  # float32 has no more of numbers around 1.


def draw(shape: tuple[int, ...], bits: int) -> np.ndarray:
  """Integers in [0, 2^bits), an object array.

  Raises:
    ValueError: for no bits, which would hide nothing.
  """
  check.count('Bits of a mask', bits)
  count = int(np.prod(shape, dtype=int))
  return integers([secrets.randbits(bits) for _ in range(count)], shape)


def dither(shape: tuple[int, ...], fraction: int) -> np.ndarray:
  """Integers of so many bits of fraction, uniform in [-2^-25, 2^-25).

  Raises:
    ValueError: for a fraction that has no bits behind `GRAIN`.
  """
  bits = fraction - GRAIN
  if bits < 1:
    raise ValueError(f'A dither is behind {GRAIN} bits of fraction, and there '
                     f'are {fraction}: take a code with more.')
  return draw(shape, bits) - (1 << (bits - 1))


def dithered(x, code: Code) -> np.ndarray:
  """Integers of real numbers, which it moves by 2^-25 at most.

  A float has zeros behind its own 24 or 53 bits; these have none.
  """
  return encode(x, code) + dither(np.shape(x), code.fraction)


def normal(shape: tuple[int, ...]) -> np.ndarray:
  """Real numbers of N(0, 1), which no seed can reproduce."""
  system = random.SystemRandom()
  count = int(np.prod(shape, dtype=int))
  found = [system.normalvariate(0.0, 1.0) for _ in range(count)]
  return np.asarray(found, np.float64).reshape(shape)


def unit(n: Any) -> Any:
  """A number that has no factor in common with n, which blinds a ciphertext."""
  g = gmp()
  while True:
    found = g.mpz(secrets.randbelow(int(n)))
    if g.gcd(found, n) == 1:
      return found
