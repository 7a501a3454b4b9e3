"""XLA's options for the devices of this process.

NVIDIA GPUs: for each matrix product XLA compiles dozens of Triton kernels and
times them against the libraries' products. If a training takes seconds, that is
long: on an H100, in float32, MNIST's MLPs took 106 to 142 s to compile, eight
programs at a time, and with the libraries' products 11 to 14 s, four at a time.
The latter train 11 to 29 % longer (experiments/bench/gpu_h100_tuned.json,
gpu_h100.json). So vfljax uses the libraries' products unless XLA_FLAGS says
otherwise. For trainings of hours, set
XLA_FLAGS=--xla_gpu_enable_triton_gemm=true.

CPUs with one device for each core: each device runs its own trainings, so a
kernel that is split over all cores would wait for the others. Kernels are not
split; the numbers are the same.

All CPUs: XLA makes a loop of each axis of an array, and LLVM unrolls short
loops, such as those over 3x3 taps and channels. That takes long to compile and
does not make training faster (experiments/bench/README.md). So LLVM does not
unroll loops; last digits differ.
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
  """Stops LLVM from unrolling loops; call it before XLA starts on a CPU.

  Nothing changes if `environment` has extra options for LLVM already. An XLA
  that does not know the option ignores it.
  """
  flags.add(environment, _FLAGS, _FOR_LLVM, _AS_THEY_ARE)


def options() -> dict[str, Any] | None:
  """XLA's options for the devices here; `None` for XLA's defaults."""
  first, *others = jax.local_devices()
  chosen: dict[str, Any] = {}
  if first.device_kind.startswith('NVIDIA'):
    chosen = {TRITON: False}
  elif first.platform == 'cpu' and others:
    chosen = {PASSES: 'cpu-parallel-task-assigner'}
  said = os.environ.get(_FLAGS, '')
  return None if any(name in said for name in chosen) else chosen or None


def compiled(lowered: jax.stages.Lowered) -> jax.stages.Compiled:
  """Compiles a program with `options`, or without if XLA lacks them."""
  chosen = options()
  if chosen:
    try:
      return lowered.compile(chosen)
    except jax.errors.JaxRuntimeError as error:
      if not any(name in str(error) for name in chosen):
        raise
  return lowered.compile()
