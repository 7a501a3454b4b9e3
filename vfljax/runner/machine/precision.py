"""How exactly an accelerator multiplies float32 matrices.

By default GPUs round the factors to TF32's 10 bits and TPUs to bfloat16's 7, so
a training there differs from one on a CPU. 'highest' keeps float32. On a TPU
this takes up to six passes instead of one; on a GPU it uses the plain units
instead of the matrix units (an H100's data sheet: 67 TFLOP/s instead of 495).
Large networks become slower, but not small ones, whose kernels mostly wait to
be started. Nothing changes on a CPU, which always uses float32, nor for
networks in bfloat16 (an option of theirs).
"""
import contextlib

import jax

WORDS = ('highest', 'high', 'default')


def of_products(word: str) -> contextlib.AbstractContextManager:
  """A context in which traced products have this precision on accelerators.

  Args:
    word: One of `WORDS`, with the meaning in `jax.lax.Precision`. Code that
      asks for another precision keeps that.
  """
  if jax.local_devices()[0].platform == 'cpu':
    return contextlib.nullcontext()
  return jax.default_matmul_precision(word)
