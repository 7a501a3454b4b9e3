"""Recognises programs that are identical except for their names."""
import hashlib
import re

import jax

_NAME = re.compile(r'module @[\w.]+ ')


def digest(lowered: jax.stages.Lowered) -> str:
  """A digest that is equal for programs that differ only in their names.

  Args:
    lowered: A program lowered by a `jit` with `keep_unused=True`. Without it
      JAX drops unused arguments, and the text does not say which.
  """
  text = _NAME.sub('module @program ', lowered.as_text(), count=1)
  about = f'{text} {lowered.args_info} {lowered.out_tree}'
  return hashlib.sha256(about.encode()).hexdigest()
