"""Arithmetic that XLA does not do well by itself.

Norms of rows whose squares underflow, products in full precision, medians and
ranks without a sort of floats.
"""
from collections.abc import Callable
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
import numpy as np

from vfljax import target
from vfljax.types import Array


def row_norms(d: Array) -> Array:
  """2-norms [batch] of the rows of d [batch, width].

  Late in training a cut-layer gradient is smaller than 1e-19, whose square is 0
  in 32 bits: every row is scaled by its largest entry first.
  """
  largest = jnp.abs(d).max(axis=-1, initial=0)
  scale = jnp.where(largest > 0, largest, 1)
  return scale * safe_sqrt(jnp.sum((d / scale[:, None]) ** 2, axis=-1))


def directions(d: Array) -> Array:
  """Rows of d [batch, ...] scaled to length 1, [batch, width].

  0 where a row is 0 or too long for its type, and NaN where it is not finite: a
  training that diverged has no directions. Half precision becomes float32.
  """
  d = floating(d).reshape(len(d), math.prod(d.shape[1:]))
  lengths = row_norms(d)[:, None]
  zero = lengths == 0
  return jnp.where(zero, 0, d / jnp.where(zero, 1, lengths))


def exact(a: Array, b: Array) -> Array:
  """a @ b in the operands' own precision.

  Accelerators round the factors of float32 products to TF32 or bfloat16 unless
  told otherwise: layer recovery would then find theta_r with errors of 4e-4 and
  3e-3, in place of 2e-8.
  """
  return jnp.matmul(a, b, precision=lax.Precision.HIGHEST)


def svd(x: Array) -> tuple[Array, Array, Array]:
  """The thin singular value decomposition of x [m, n], largest values first.

  Returns:
    Left vectors [m, r], values [r] and right vectors [r, n], r = min(m, n).
  """
  thin = lambda x: tuple(jnp.linalg.svd(x, full_matrices=False))
  return _one_by_one(thin)(x)


def eigh(x: Array) -> tuple[Array, Array]:
  """Eigenvalues [n], ascending, and vectors [n, n] of a symmetric x [n, n]."""
  return _one_by_one(lambda x: tuple(jnp.linalg.eigh(x)))(x)


def _one_by_one(fn: Callable[[Array], Any]) -> Callable[[Array], Any]:
  """`fn`, which under `vmap` a CPU computes one after the other.

  Several batches of decompositions at a time may deadlock, reproducibly with
  JAX 0.10. Our guess at the cause: jaxlib spreads a batch over XLA's threads
  from one of them, which waits for the others, so that as many batches as there
  are threads have no thread left.
  """
  if target.kind() != 'cpu':
    return fn
  return jax.custom_batching.sequential_vmap(fn)


def arrays(*parts: Any) -> tuple[Any, ...]:
  """Lists and columns of data frames as NumPy's arrays; others as they are.

  Raises:
    ValueError: for texts and other objects.
  """
  kept = jax.Array, np.ndarray, type(None)
  found = tuple(x if isinstance(x, kept) else np.asarray(x) for x in parts)
  for x in found:
    _check_numbers(x)
  return found


def _check_numbers(x: Any) -> None:
  """Raises ValueError for NumPy's arrays of texts, dates and other objects."""
  if isinstance(x, np.ndarray) and x.dtype.kind in 'USTOMm':
    names = ''
    if x.dtype.kind in 'UST':
      names = (
          ' Names of classes become class numbers by '
          'numpy.searchsorted(classes, names), with all classes in order.'
      )
    raise ValueError(
        f'Numbers are needed here; got an array of {x.dtype}.{names}'
    )


def common_type(*parts: Any) -> Any:
  """The dtype to which JAX promotes these arrays, numbers and dtypes.

  `jnp.result_type`, also where implicit promotion is forbidden
  (`jax_numpy_dtype_promotion='strict'`), since callers cast explicitly.
  """
  with jax.numpy_dtype_promotion('standard'):
    return jnp.result_type(*parts)


def along_last(v: Array, like: Array) -> Array:
  """v [width] with as many axes as `like`, to broadcast along its last one.

  Explicit, since JAX can be set to forbid rank promotion.
  """
  return v.reshape(*[1] * (like.ndim - 1), -1)


def as_integers(x: Array) -> Array:
  """Integers that compare as the floats `x` do.

  On a CPU XLA's sort of 32-bit integers is about five times as fast as that of
  floats or of pairs, which shows in an AUC or a defense that sorts every round.

  Args:
    x: 32- or 64-bit floats; infinities are fine, NaN comes last (or first, if
      its sign bit is set).

  Returns:
    Integers of the same width.
  """
  integer = jnp.int64 if x.dtype.itemsize == 8 else jnp.int32
  plain = lax.bitcast_convert_type(jnp.where(x == 0, 0, x), integer)
  bits = lax.bitcast_convert_type(x, integer)
  # Of -0.0 alone: a CPU takes what is below 1e-38 for 0, too.
  bits = jnp.where(bits == jnp.iinfo(integer).min, plain, bits)
  return jnp.where(bits < 0, bits ^ jnp.iinfo(integer).max, bits)


def as_floats(x: Array) -> Array:
  """The floats of which `as_integers` made the integers `x`."""
  real = jnp.float64 if x.dtype.itemsize == 8 else jnp.float32
  bits = jnp.where(x < 0, x ^ jnp.iinfo(x.dtype).max, x)
  return lax.bitcast_convert_type(bits, real)


def masked_median(x: Array, mask: Array) -> Array:
  """Median [width] of the rows of x [n, width] where mask [n] is true.

  The mean of the two in the middle of an even number; 0 where there are none.
  """
  count, keys = mask.sum(), as_integers(floating(x)).T
  last = jnp.iinfo(keys.dtype).max
  ordered = lax.sort(jnp.where(mask, keys, last), is_stable=False)
  middle = jnp.stack([(count - 1) // 2, count // 2]).clip(0, len(x) - 1)
  found = jnp.where(count > 0, ordered[:, middle], 0)  # `last` is a NaN.
  return (as_floats(found).sum(-1) / 2).astype(x.dtype)


@jax.jit(inline=True)  # Outside of `jit` a new loop is compiled at each call.
def counts_below(ordered: Array, x: Array) -> Array:
  """How many of `ordered` [n], which ascends, are below each of `x`.

  As `searchsorted`, by a loop of one kernel: faster to compile, and faster for
  small n. It finds the counts bit by bit, from the highest.
  """
  # From both: in `shard_map` a loop's first value must vary as later ones do.
  n, none = len(ordered), jnp.zeros_like(x, jnp.int32)
  if not n:
    return none
  none = none + jnp.zeros_like(ordered[0], jnp.int32)

  def step(i, found):
    more = found + ((1 << n.bit_length()) >> (i + 1))
    last = jnp.minimum(more, n) - 1
    fits = ordered.at[last].get(mode='promise_in_bounds') < x
    return jnp.where((more <= n) & fits, more, found)

  return lax.fori_loop(0, n.bit_length(), step, none)


def floating(x: Array) -> Array:
  """At least 32-bit floats, which `as_integers` can reinterpret."""
  words = isinstance(x, list | tuple) and any(isinstance(w, str) for w in x)
  _check_numbers(np.asarray(x, 'U') if words else x)
  x = jnp.asarray(x)
  return x.astype(common_type(x, 1.0, jnp.float32))


def side_by_side(features: Any) -> Array:
  """A party's features as one array: several are flattened to [n, width]."""
  parts = jax.tree.leaves(features)
  if len(parts) == 1:
    return parts[0]
  flat = [floating(x).reshape(len(x), -1) for x in parts]
  return jnp.concatenate(flat, axis=-1)


def safe_sqrt(x: Array) -> Array:
  """Square root, 0 below 0 and NaN for NaN; its derivative up to 0 is 0."""
  return jnp.where(x <= 0, 0, jnp.sqrt(jnp.where(x <= 0, 1, x)))


def sharpen(p: Array, temperature: float) -> Array:
  """p^(1 / temperature), normalized over the last axis.

  By logarithms, so that high powers of small numbers do not underflow.

  Args:
    p: [..., classes] probabilities.
    temperature: Above 0; below 1 the largest probability grows.
  """
  return jax.nn.softmax(jnp.log(p) / temperature)


def in_blocks(fn: Callable[[Any], Any], rows: Any, size: int) -> Any:
  """`fn` of blocks of rows, one after the other; of one block at once.

  For what is computed row by row, and would take too much memory for all.

  Args:
    fn: Maps a tree of arrays [size, ...] to one with as many rows. It also
      gets copies of the last row, which fill its block and are left out: not
      zeros, at which a norm has no gradient.
    rows: A tree of arrays [n, ...].
    size: Rows a block, 1 or more.
  """
  n = len(jax.tree.leaves(rows)[0])
  if n <= size:
    return fn(rows)
  count = -(-n // size)

  def cut(x):
    surplus = ((0, count * size - n), *[(0, 0)] * (x.ndim - 1))
    padded = jnp.pad(x, surplus, mode='edge')
    return padded.reshape(count, size, *x.shape[1:])

  found = lax.map(fn, jax.tree.map(cut, rows))
  return jax.tree.map(
      lambda y: y.reshape(count * size, *y.shape[2:])[:n], found
  )
