"""Programs that are the same to the letter, whatever they are called."""
import hashlib
import re

import jax

_NAME = re.compile(r'module @[\w.]+ ')


def digest(lowered: jax.stages.Lowered) -> str:
  """The same for programs that differ in nothing but their names.

  Args:
    lowered: Of a `jit` that keeps arguments which the program does not read:
      of those that JAX leaves out nothing says which they were.
  """
  text = _NAME.sub('module @program ', lowered.as_text(), count=1)
  about = f'{text} {lowered.args_info} {lowered.out_tree}'
  return hashlib.sha256(about.encode()).hexdigest()
