"""Matplotlib's settings while a figure is drawn: its own, for one thread.

A notebook may draw its own figures with a style, with LaTeX or with a
`matplotlibrc`. A report's figures are the same bytes whoever makes them.
"""
from collections.abc import Iterator
import contextlib
import threading
from typing import Any

import matplotlib

_LOCK = threading.RLock()
# What is no matter of style: which windows a program opens, and how.
_KEPT = ('backend', 'interactive', 'toolbar', 'tk.', 'webagg')
# Not by `style.context`, which changes filters of warnings, too.
_USUAL = {
    name: value for name, value in matplotlib.rcParamsDefault.items()
    if not name.startswith(_KEPT)
}


@contextlib.contextmanager
def settings(**ours: str) -> Iterator[None]:
  """A context, or a decorator, with Matplotlib's usual settings and `ours`.

  They are of the whole process: of two runs that draw at once in threads, the
  later would put back the other's settings, and the program would keep them.

  Args:
    **ours: Settings of the group 'svg', by their names in it.
  """
  own = {f'svg.{name}': value for name, value in ours.items()}
  every: Any = _USUAL | own  # Else a type checker asks for the names' own type.
  with _LOCK, matplotlib.rc_context(every):
    yield
