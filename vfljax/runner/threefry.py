"""Random bits on CPUs in one kernel, where JAX makes a loop of ten.

Threefry 2x32 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
SC 2011) mixes two words in 20 rounds. JAX compiles them as a loop on CPUs; in a
training that draws few numbers at a time, starting the loop's kernels takes
longer than what they do. Written out, XLA makes one kernel of them: the same
bits, sooner.
"""
import jax
from jax.extend.core.primitives import threefry2x32_p
from jax.interpreters import mlir
import numpy as np

from vfljax.types import Array

_ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)
_PARITY = np.uint32(0x1BD11BDA)


@jax.jit
def bits(k1: Array, k2: Array, x1: Array, x2: Array) -> tuple[Array, Array]:
  """Threefry 2x32 of the key's two words and the counter's, uint32."""
  # A key is made once, not wherever it is read: keys of keys of keys would grow
  # by a factor each, and XLA compile for minutes (JAX 0.11).
  k1, k2 = jax.lax.optimization_barrier((k1, k2))
  keys = k1, k2, k1 ^ k2 ^ _PARITY
  a, b = x1 + keys[0], x2 + keys[1]
  for i in range(5):
    for r in map(np.uint32, _ROTATIONS[i % 2]):
      a = a + b
      b = a ^ (b << r | b >> np.uint32(32) - r)
    a = a + keys[(i + 1) % 3]
    b = b + keys[(i + 2) % 3] + np.uint32(i + 1)
  return a, b


def in_one_kernel() -> None:
  """Has JAX compile it so, on the CPUs of this process, from now on."""
  rule = mlir.lower_fun(bits, multiple_results=True)
  mlir.register_lowering(threefry2x32_p, rule, platform='cpu', inline=False)
