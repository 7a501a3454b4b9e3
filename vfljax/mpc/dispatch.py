"""Chooses the exact scheme: by backend, shape, measurement and a self-check.

The fastest unit differs between machines that look alike to JAX: int8 digits
where there is a matrix unit (AMX), plain outer products where the 64-bit vector
multiply is one instruction. So on CPUs the schemes race once a process, on a
small chain of products: in a network the end of one is fused with the beginning
of the next, and a number may be computed again for each of its digits. TPUs use
int8 digits; GPUs use XLA's own int64 product, for convolutions that of patches.
A scheme must first give NumPy's result on extreme values and odd shapes, on
this backend: one that rounds or saturates is logged and not used.

XLA has no int64 matrix product for TPUs and int64 convolutions only for CPUs,
and it emulates float64 on a TPU: such schemes are not tried there. XLA's Triton
kernels (JAX 0.11.2, H100 and H200) return twice the product of int8 matrices
with a short inner length, unless the autotuner picks another kernel
(experiments/bench/README.md). Without Triton digits are exact on a GPU, but the
caller chooses how to compile, so they are not used on GPUs.
"""
from collections.abc import Callable, Iterable
import functools
import logging

import jax
from jax import core
import numpy as np

from vfljax import target
from vfljax.mpc import conv, racing, schemes
from vfljax.mpc.schemes import SCHEMES, Scheme

_LOG = logging.getLogger(__name__)
# Sides of a chain: large enough to be arithmetic, a millisecond or two.
_RACE = (128, 512, 256, 128)
_IMAGES, _KERNEL = (16, 28, 14, 1), (5, 5, 1, 6)  # LeNet5's first layer.
_RACERS = ('outer', 'int8_rows', 'karatsuba')
# How often the check's rows and columns are repeated, but on a CPU once. A
# GPU's compiler splits a product with few results along its inner length and
# adds the parts outside of the matrix unit, where sums wrap: a unit that
# saturates in a larger product would pass. So the check has many results.
_COPIES = 256
# Shapes at which digits were wrong on a GPU: rows, inner length and columns.
_ODD = ((3, 5, 4), (16, 1, 16), (1, 7, 300), (130, 33, 257), (2880, 9, 2))
_EXTREMES = (-(2**63), -1, 2**63 - 1, 0x7F7F7F7F7F7F7F80)


def wrap_matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
  """The reference, a @ b mod 2^64 by NumPy's integers; slow."""
  return (a.view(np.uint64) @ b.view(np.uint64)).view(np.int64)


def _problem(length: int) -> tuple[np.ndarray, np.ndarray]:
  """[6, length] and [length, 6]: constant extremes, then random elements."""
  rng = np.random.default_rng(0)
  a = rng.integers(-(2**63), 2**63 - 1, (6, length), np.int64, endpoint=True)
  b = rng.integers(-(2**63), 2**63 - 1, (length, 6), np.int64, endpoint=True)
  for i, value in enumerate(_EXTREMES):
    a[i] = value
    b[:, i] = value
  return a, b


def _odd_problems() -> Iterable[tuple[np.ndarray, np.ndarray]]:
  """Random elements, a fifth of which are extremes."""
  rng = np.random.default_rng(1)
  for m, k, n in _ODD:
    a, b = (
        rng.integers(-(2**63), 2**63 - 1, shape) for shape in ((m, k), (k, n))
    )
    for x in (a, b):
      x.flat[::5] = rng.choice(_EXTREMES, len(x.flat[::5]))
    yield a, b


def _wrong(platform: str, scheme: Scheme) -> tuple[int, int]:
  """Runs the check: (number of wrong values, number of all)."""
  a, b = _problem(scheme.length or 100)
  want = wrap_matmul(a, b)
  if platform == 'cpu':
    out, = racing.compiled(platform, _products(scheme), (a, b))()
    return int((out != want).sum()), out.size
  # As they are multiplied there.
  columns = _COPIES // 8 if scheme.name == 'int8_toeplitz' else _COPIES
  odd = list(_odd_problems())
  large = np.tile(a, (_COPIES, 1)), np.tile(b, (1, columns))
  outs = racing.compiled(platform, _products(_whole(scheme)), large, *odd)()
  wants = [np.tile(want, (_COPIES, columns)), *(wrap_matmul(*p) for p in odd)]
  wrong = sum(int((out != w).sum()) for out, w in zip(outs, wants))
  return wrong, sum(out.size for out in outs)


def _whole(scheme: Scheme) -> Scheme:
  """The scheme for an accelerator, without blocks for a CPU's caches."""
  return scheme._replace(rows=None, positions=1 << 17)


def _products(scheme: Scheme) -> Callable[..., list]:
  """A function: pairs of matrices -> the list of their products."""
  return lambda *pairs: [schemes.matmul(scheme, *pair) for pair in pairs]


def fault(platform: str, scheme: Scheme) -> str | None:
  """Why `scheme` may not be used on `platform`; `None` if it is exact there."""
  try:
    wrong, count = _wrong(platform, scheme)
  except Exception as error:  # Any refusal by a backend means: the next one.
    return f'it fails: {type(error).__name__}: {error}'.splitlines()[0]
  return f'{wrong} of {count} check values are wrong' if wrong else None


@functools.cache
def exact(platform: str, name: str) -> bool:
  """The self-check, once for each backend and scheme; failures are logged.

  For a platform without a device here (`jax.export`) nothing can be checked:
  that is logged, and the scheme is taken for exact.
  """
  if not _is_here(platform):
    _LOG.warning('mpc: scheme %s is unchecked: no %s is here', name, platform)
    return True
  reason = fault(platform, SCHEMES[name])
  if reason:
    _LOG.warning(
        'mpc: scheme %s is not used on %s: %s', name, platform, reason
    )
  return reason is None


def _is_here(platform: str) -> bool:
  try:
    return bool(jax.devices(platform))
  except RuntimeError:
    return False


@functools.cache
def ranking(platform: str) -> tuple[str, ...]:
  """The schemes for large products on a CPU, fastest first, by one race."""
  rng = np.random.default_rng(0)
  chain = [_random(rng, size) for size in zip(_RACE, _RACE[1:])]

  def product(name):
    multiply = functools.partial(schemes.matmul, SCHEMES[name])
    return lambda *chain: functools.reduce(multiply, chain)

  rivals = {name: product(name) for name in _RACERS if exact(platform, name)}
  return racing.order(platform, rivals, *chain)


@functools.cache
def _outer_wins_of_one_channel(platform: str) -> bool:
  """Whether outer products beat XLA's loop where an image has one channel."""
  if not exact(platform, 'outer'):
    return False
  rng = np.random.default_rng(0)
  x, w = _random(rng, _IMAGES), _random(rng, _KERNEL)
  win = conv.window(x.shape, w.shape)

  def convolved(name):
    return lambda x, w: conv.forward(SCHEMES[name], x, w, win)

  rivals = {name: convolved(name) for name in ('outer', 'naive')}
  return racing.order(platform, rivals, x, w)[0] == 'outer'


def _random(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
  return rng.integers(-(2**62), 2**62, shape, np.int64)


def _on_cpu(platform: str, n: int) -> tuple[str, ...]:
  """Schemes in the order of the race, then XLA's own int64 product.

  For few columns int8 digits are arranged in one dot, which is cheaper.
  """
  int8 = 'int8_toeplitz' if n <= 16 else 'int8_rows'
  order = ranking(platform)
  return *(int8 if name == 'int8_rows' else name for name in order), 'naive'


def _first(platform: str, names: Iterable[str]) -> Scheme:
  """The first scheme that is exact there.

  Raises:
    RuntimeError: if none is.
  """
  for name in names:
    if exact(platform, name):
      return SCHEMES[name]
  raise RuntimeError(
      f'no scheme multiplies int64 exactly on {platform}; see the log for each.'
  )


def _on_tpu(m: int, k: int, n: int) -> Scheme:
  """Int8 digits; one launch where launches would dominate; never in blocks.

  Sums of outer products, which need no matrix unit, are the last resort.
  """
  small = m * k * n <= 1 << 27
  first = 'int8_toeplitz' if small else 'int8_merged'
  return _whole(_first('tpu', (first, 'int8_merged', 'outer')))


def for_matmul(platform: str, m: int, k: int, n: int) -> Scheme:
  """The scheme for [m, k] @ [k, n]."""
  if platform == 'tpu':
    return _on_tpu(m, k, n)
  if platform != 'cpu':
    return _whole(_first(platform, ('naive', 'outer')))
  tiny = m * k * n <= 1 << 15
  if tiny or n <= 16 and k * n <= 1 << 13:  # The right side stays in the cache.
    return SCHEMES['naive']
  return _first(platform, _on_cpu(platform, n))


def for_conv(
    platform: str, positions: int, taps: int, c: int, o: int
) -> Scheme:
  """The scheme for a convolution: `positions` rows, c -> o channels a group."""
  if platform == 'tpu':
    return _on_tpu(positions, taps * c, o)
  if platform != 'cpu':
    return _whole(_first(platform, ('patches', 'outer')))
  # XLA's own int64 loop wins while the kernel fits in the first-level cache. Of
  # one channel patches are cheap, and the processor decides.
  if taps * c * o <= 1 << 12 and min(c, o) < 16 and o < 32:
    cheap = c == 1 < o and _outer_wins_of_one_channel(platform)
    return SCHEMES['outer' if cheap else 'naive']
  return _first(platform, _on_cpu(platform, o))


def platform_of(*arrays) -> str:
  """Where a computation on `arrays` will run: 'cpu', 'gpu', 'tpu', ..."""
  if target.named():
    return target.named()
  for x in arrays:
    if isinstance(x, jax.Array) and not isinstance(x, core.Tracer):
      return next(iter(x.devices())).platform
  device = getattr(jax.config, 'jax_default_device', None)
  if device is None:
    return jax.default_backend()
  return device if isinstance(device, str) else device.platform
