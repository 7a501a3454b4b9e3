"""Ring products mod 2^64 beside other products, in one process.

  python -m experiments.bench.ring --out=experiments/bench/ring.json

Only ratios within one run mean anything: on a shared machine times vary by a
factor of two. All contestants of a shape take turns, a few calls in each turn
with a rest between, and the best call of each counts. They are naive XLA int64;
a float64 GEMM of the same shape (which computes something else, and is the
reference of the targets); PyTorch's int64 if it is installed; each of our exact
schemes, and the one that the dispatcher chooses. Then whole passes of a masked
layer are timed beside the plain float32 layer. All of XLA's programs use
vectors of 512 bits, as in `mpc.jit`.
"""
import argparse
from collections.abc import Callable
import datetime
import json
import os
import pathlib
import time
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from experiments.bench import records
from vfljax.mpc import (
    beaver, bilinear, conv, dispatch, fixed_point, kernels, one_sided, prg,
    schemes, wire, x64,
)

# Seconds between contestants.
REST = 0.25 if jax.default_backend() == 'cpu' else 0.02
# Vectors as `mpc.jit` has them.
WIDE = x64.WIDE if jax.default_backend() == 'cpu' else None
Calls = dict[str, Callable[[], Any]]

GEMMS = ((128, 392, 256), (128, 1024, 1024), (1024, 1024, 1024))
# What the choice of a scheme on a GPU rests on; 'wrong' reads these, too.
MORE = ((64, 64, 64), (512, 512, 512), (512, 1024, 1024), (2048, 2048, 2048))
CONVS = {  # The 'good' and 'great' columns are in `TARGETS`.
    'lenet': ((128, 14, 28, 1), (5, 5, 1, 6)),
    'vgg': ((16, 16, 32, 64), (3, 3, 64, 128)),
}
# (good, great) as ratios; below 1/x means x times faster.
TARGETS = {
    '128x392x256': {'ours/f64': (3.7, 3.0), 'naive/ours': (10, 12),
                    'torch/ours': (1.0, 1.3), 'karatsuba/f64': (4.0, 3.7)},
    '128x1024x1024': {'ours/f64': (2.6, 2.2), 'naive/ours': (140, 160),
                      'torch/ours': (2.0, 2.5), 'karatsuba/f64': (5.3, 5.1)},
    '1024x1024x1024': {'ours/f64': (3.0, 2.6), 'naive/ours': (135, 150),
                       'torch/ours': (2.8, 3.0), 'karatsuba/f64': (5.5, 5.2)},
    'conv lenet': {'ours/conv_f32': (0.85, 0.85)},
    'conv vgg': {'ours/f64': (2.6, 2.3)},
    'layer 128x392x256': {'T3/plain_f32': (13, 7)},
    'layer 128x1024x1024': {'T3/plain_f32': (24, 10)},
}


def more() -> tuple[tuple[int, int, int], ...]:
  return MORE if jax.default_backend() != 'cpu' else ()


def elements(seed: int, *shape: int) -> np.ndarray:
  rng = np.random.default_rng(seed)
  low, high = -(2**63), 2**63 - 1
  return rng.integers(low, high, shape, np.int64, endpoint=True)


def race(calls: Calls, turns: int, seconds: float = 0.05) -> dict[str, float]:
  """The best seconds of a call of each contestant, in `turns` turns.

  A contestant that does not compile, such as XLA's int64 convolution on a GPU,
  is left out.
  """
  best = {}
  for name, call in calls.items():  # Compiles, and warms the caches.
    try:
      call()
    except jax.errors.JaxRuntimeError as error:
      print(f'{name}: {error}'.splitlines()[0][:200], flush=True)
      continue
    best[name] = float('inf')
  for _ in range(turns):
    for name, call in calls.items():
      if name not in best:
        continue
      # OpenMP's workers spin for a while after a call and would hold a core.
      time.sleep(REST)
      until = time.perf_counter() + seconds
      while True:
        start = time.perf_counter()
        call()
        now = time.perf_counter()
        best[name] = min(best[name], now - start)
        if now > until:
          break
  return best


def jitted(fn: Callable[..., Any], *args: Any) -> Callable[[], Any]:
  fn = jax.jit(fn, compiler_options=WIDE)
  args = jax.device_put(args)
  return lambda: jax.block_until_ready(fn(*args))


def torch_call(a: np.ndarray, b: np.ndarray) -> Calls:
  """PyTorch's int64 product on a CPU, or nothing if it is not installed.

  PyTorch has none for GPUs.
  """
  if jax.default_backend() != 'cpu':
    return {}
  try:
    import torch
  except ImportError:
    return {}
  torch.set_num_threads(os.cpu_count() or 1)
  x, y = torch.from_numpy(a), torch.from_numpy(b)
  return {'torch': lambda: x @ y}


EXACT = (
    'ours', 'outer', 'int8_rows', 'int8_merged', 'int8_toeplitz', 'karatsuba',
    'naive',
)


def wrong(m: int, k: int, n: int) -> dict[str, int]:
  """How many elements of a product differ from NumPy's, by scheme."""
  a, b = elements(0, m, k), elements(1, k, n)
  right, found = dispatch.wrap_matmul(a, b), {}
  for name in EXACT:
    fn = kernels.matmul
    if name != 'ours':
      fn = lambda a, b, s=schemes.SCHEMES[name]: schemes.matmul(s, a, b)
    try:
      said = np.asarray(jax.jit(fn, compiler_options=WIDE)(a, b))
    except jax.errors.JaxRuntimeError as error:
      print(f'{name}: {error}'.splitlines()[0][:200], flush=True)
      continue
    found[name] = int((said != right).sum())
  return found


def gemm(m: int, k: int, n: int, turns: int) -> dict[str, float]:
  a, b = elements(0, m, k), elements(1, k, n)
  calls = {
      'ours': jitted(kernels.matmul, a, b),
      'f64': jitted(jnp.matmul, a.astype(float), b.astype(float)),
  }
  names = ['outer', 'int8_rows', 'int8_merged', 'karatsuba']
  if jax.default_backend() != 'cpu':
    names = ['naive', 'int8_toeplitz', 'int8_merged', 'karatsuba']
  for name in names:
    scheme = schemes.SCHEMES[name]
    calls[name] = jitted(
        lambda a, b, s=scheme: schemes.matmul(s, a, b), a, b)
  if m * k * n < 1 << 28:
    calls['naive'] = jitted(jnp.matmul, a, b)
  calls |= torch_call(a, b)
  best = race(calls, turns)
  if 'naive' not in best:  # Seconds a call: once is enough.
    best |= race({'naive': jitted(jnp.matmul, a, b)}, 1, 0)
  return best


def convolution(x_shape, w_shape, turns: int) -> dict[str, float]:
  x, w = elements(0, *x_shape), elements(1, *w_shape)
  win = conv.window(x_shape, w_shape)
  rows, inner = int(np.prod(x_shape[:3])), int(np.prod(w_shape[:3]))
  plain = lambda x, w: lax.conv_general_dilated(
      x, w, (1, 1), 'SAME', dimension_numbers=('NHWC', 'HWIO', 'NHWC'))
  calls = {
      'ours': jitted(kernels.conv, x, w),
      'f64': jitted(
          jnp.matmul, np.ones((rows, inner)), np.ones((inner, w_shape[-1]))),
      'conv_f32': jitted(plain, x.astype(np.float32), w.astype(np.float32)),
      'naive': jitted(plain, x, w),
  }
  for name in ('outer', 'int8_rows', 'int8_merged', 'karatsuba'):
    scheme = schemes.SCHEMES[name]
    calls[name] = jitted(
        lambda x, w, s=scheme: conv.forward(s, x, w, win), x, w)
  return race(calls, turns)


def layer(batch: int, n: int, m: int, turns: int) -> dict[str, float]:
  """A masked dense layer: forward, input gradient and update, both parties."""
  f = bilinear.dense((batch, n), (n, m))
  p, keys = prg.THREEFRY, one_sided.seeds(prg.THREEFRY, jax.random.key(0))
  rng = np.random.default_rng(0)
  x, g = (rng.normal(size=s).astype(np.float32) for s in (f.x_shape, f.y_shape))
  theta = rng.normal(size=f.w_shape).astype(np.float32) * 0.05
  codes = fixed_point.encode(theta)
  masked, _ = one_sided.mask(p, keys, (0,), codes, codes * 0)
  bits = fixed_point.Precision()

  def deal(v):
    up, _ = one_sided.deal(p, keys, (0, 0), f.forward, f.x_shape, v)
    down, _ = one_sided.deal(
        p, keys, (0, 1), f.input_gradient, f.y_shape, v)
    return up, down

  up, down = jax.jit(deal)(masked.active)

  def forward(x, masked, up):
    z, _ = fixed_point.encode_raw(x, bits.inputs)
    y, _ = one_sided.product(f.forward, z, masked, up)
    return fixed_point.decode_raw(y, bits.inputs + bits.weights, jnp.float32)

  def both(x, g, masked, up, down):
    y = forward(x, masked, up)
    c, _ = fixed_point.encode_raw(g, bits.gradients)
    gx, _ = one_sided.product(f.input_gradient, c, masked, down)
    gx = fixed_point.decode_raw(
        gx, bits.gradients + bits.weights, jnp.float32)
    step, _ = fixed_point.encode_raw(0.1 * (x.T @ g), bits.weights)
    return y, gx, one_sided.update(masked, step)

  shared = jnp.stack([codes, codes * 0])
  inputs = jnp.stack([fixed_point.encode(x), jnp.zeros(f.x_shape, jnp.int64)])
  dealt = beaver.triple(p, keys[0], f.forward, f.x_shape, f.w_shape)
  beavers = lambda x, w, dealt: beaver.product(f.forward, x, w, dealt)[0]
  plain = lambda x, g, w: (x @ w, g @ w.T, w - 0.1 * (x.T @ g))
  calls = {
      'plain_f32': jitted(plain, x, g, theta),
      'plain_f32_forward': jitted(jnp.matmul, x, theta),
      'T3': jitted(both, x, g, masked, up, down),
      'T3_forward': jitted(forward, x, masked, up),
      'dealer': jitted(deal, masked.active),
      'T1_forward': jitted(beavers, inputs, shared, dealt),
  }
  best = race(calls, turns)
  said = one_sided.product(f.forward, fixed_point.encode(x), masked, up)[1]
  best['T3_forward_bytes'] = wire.count(said).bytes
  best['T3_forward_lan'] = wire.seconds(said)
  return best


def compare(times: dict[str, float], targets: dict[str, tuple]) -> dict:
  """Each target's ratio as measured, and which columns it meets."""
  out = {}
  for name, (good, great) in targets.items():
    top, bottom = name.split('/')
    if top not in times or bottom not in times:
      continue
    ratio = times[top] / times[bottom]
    faster = bottom == 'ours'  # Then more is better.
    met = [t for t in (good, great) if (ratio >= t if faster else ratio <= t)]
    verdict = 'great' if great in met else 'good' if met else 'missed'
    out[name] = {'ratio': round(ratio, 3), 'good': good, 'great': great,
                 'verdict': verdict}
  return out


def measure(
    turns: int, minutes: float, keep: Callable[[dict], None]
) -> dict[str, Any]:
  """All measurements: seconds by contestant, and ratios beside targets.

  The record is written after each; none begins after `minutes`.
  """
  shapes: dict[str, Callable[[], dict[str, float]]] = {}
  for shape in (*GEMMS, *more()):
    shapes['x'.join(map(str, shape))] = lambda s=shape: gemm(*s, turns)
  for name, shape in CONVS.items():
    shapes[f'conv {name}'] = lambda s=shape: convolution(*s, turns)
  for shape in GEMMS[:2]:
    name = 'layer ' + 'x'.join(map(str, shape))
    shapes[name] = lambda s=shape: layer(*s, turns)
  out, end = {}, time.monotonic() + 60 * minutes
  for name, run in shapes.items():
    if time.monotonic() > end:
      break
    times = run()
    out[name] = {'seconds': {k: float(f'{v:.4g}') for k, v in times.items()},
                 'targets': compare(times, TARGETS.get(name, {}))}
    print(name, json.dumps(out[name]), flush=True)
    keep(out)
  return out


def main() -> None:
  parser = argparse.ArgumentParser(description='Ring products mod 2^64.')
  parser.add_argument('--out', type=pathlib.Path, help='JSON file to write')
  parser.add_argument('--turns', type=int, default=5, help='turns of a race')
  parser.add_argument('--minutes', type=float, default=float('inf'))
  args = parser.parse_args()
  with jax.enable_x64(True):
    platform = jax.default_backend()
    record = {
        'date': datetime.date.today().isoformat(),
        'machine': records.machine(),
        'versions': records.versions(),
        'devices': str(jax.local_devices()),
        'ranking': dispatch.ranking(platform) if platform == 'cpu' else [],
        'faults': {
            name: dispatch.fault(platform, scheme)
            for name, scheme in schemes.SCHEMES.items()
        },
        'wrong': {'x'.join(map(str, GEMMS[0])): wrong(*GEMMS[0])},
    }
    keep = lambda results: records.write(
        record | {'results': results}, args.out, aloud=False
    )
    print(json.dumps({k: record[k] for k in ('faults', 'wrong')}), flush=True)
    keep({})
    results = measure(args.turns, args.minutes, keep)
  records.write(record | {'results': results}, args.out)


if __name__ == '__main__':
  main()
