"""Whether this process is a notebook's: its output is cells, not a terminal.

Cells keep all that is printed, have no cursor that goes up, and a kernel that
ends takes the user's variables along.
"""
import os
import sys
from typing import Any

# Set by Jupyter for its kernels, and so for the programs that these start.
_STARTED = 'JPY_PARENT_PID', 'JPY_SESSION_NAME'
# Kernels set it themselves, also where an editor has started them.
_FIGURES, _IN_CELLS = 'MPLBACKEND', 'backend_inline'


def is_shell() -> bool:
  """Whether IPython runs this process, in a notebook or in a terminal."""
  return _shell() is not None


def is_kernel() -> bool:
  """Whether this process runs cells of a notebook."""
  return hasattr(_shell(), 'kernel')


def is_shown_in_a_cell() -> bool:
  """Whether what this process prints ends in a cell, as of '!vfljax', too."""
  return (
      is_kernel() or any(name in os.environ for name in _STARTED)
      or os.environ.get(_FIGURES, '').endswith(_IN_CELLS)
  )


def _shell() -> Any:
  """IPython's shell; `None` if this process has none."""
  found = getattr(sys.modules.get('IPython'), 'get_ipython', None)
  return found and found()
