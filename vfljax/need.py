"""Imports packages that only some modules need.

  with extra():
    import pandas as pd

Without extras vfljax installs JAX, Flax, Optax and NumPy (and what these need);
other packages come with its extras.
"""
from collections.abc import Iterator
import contextlib


@contextlib.contextmanager
def extra(name: str = 'run') -> Iterator[None]:
  """A context where an ImportError becomes a message that names the extra.

  Args:
    name: The extra's name in pyproject.toml.

  Raises:
    ValueError: (one line) instead of an ImportError.
  """
  try:
    yield
  except ImportError as error:
    package = (error.name or '').partition('.')[0] or 'A package'
    raise ValueError(
        f"{package} cannot be imported: pip install 'vfljax[{name}]'"
        f' ({_first_line(error)}).'
    ) from error


def _first_line(error: ImportError) -> str:
  return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
