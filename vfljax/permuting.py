"""Random permutations without a sort."""
from collections.abc import Callable
import math

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
