"""Masks that hide an integer: drawn by the operating system, once each.

A number below 2^b in absolute value plus one drawn from [0, 2^(b + 64)) is as
good as the draw alone: the two distributions differ by less than 2^-63.
"""
import random
import secrets
from typing import Any

import numpy as np

from vfljax.he.encoding import integers
from vfljax.he.library import gmp

SLACK = 64  # Bits by which a mask is longer than what it hides.


def draw(shape: tuple[int, ...], bits: int) -> np.ndarray:
  """Integers in [0, 2^bits), an object array."""
  count = int(np.prod(shape, dtype=int))
  return integers([secrets.randbits(bits) for _ in range(count)], shape)


def normal(shape: tuple[int, ...]) -> np.ndarray:
  """Real numbers of N(0, 1), which no seed brings back."""
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
