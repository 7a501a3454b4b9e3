"""Random ring elements, with the generator as a parameter.

Masks hide only as well as their generator is random. `THREEFRY` is JAX's own:
reproducible on every backend and right for simulation, where one process plays
all parties anyway; its key has 64 bits and nobody claims it to be
cryptographic. `CHACHA20` is RFC 8439's stream cipher written in uint32 JAX,
with a 256-bit key, for deployments; three to five times slower.

Streams are named, not consumed: `fold(key, layer, step, use)` gives each use
its own key, so that no stream is drawn twice however the protocol is scheduled.
"""
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax import lax
from jax.core import Tracer
from jax.extend.random import threefry_2x32
import jax.numpy as jnp
import numpy as np

from vfljax import check
from vfljax.mpc.x64 import check_on

Array = jax.Array

_SIGMA = np.frombuffer(b'expand 32-byte k', '<u4')
_QUARTERS = (
    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
)
_STREAM, _DERIVE = 0, 1  # First nonce word: what a block is for.


class Prg(NamedTuple):
  """A pseudorandom generator.

  Attributes:
    name: Its name, for records.
    fold: (key, number) -> key; an independent stream for each number, a uint32
      that may be traced; ValueError for a Python number outside that range.
    words: (key, shape) -> int64, uniform; TypeError where 64-bit types are off.
      Two calls with one key give the same words.

  Both raise TypeError for another generator's key.

  Use a key for `words` or for `fold`, never for both: with threefry, the first
  of n words is the key that `fold` returns for the number n.
  """

  name: str
  fold: Callable[[Any, Any], Any]
  words: Callable[[Any, tuple[int, ...]], Array]


def _join(low: Array, high: Array) -> Array:
  """int64 from two uint32 halves; TypeError where 64-bit types are off."""
  check_on('A random word of 64 bits')
  return low.astype(jnp.int64) | (high.astype(jnp.int64) << 32)


def _count(shape: tuple[int, ...]) -> int:
  """How many words; ValueError if a size is negative, or none."""
  for size in shape:
    check.count('A size of the shape', size, 0)
  return int(np.prod(shape, dtype=np.int64))


def _check_threefry(key: Any) -> None:
  """Passes if it is one threefry key.

  Raises:
    TypeError: if it is another generator's.
    ValueError: if it is no key, or several.
  """
  check.key(key)
  typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
  kind = jax.random.key_impl(key) if typed else f'raw one of {key.size} words'
  if str(kind) not in ('threefry2x32', 'raw one of 2 words'):
    raise TypeError(
        f'threefry takes a threefry key, not {kind}: '
        "jax.random.key(seed, impl='threefry2x32')."
    )


def _threefry_words(key: Array, shape: tuple[int, ...]) -> Array:
  """One threefry block an element.

  Not `jax.random.bits(..., uint64)`: JAX expands that when it lowers the
  outermost jit, and would cut the words there if the caller's is a 32-bit one.
  """
  _check_threefry(key)
  count = _count(shape)
  if count >= 1 << 31:
    raise ValueError(f'{count} words are more than one threefry stream holds.')
  typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
  data = jax.random.key_data(key) if typed else key
  counters = jnp.arange(2 * count, dtype=jnp.uint32)
  low, high = threefry_2x32(data, counters).reshape(2, count)
  return _join(low, high).reshape(shape)


def _rotate(x: Array, bits: int) -> Array:
  return (x << jnp.uint32(bits)) | (x >> jnp.uint32(32 - bits))


def _quarter(a: Array, b: Array, c: Array, d: Array):
  """RFC 8439, section 2.1."""
  a = a + b
  d = _rotate(d ^ a, 16)
  c = c + d
  b = _rotate(b ^ c, 12)
  a = a + b
  d = _rotate(d ^ a, 8)
  c = c + d
  b = _rotate(b ^ c, 7)
  return a, b, c, d


@jax.jit
def chacha20_blocks(key: Array, counters: Array, nonce: Array) -> Array:
  """The block function, RFC 8439 section 2.3, for many counters.

  Args:
    key: uint32 [8], little endian.
    counters: uint32 [n].
    nonce: uint32 [3], little endian.

  Returns:
    uint32 [n, 16]: n blocks of keystream, little endian.
  """
  n = counters.shape[0]
  wide = lambda words: jnp.broadcast_to(words[:, None], (words.shape[0], n))
  start = jnp.concatenate([
      wide(jnp.asarray(_SIGMA, jnp.uint32)), wide(key), counters[None],
      wide(nonce),
  ])

  def double_round(_, rows):
    rows = list(rows)
    for quarter in _QUARTERS:
      mixed = _quarter(*(rows[i] for i in quarter))
      for i, row in zip(quarter, mixed):
        rows[i] = row
    return tuple(rows)

  # A loop: unrolled, XLA:CPU does not finish compiling it.
  rows = lax.fori_loop(0, 10, double_round, tuple(start))
  return (jnp.stack(rows) + start).T


def chacha20_key(seed: bytes) -> Array:
  """A key, uint32 [8], from 32 secret bytes such as `os.urandom(32)`.

  Raises:
    ValueError: if there are not 32 bytes.
  """
  size = memoryview(seed).nbytes  # Of an array, more than its numbers.
  if size != 32:
    raise ValueError(f'ChaCha20 takes a key of 32 bytes, not {size}.')
  return jnp.asarray(np.frombuffer(seed, '<u4'), jnp.uint32)


def _check_key(key: Any) -> None:
  if getattr(key, 'dtype', None) != jnp.uint32 or key.shape != (8,):
    raise TypeError(
        'ChaCha20 takes a 256-bit key, chacha20_key(os.urandom(32)); a '
        'jax.random key has 64 bits.'
    )


def _named(number: Any) -> Any:
  """A stream's number as a uint32.

  Raises:
    TypeError: if it is an array that is not of integers. Traced integers beyond
      32 bits are cut, as they cannot be checked.
    ValueError: if it is a number, or an array of one, that does not fit.
  """
  plain = isinstance(number, (int, np.integer))
  if not plain or isinstance(number, bool):
    traced = isinstance(number, Tracer)
    number = number if traced else np.asarray(number)
    if not jnp.issubdtype(number.dtype, jnp.integer):
      raise TypeError(
          f'a stream is numbered by an integer, not {number.dtype}: 1.9 would '
          'be 1.'
      )
    if traced or number.shape:
      return jnp.asarray(number).astype(jnp.uint32)
    number = int(number)  # 2^32 would be 0, and its masks those of 0.
  if not 0 <= number < 1 << 32:
    raise ValueError(f'a stream is numbered from 0 to 2^32 - 1, not {number}.')
  # Not a JAX array, into which only an int32 fits in a 32-bit program.
  return np.uint32(number)


def _threefry_fold(key: Any, number: Any) -> Any:
  _check_threefry(key)
  return jax.random.fold_in(key, _named(number))


def _chacha20_fold(key: Array, number: Any) -> Array:
  _check_key(key)
  number = jnp.asarray(_named(number))
  fixed = jnp.zeros((), jnp.uint32)
  nonce = jnp.stack([fixed + jnp.uint32(_DERIVE), number, fixed])
  return chacha20_blocks(key, jnp.zeros((1,), jnp.uint32), nonce)[0, :8]


def _chacha20_words(key: Array, shape: tuple[int, ...]) -> Array:
  _check_key(key)
  count = _count(shape)
  blocks = -(-count // 8)
  if blocks >= 1 << 32:
    raise ValueError(f'{count} words are more than one ChaCha20 stream holds.')
  counters = jnp.arange(blocks, dtype=jnp.uint32)
  nonce = jnp.asarray([_STREAM, 0, 0], jnp.uint32)
  pairs = chacha20_blocks(key, counters, nonce).reshape(-1, 2)
  return _join(pairs[:, 0], pairs[:, 1])[:count].reshape(shape)


THREEFRY = Prg('threefry', _threefry_fold, _threefry_words)
CHACHA20 = Prg('chacha20', _chacha20_fold, _chacha20_words)
REGISTRY = {prg.name: prg for prg in (THREEFRY, CHACHA20)}


def get(prg: Prg | str) -> Prg:
  """A generator by name, or itself.

  Raises:
    ValueError: if there is none of that name.
  """
  if isinstance(prg, Prg):
    return prg
  if prg not in REGISTRY:
    raise ValueError(f'no PRG {prg!r}; there are {", ".join(REGISTRY)}.')
  return REGISTRY[prg]


def stream(prg: Prg, key: Any, *numbers: Any) -> Any:
  """The key of the stream named by `numbers`, each a uint32."""
  for number in numbers:
    key = prg.fold(key, number)
  return key
