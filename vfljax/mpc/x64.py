"""64-bit integers for a 32-bit caller, by a decorator on public functions.

JAX cuts types to 32 bits unless a global switch is set, and a library must not
set it. `entry` turns 64-bit types on around one whole `jax.jit`, whose
arguments and results are int64 arrays; the rest of the program is not affected.

What works, from a program that never enabled 64-bit types: eager calls with
NumPy or JAX int64, calls inside the caller's `jit`, `grad`, `vmap`, `scan` and
`cond`, and `scan` inside `vmap`. What cannot: NumPy int64 passed as an argument
to the caller's own 32-bit `jit` is cut to int32 by JAX before we see it (we
raise), and an int64 array may be stored, passed and returned by 32-bit code but
not computed with there (JAX cuts new constants): use `ring.add` and the like.

JAX repeats some calls when it batches a scan or lowers the outermost jit, and
then with 64-bit types off: code under `entry` must not name a 64-bit dtype in a
dot, nor draw 64-bit random words (see `digits.dot` and `prg`).

For a program that is 64-bit as a whole, make its outermost `jit` with this
file's (or wrap it in `jax.enable_x64(True)`) and use `vfljax.mpc.kernels`,
which hold the same arithmetic without the switch.
"""
from collections.abc import Callable
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import target

# XLA:CPU uses 256-bit vectors by default; with 512 bits int64 products are up
# to 1.6 times as fast. Processors without them are not affected.
WIDE: dict[str, Any] = {'xla_cpu_prefer_vector_width': 512}

Array = jax.Array
Ring = jax.Array | np.ndarray  # int64, read modulo 2^64


def entry(fn: Callable[..., Any]) -> Callable[..., Any]:
  """Runs `fn` with 64-bit types on; `fn` should be one whole `jax.jit`."""

  @functools.wraps(fn)
  def call(*args, **kwargs):
    with jax.enable_x64(True):
      return fn(*args, **kwargs)

  return call


def jit(fn: Callable[..., Any], **options: Any) -> Callable[..., Any]:
  """The outermost `jax.jit` of a 64-bit program; on a CPU with wide vectors.

  Args:
    fn: What to compile.
    **options: Of `jax.jit`; its `compiler_options` come before `WIDE`.

  Returns:
    A function like `fn`. It cannot be called inside another `jit`, where JAX
    raises ValueError: a compiler's options are a whole program's.
  """
  wide = WIDE if target.kind() == 'cpu' else {}
  chosen = wide | (options.pop('compiler_options', None) or {})
  return entry(jax.jit(fn, compiler_options=chosen or None, **options))


def check_on(name: str) -> None:
  """Passes where 64-bit types are on.

  Raises:
    TypeError: if not. JAX would go on with 32 bits, and a mask of 32 bits shows
      the other half of a word.
  """
  if jax.dtypes.canonicalize_dtype(jnp.int64) != jnp.int64:
    raise TypeError(
        f'{name} needs 64-bit types: wrap the outermost jit in '
        'jax.enable_x64(True), or make it with vfljax.mpc.jit.'
    )


def ring_array(
    x: Any, name: str, rank: int = 0, shape: tuple[int, ...] | None = None
) -> Ring:
  """Checks that `x` is an int64 array of at least `rank` axes, or of `shape`.

  Raises:
    TypeError: if it has another dtype. Nothing is converted: an int32 here is
      nearly always an int64 that 32-bit JAX has already cut.
    ValueError: if it has too few axes or another shape. A mask that is
      broadcast would hide several numbers with the same words.
  """
  if not isinstance(x, (jax.Array, np.ndarray)) or x.dtype != jnp.int64:
    what = getattr(x, 'dtype', type(x).__name__)
    what = f'NumPy scalar {what}' if isinstance(x, np.generic) else what
    raise TypeError(
        f'{name} must be an int64 array of ring elements, not {what}; in '
        '32-bit JAX keep ring elements in NumPy int64 or in arrays made by '
        'vfljax.mpc.'
    )
  if x.ndim < rank:
    raise ValueError(
        f'{name} needs at least {rank} axes; its shape is {x.shape}.'
    )
  if shape is not None and x.shape != tuple(shape):
    raise ValueError(f'{name} must be of shape {shape}; it is {x.shape}.')
  return x
