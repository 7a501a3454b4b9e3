"""Arithmetic that XLA does not do well by itself: tiny norms, sorts, orders.

Norms of rows whose squares underflow; floats as integers of the same order;
ranks; random permutations without a sort.
"""
from collections.abc import Callable
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from vfljax import target
from vfljax.types import Array, Key

_ROUNDS = 6
_SMALL = 256
# A walk of fixed length leaves a number outside with probability 2^-40, in loop
# bodies of so many steps. A walk by a table needs one jump, except in 2^-3.
_CERTAINTY = 40
_STEPS = 8
_ONE_JUMP = 3


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

  0 where a row is 0, and NaN where it is not finite: a training that diverged
  has no directions.
  """
  d = d.reshape(len(d), -1)
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
  bits = lax.bitcast_convert_type(jnp.where(x == 0, 0, x), integer)
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


def permutation(key: Key, n: int) -> Array:
  """A random permutation of 0..n-1, int32 [n], without a sort.

  `jax.random.permutation` sorts, and is the hot spot of small models' training.
  A keyed bijection of the integers does not: an alternating Feistel network
  with a hash as round function (Luby and Rackoff 1988) permutes [0, 2^b), and
  stepping again from whatever falls outside [0, n) ("cycle walking", Black and
  Rogaway 2002) makes that a permutation of [0, n). Domains of a few bits leave
  a Feistel network too few keys to look random (chi-square tests fail at n =
  40), so few samples are sorted after all, which is cheap there.

  On a CPU a table of all numbers outside [0, n), whose jumps are doubled
  ("pointer jumping", Wyllie 1979), leads them back, so that each number is
  mixed once. An accelerator would have to ask its host whether all numbers are
  inside, so it takes a fixed number of steps, which leaves a number outside in
  one of 2^40 permutations (it then becomes n - 1, twice). Otherwise both give
  the same permutations.

  Args:
    key: Each key gives a permutation of its own.
    n: 1 to 2^31 - 1; static.
  """
  if n <= _SMALL:
    return jax.random.permutation(key, n).astype(jnp.int32)
  bits = (n - 1).bit_length()
  keys = jax.random.bits(key, (_ROUNDS,), jnp.uint32)
  cipher = lambda i: _feistel(i, keys, bits)
  start = cipher(lax.iota(jnp.uint32, n))
  if n == 2**bits:
    return start.astype(jnp.int32)
  walk = _walk_by_table if target.kind() == 'cpu' else _walk_by_steps
  return walk(start, cipher, n, bits).astype(jnp.int32)


def _walk_by_steps(
    start: Array, cipher: Callable[[Array], Array], n: int, bits: int
) -> Array:
  """The first number inside [0, n) of each walk from `start`, uint32 [n]."""
  def several_steps(_, i):
    for _ in range(_STEPS):
      i = jnp.where(i < jnp.uint32(n), i, cipher(i))
    return i

  steps = _enough_steps(n, bits, _CERTAINTY)
  walked = lax.fori_loop(0, -(-steps // _STEPS), several_steps, start)
  return jnp.minimum(walked, jnp.uint32(n - 1))


def _walk_by_table(
    start: Array, cipher: Callable[[Array], Array], n: int, bits: int
) -> Array:
  """As `_walk_by_steps`, by a table of jumps over several steps.

  The table has a row for each number outside: a later number of its walk, or
  the first one inside. At first that is one step on. Looking up each row's
  entry in the table itself doubles all jumps, until most walks need only one.
  """
  first_outside = jnp.uint32(n)
  rows = 2**bits - n
  last_row = jnp.uint32(rows - 1)

  def jump(table, i):
    # A number inside has no row: it looks up any, and stays where it is.
    row = jnp.minimum(i - first_outside, last_row)
    there = table.at[row].get(mode='promise_in_bounds')
    return jnp.where(i < first_outside, i, there)

  table = cipher(first_outside + lax.iota(jnp.uint32, rows))
  doublings = (_enough_steps(n, bits, _ONE_JUMP) - 1).bit_length()
  table = lax.fori_loop(0, doublings, lambda _, t: jump(t, t), table)
  # One kernel that ciphers and looks up would do neither on vectors.
  start = lax.optimization_barrier(start)
  # Asks the walks, not the table: its rows on a cycle outside never lead
  # inside, but no walk that began inside meets them.
  return lax.while_loop(
      lambda i: ~(i < first_outside).all(), lambda i: jump(table, i),
      jump(table, start),
  )


def _enough_steps(n: int, bits: int, certainty: int) -> int:
  """Steps after which all of 0..n-1 are inside, except with 2^-certainty.

  A step leaves a number outside with probability 1 - n / 2^bits.
  """
  if not (outside := 1 - n / 2**bits):
    return 0
  return math.ceil((math.log2(n) + certainty) / -math.log2(outside))


def _feistel(i: Array, keys: Array, bits: int) -> Array:
  low_bits = bits // 2
  low_mask = jnp.uint32((1 << low_bits) - 1)
  high_mask = jnp.uint32((1 << (bits - low_bits)) - 1)
  low, high = i & low_mask, i >> low_bits
  for r in range(_ROUNDS):
    if r % 2:
      high = high ^ (_mix(low ^ keys[r]) & high_mask)
    else:
      low = low ^ (_mix(high ^ keys[r]) & low_mask)
  return low | (high << low_bits)


def _mix(x: Array) -> Array:
  """A 32-bit integer hash in which every input bit affects every output bit."""
  x = (x ^ (x >> 16)) * jnp.uint32(0x7FEB352D)
  x = (x ^ (x >> 15)) * jnp.uint32(0x846CA68B)
  return x ^ (x >> 16)


def floating(x: Array) -> Array:
  """At least 32-bit floats, which `as_integers` can reinterpret."""
  x = jnp.asarray(x)
  return x.astype(common_type(x, 1.0, jnp.float32))


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
