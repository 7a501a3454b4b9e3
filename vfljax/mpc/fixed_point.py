"""Real numbers in Z_2^64: round(x 2^bits) mod 2^64, and back.

A product of codes with f and g fraction bits has f + g of them. In the
one-sided protocols every product is opened, so no shared value has to be
truncated, and 24 + 24 bits leave 15 bits of integer part: results are nearer to
float64's than float32's are. `truncate` is for opened values only: truncating
each share by itself, as SecureML does, fails with probability
2^(log2|x| + 1 - 64) an element and is not offered.

Overflow never wraps in silence: a concrete array raises, and under a trace the
`_flagged` functions return a flag beside values clipped to the range.

Codes are integers, through which JAX's gradient is 0, without a word.
`masked.autodiff.masked_layer` is what can be differentiated.
"""
import functools
import math
from typing import Any, NamedTuple

import jax
from jax import core
import jax.numpy as jnp
import numpy as np

from vfljax import check
from vfljax.mpc.x64 import Array, Ring, check_on, entry, ring_array


class Precision(NamedTuple):
  """Fraction bits of a masked layer; defaults hold |y| < 2^15, |gx| < 2^9.

  Attributes:
    inputs: Of the layer's input, f_x.
    weights: Of its weights, f_theta.
    gradients: Of the gradient at its output, f_g.
  """

  inputs: int = 24
  weights: int = 24
  gradients: int = 30


def _check_bits(bits: int, most: int) -> None:
  check.count('fraction bits', bits, 0, most)


def _reals(x: Any) -> Array | np.ndarray:
  """`x` as an array; TypeError if it is of no real numbers.

  An imaginary part would be lost, and NumPy takes texts and dates for numbers.
  """
  x = x if isinstance(x, jax.Array) else np.asarray(x)
  wrong = jnp.complexfloating, jax.dtypes.prng_key
  text = isinstance(x, np.ndarray) and x.dtype.kind in 'SUMm'
  if text or any(jnp.issubdtype(x.dtype, kind) for kind in wrong):
    raise TypeError(f'encode: x must be real; got {x.dtype}.')
  return x if isinstance(x, jax.Array) else x.astype(np.float64)


def limit(bits: int) -> float:
  """Codes with `bits` fraction bits, 0..126, hold |x| < 2^(63 - bits)."""
  _check_bits(bits, 126)
  return 2.0 ** (63 - bits)


def encode_raw(x: Array, bits: int, bound: float | None = None):
  """`encode_flagged` inside a 64-bit program; TypeError in another."""
  check_on('fixed_point.encode_raw')
  top = limit(bits) if bound is None else min(bound, limit(bits))
  x = x.astype(jnp.float64)
  bad = ~(jnp.abs(x) < top)  # Catches nan as well.
  scaled = jnp.round(x * 2.0**bits)
  # A value inside the bound keeps its code, even if it is rounded up to the
  # bound. Codes are at most the largest float64 below 2^63; NaN becomes 0.
  most = min(float(round(top * 2.0**bits)), math.nextafter(2.0**63, 0.0))
  scaled = jnp.clip(jnp.nan_to_num(scaled, nan=0.0), -most, most)
  return scaled.astype(jnp.int64), bad.any()


_encode = jax.jit(encode_raw, static_argnums=(1, 2))


def _outside(
    x: Any, bits: int, bound: float | None
) -> tuple[np.ndarray, float, np.ndarray]:
  """(values, the range's end, which of them are not below it)."""
  values = np.asarray(x, np.float64)
  top = limit(bits) if bound is None else min(bound, limit(bits))
  return values, top, ~(np.abs(values) < top)


def _report(x: Any, bits: int, bound: float | None) -> str:
  """What is out of range, how far, and what would hold it."""
  values, top, bad = _outside(x, bits, bound)
  score = np.where(np.isfinite(values), np.abs(values), np.inf) * bad
  where = np.unravel_index(int(np.argmax(score)), values.shape)
  worst = float(values[where])
  place = f'x[{", ".join(map(str, map(int, where)))}]' if where else 'x'
  text = f'encode: {place} = {worst:g} is outside the fixed-point range '
  text += f'|x| < {top:g} ({bits} fraction bits); {int(bad.sum())} of '
  text += f'{bad.size} values are.'
  if not math.isfinite(worst):
    return f'{text} No setting holds it: look for a diverged model.'
  fits = 63 - math.frexp(abs(worst))[1]  # frexp's e: |worst| < 2^e.
  text += f' It is {abs(worst) / top:.3g} times too large;'
  if fits < 0:
    return f'{text} no number of fraction bits holds it: rescale the input.'
  if bound is not None and bound < limit(bits):
    text += f' a bound above {abs(worst):g} would hold it'
    return text + (f', with bits <= {fits}.' if fits < bits else '.')
  return f'{text} bits <= {fits} would hold it.'


def encode_flagged(
    x: Any, bits: int = 24, bound: float | None = None
) -> tuple[Array, Array]:
  """Fixed-point codes and whether any value was out of range.

  Args:
    x: Real array of any float dtype; integers beyond 2^53 are rounded to
      float64's.
    bits: Fraction bits, 0..62.
    bound: The range |x| < bound, in x's units; default and most: 2^(63 - bits).

  Returns:
    (int64 like x, bool scalar). Where the flag is set, values out of range are
    clipped to it and nan is 0. Rounding is to nearest, ties to even.

  Raises:
    TypeError: if `x` is complex, or of texts or dates.
    ValueError: if `bits` is no integer in its range, or `bound` not above 0.
  """
  _check_bits(bits, 62)
  if bound is not None:
    check.inside('bound', bound, 0, np.inf, open_low=True)
  x = _reals(x)
  with jax.enable_x64(True):
    return _encode(x, bits, None if bound is None else float(bound))


def encode(x: Any, bits: int = 24, bound: float | None = None) -> Array:
  """round(x 2^bits) mod 2^64; see `encode_flagged` for arguments.

  Under a trace values cannot be checked: those outside the ring's range are
  clipped in silence, and a bound is refused. Use `encode_flagged` there.

  Raises:
    ValueError: if a concrete value is out of range or NaN, with the value, how
      far out it is and the setting that would hold it; for a bound on traced
      values.
  """
  if bound is not None and isinstance(x, core.Tracer):
    raise ValueError(
        f'encode: traced values cannot be checked against bound={bound:g} and '
        'would be clipped in silence: use encode_flagged, which returns a flag '
        'beside the codes.'
    )
  codes, bad = encode_flagged(x, bits, bound)
  if isinstance(x, core.Tracer):
    return codes
  if isinstance(bad, core.Tracer):  # A constant of a function that is traced.
    bad = _outside(x, bits, bound)[2].any()
  if bool(bad):
    raise ValueError(_report(x, bits, bound))
  return codes


def decode_raw(codes: Array, bits: int, dtype: Any) -> Array:
  """`decode` inside a 64-bit program."""
  return (codes.astype(jnp.float64) * 2.0**-bits).astype(dtype)


_decode = jax.jit(decode_raw, static_argnums=(1, 2))


def decode(codes: Ring, bits: int = 24, dtype: Any = None) -> Array:
  """codes 2^-bits.

  Args:
    codes: int64 array; after a product, with the sum of its factors' bits.
    bits: Fraction bits, 0..126.
    dtype: A float, of the result; default: JAX's current default float,
      float32 in a 32-bit program.

  Raises:
    TypeError: if codes are not int64, or `dtype` is no float.
    ValueError: if `bits` is out of range.
  """
  _check_bits(bits, 126)
  ring_array(codes, 'codes')
  dtype = jax.dtypes.canonicalize_dtype(float) if dtype is None else dtype
  dtype = jnp.dtype(dtype)
  if not jnp.issubdtype(dtype, jnp.floating):
    raise TypeError(f'decode: dtype must be a float, not {dtype}.')
  with jax.enable_x64(True):
    return _decode(codes, bits, dtype)


@entry
@jax.jit
def _near_wrap(codes: Array) -> Array:
  return ((codes > 2**62) | (codes < -(2**62))).any()


def decode_flagged(
    codes: Ring, bits: int = 24, dtype: Any = None
) -> tuple[Array, Array]:
  """`decode`, and whether a code is in the outer half of the range.

  Whether a product wrapped cannot be known for certain; results below 2^62 make
  it unlikely. Choose fraction bits with which the flag stays down.

  Returns:
    (float like codes, bool scalar: any |code| > 2^62).
  """
  return decode(codes, bits, dtype), _near_wrap(codes)


@functools.partial(jax.jit, static_argnums=1)
def _truncate(codes: Array, bits: int) -> Array:
  if bits == 0:
    return codes
  return (codes >> bits) + ((codes >> (bits - 1)) & 1)


def truncate(codes: Ring, bits: int) -> Array:
  """Drops `bits` fraction bits of opened codes: floor(codes / 2^bits + 1/2).

  Args:
    codes: int64 array, opened (see the module's docstring for shares).
    bits: 0..62.

  Raises:
    TypeError: if codes are not int64.
    ValueError: if `bits` is out of range.
  """
  _check_bits(bits, 62)
  ring_array(codes, 'codes')
  with jax.enable_x64(True):
    return _truncate(codes, bits)
