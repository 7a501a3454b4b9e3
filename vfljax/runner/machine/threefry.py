"""Draws random bits on CPUs in one kernel, where JAX uses a loop of ten.

Threefry 2x32 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
SC 2011) mixes two words in 20 rounds. On CPUs JAX compiles them as a loop. If
few numbers are drawn at a time, starting the loop's kernels takes longer than
their work. From the rounds written out, XLA makes one kernel: the same bits,
sooner.
"""
import jax
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.core.primitives import threefry2x32_p
from jax.interpreters import mlir
import jax.numpy as jnp
import numpy as np

from vfljax.types import Array

_ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)
_PARITY = np.uint32(0x1BD11BDA)


def bits(k1: Array, k2: Array, x1: Array, x2: Array) -> tuple[Array, Array]:
  """Threefry 2x32 of a key (k1, k2) and a counter (x1, x2), all uint32.

  It is a function that XLA may not inline. XLA would copy the 20 rounds into
  each kernel that reads the bits, and the rounds of a split key into all draws
  from its parts, which takes long to compile.
  """
  with set_xla_metadata(inlineable='false'):
    both = _words(k1, k2, x1, x2)
  return both[0], both[1]


@jax.jit
def _words(*arguments: Array) -> Array:
  """Both words, [2, ...].

  One kernel mixes both words for each element and keeps one of them. Two
  kernels would be twice the code.
  """
  # Only `lax`, because functions of jnp would not be inlined here either.
  shape = 2, *jnp.broadcast_shapes(*(x.shape for x in arguments))
  k1, k2, x1, x2 = (_broadcast(x, shape) for x in arguments)
  keys = k1, k2, k1 ^ k2 ^ _PARITY
  a, b = x1 + keys[0], x2 + keys[1]
  for i in range(5):
    for r in map(np.uint32, _ROTATIONS[i % 2]):
      a = a + b
      b = a ^ (b << r | b >> np.uint32(32) - r)
    a = a + keys[(i + 1) % 3]
    b = b + keys[(i + 2) % 3] + np.uint32(i + 1)
  first = lax.broadcasted_iota(np.int32, shape, 0) == 0
  return lax.select(first, a, b)


def _broadcast(x: Array, shape: tuple[int, ...]) -> Array:
  last = range(len(shape) - x.ndim, len(shape))
  return lax.broadcast_in_dim(x, shape, tuple(last))


def in_one_kernel() -> None:
  """Makes JAX use `bits` on CPUs in this process from now on."""
  rule = mlir.lower_fun(bits, multiple_results=True)
  mlir.register_lowering(threefry2x32_p, rule, platform='cpu', inline=False)
