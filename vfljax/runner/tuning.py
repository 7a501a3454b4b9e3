"""How long XLA looks for fast kernels before a GPU trains.

For every product of matrices XLA compiles dozens of Triton kernels and times
them beside the libraries' own. In float32 that is long where a training takes
seconds: on an H100 MNIST's MLPs compiled for 106 to 142 s, eight programs at a
time, and with the libraries' products for 11 to 14 s, four at a time. These
train 11 to 29 % longer (experiments/bench/gpu_h100_tuned.json, gpu_h100.json).
So NVIDIA's GPUs are given the libraries' products, unless XLA_FLAGS says
otherwise: who trains for hours sets
XLA_FLAGS=--xla_gpu_enable_triton_gemm=true.
"""
import os
from typing import Any

import jax

TRITON = 'xla_gpu_enable_triton_gemm'


def options() -> dict[str, Any] | None:
  """XLA's options for the devices here; `None` where it keeps its own."""
  kind = jax.local_devices()[0].device_kind
  if not kind.startswith('NVIDIA') or TRITON in os.environ.get('XLA_FLAGS', ''):
    return None
  return {TRITON: False}


def compiled(lowered: jax.stages.Lowered) -> jax.stages.Compiled:
  """What XLA makes of it, with `options`; an XLA without them has its own."""
  chosen = options()
  if chosen:
    try:
      return lowered.compile(chosen)
    except jax.errors.JaxRuntimeError as error:
      if TRITON not in str(error):
        raise
  return lowered.compile()
