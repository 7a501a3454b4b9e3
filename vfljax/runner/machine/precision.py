"""How exactly an accelerator multiplies float32 matrices.

Left to themselves GPUs round the factors to TF32's 10 bits and TPUs to
bfloat16's 7, so that a training there is another than on a CPU. 'highest' keeps
float32: its price is up to six passes instead of one on a TPU and the plain
units in place of the matrix units on a GPU (an H100's data sheet: 67 TFLOP/s
instead of 495), which large networks feel and small ones, whose kernels mostly
wait to be started, do not. A CPU has float32 only, and its programs stay as
they are. What is bfloat16 already (a network's option) is not affected.
"""
import contextlib

import jax

WORDS = ('highest', 'high', 'default')


def of_products(word: str) -> contextlib.AbstractContextManager:
  """What is traced inside multiplies so, on accelerators.

  Args:
    word: One of `WORDS`, as `jax.lax.Precision` has them; code that asks for a
      precision of its own keeps it.
  """
  if jax.local_devices()[0].platform == 'cpu':
    return contextlib.nullcontext()
  return jax.default_matmul_precision(word)
