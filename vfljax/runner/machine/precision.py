"""How exactly an accelerator multiplies float32 matrices.

By default GPUs round the factors to TF32's 10 bits and TPUs to bfloat16's 7, so
a training there differs from one on a CPU. 'highest' keeps float32. On a TPU
this takes up to six passes instead of one; on a GPU it uses the plain units
instead of the matrix units (an H100's data sheet: 67 TFLOP/s instead of 495).
Large networks become slower, but not small ones, whose kernels mostly wait to
be started. Nothing changes on a CPU, which always uses float32, nor for
networks in bfloat16 (an option of theirs). JAX's own setting changes nothing
anywhere, because no record would say so.
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
  on_cpu = jax.local_devices()[0].platform == 'cpu'
  # JAX's setting may have words that a CPU obeys, or does not know.
  return jax.default_matmul_precision(None if on_cpu else word)
