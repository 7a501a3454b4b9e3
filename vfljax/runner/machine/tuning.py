"""What XLA is told for the devices here.

NVIDIA's GPUs: for every product of matrices XLA compiles dozens of Triton
kernels and times them beside the libraries' own. In float32 that is long where
a training takes seconds: on an H100 MNIST's MLPs compiled for 106 to 142 s,
eight programs at a time, and with the libraries' products for 11 to 14 s, four
at a time. These train 11 to 29 % longer (experiments/bench/gpu_h100_tuned.json,
gpu_h100.json). So they are given the libraries' products, unless XLA_FLAGS says
otherwise: who trains for hours sets
XLA_FLAGS=--xla_gpu_enable_triton_gemm=true.

CPUs with a device a core: each is busy with trainings of its own, and a kernel
that is cut up for all cores waits for the others'. So none is; the numbers are
the same.

CPUs: XLA makes a loop of each axis of an array, and LLVM writes short ones out,
such as those over 3x3 taps and channels. That takes long to compile, and
nothing trains faster for it (experiments/bench/README.md). So LLVM leaves loops
as they are; last digits differ.
"""
from collections.abc import MutableMapping
import os
from typing import Any

import jax

from vfljax.runner.machine import flags

TRITON = 'xla_gpu_enable_triton_gemm'
PASSES = 'xla_disable_hlo_passes'
_FLAGS, _FOR_LLVM = 'XLA_FLAGS', '--xla_backend_extra_options'
_AS_THEY_ARE = 'xla_cpu_disable_loop_unrolling'


def set_up(environment: MutableMapping[str, str]) -> None:
  """Has loops left as they are, before XLA starts on a CPU.

  Unless `environment` has extra options already; an XLA that does not know this
  one passes over it.
  """
  flags.add(environment, _FLAGS, _FOR_LLVM, _AS_THEY_ARE)


def options() -> dict[str, Any] | None:
  """XLA's options for the devices here; `None` where it keeps its own."""
  first, *others = jax.local_devices()
  chosen: dict[str, Any] = {}
  if first.device_kind.startswith('NVIDIA'):
    chosen = {TRITON: False}
  elif first.platform == 'cpu' and others:
    chosen = {PASSES: 'cpu-parallel-task-assigner'}
  said = os.environ.get(_FLAGS, '')
  return None if any(name in said for name in chosen) else chosen or None


def compiled(lowered: jax.stages.Lowered) -> jax.stages.Compiled:
  """What XLA makes of it, with `options`; an XLA without them has its own."""
  chosen = options()
  if chosen:
    try:
      return lowered.compile(chosen)
    except jax.errors.JaxRuntimeError as error:
      if not any(name in str(error) for name in chosen):
        raise
  return lowered.compile()
