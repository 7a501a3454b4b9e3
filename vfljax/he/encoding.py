"""Real numbers as integers of a checked range: x is round(x 2^fraction).

Ciphertexts hold integers. An encrypted number's bits of fraction cost nothing,
but a plain factor's bits do, because a product is a power with that exponent.
So factors have fewer bits.
"""
from collections.abc import Iterable
import math
import numbers
from typing import NamedTuple

import numpy as np

from vfljax import check


class Code(NamedTuple):
  """How a number becomes an integer.

  Attributes:
    fraction: Bits behind the point, 0 or more: errors are 2^-(fraction + 1).
    bits: Bits of the integer without its sign: |x| < 2^(bits - fraction).
  """

  fraction: int
  bits: int

  def check(self) -> None:
    """Passes if it is one.

    Raises:
      ValueError: for numbers that are none of bits: negative, none or not
        whole.
    """
    check.count('Bits of fraction', self.fraction, 0)
    check.count('Bits', self.bits)


VALUES = Code(40, 56)  # What is encrypted: |x| < 65536.
FACTORS = Code(24, 40)  # Plain factors: |x| < 65536.
SLOPES = Code(32, 40)  # Plain factors that are small, gradients: |x| < 256.


def encode(x, code: Code) -> np.ndarray:
  """Integers of `x`, an object array of its shape.

  Args:
    x: Real numbers, an array of any shape.
    code: How.

  Raises:
    ValueError: for NaN and infinity, for what is no real number, for a code of
      no bits or of negative ones, and for a number that is too large; says
      which one, and how many bits it takes.
  """
  code.check()
  check.count('Bits of fraction', code.fraction, 0, 1000)
  given = reals(x)
  wrong = ~np.isfinite(given)
  if wrong.any():
    at = tuple(map(int, np.argwhere(wrong)[0]))
    raise ValueError(f'{given[at]} at {at} cannot be encoded: training has '
                     'diverged; take a smaller learning rate.')
  # What is far too large is not scaled, which would overflow.
  far = np.abs(given) >= 2.0 ** 512
  scaled = np.rint(np.ldexp(np.where(far, 0, given), code.fraction))
  if scaled.size:
    at = np.unravel_index(np.abs(given).argmax(), scaled.shape)
    size = int(abs(scaled[at])).bit_length()
    if far[at]:
      size = math.frexp(given[at])[1] + code.fraction
    if size > code.bits:
      raise ValueError(
          f'{given[at]:.3g} at {tuple(map(int, at))} takes {size} bits, '
          f'{code.fraction} of them behind the point; there is room for '
          f'{code.bits}. Scale the features or the weights down, below '
          f'{2.0 ** (code.bits - code.fraction):g}.'
      )
  return integers([int(one) for one in scaled.flat], scaled.shape)


def reals(x) -> np.ndarray:
  """An array of float64.

  Raises:
    ValueError: for complex numbers, whose imaginary part would be lost, for
      texts and dates, which NumPy takes for numbers, and for an integer beyond
      float64.
  """
  given = np.asarray(x)
  if given.dtype.kind in 'cSUMm':
    what = 'Complex numbers' if given.dtype.kind == 'c' else 'Texts or dates'
    raise ValueError(f'{what} cannot be encoded: real ones are expected.')
  try:
    return given.astype(np.float64)
  except OverflowError:
    raise ValueError('An integer is larger than any float64, which encoded '
                     'numbers are first: scale it down.') from None


def decode(values: np.ndarray, fraction: int) -> np.ndarray:
  """Real numbers, float64, of integers with `fraction` bits of fraction.

  Raises:
    ValueError: for a number that is larger than float64 has any, and for bits
      of fraction that are negative or not whole.
  """
  check.count('Bits of fraction', fraction, 0)
  one = 1 << fraction
  try:
    found = [int(value) / one for value in values.flat]
  except OverflowError:
    large = max(int(abs(value)).bit_length() for value in values.flat)
    raise ValueError(
        f'A number of {large} bits is larger than any float64: is a mask still '
        'on it?'
    ) from None
  return np.asarray(found, np.float64).reshape(values.shape)


def integers(values: Iterable[int], shape: tuple[int, ...]) -> np.ndarray:
  """An object array of integers of any length."""
  found = list(values)
  out = np.empty(len(found), object)
  out[:] = found
  return out.reshape(shape)


def bounded(values: np.ndarray, bits: int) -> np.ndarray:
  """`values`, if they are integers below 2^bits in absolute value.

  Raises:
    ValueError: if not; says how many bits the largest takes.
  """
  check.count('Bits', bits, 0)
  for value in values.flat:
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
      raise ValueError(f'{value!r} is no integer: encode it first.')
  large = max((int(abs(v)).bit_length() for v in values.flat), default=0)
  if large > bits:
    raise ValueError(f'An integer of {large} bits; there is room for {bits}.')
  return values


def shifted(values: np.ndarray, by: int) -> np.ndarray:
  """Integers times 2^by, rounded to the nearest where `by` is negative.

  Raises:
    ValueError: if `by` is no whole number.
  """
  if not isinstance(by, numbers.Integral) or isinstance(by, bool):
    raise ValueError(f'by must be a whole number of bits; got {by!r}.')
  if by >= 0:
    moved = [int(value) << by for value in values.flat]
  else:
    half = 1 << (-by - 1)
    moved = [(int(value) + half) >> -by for value in values.flat]
  return integers(moved, values.shape)
