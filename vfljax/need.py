"""Packages that only some modules need, imported where they are needed.

  with extra():
    import pandas as pd

Whoever embeds vfljax has JAX, Flax, Optax and NumPy; the rest comes with
extras of the package.
"""
from collections.abc import Iterator
import contextlib


@contextlib.contextmanager
def extra(name: str = 'run') -> Iterator[None]:
  """Says which extra brings what cannot be imported inside.

  Args:
    name: Of the extra, as pyproject.toml has it.

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
