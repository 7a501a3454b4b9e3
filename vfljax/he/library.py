"""The packages of the extra `he`, imported when they are first needed.

`import vfljax.he` works without them; whoever makes a key needs them.
"""
from collections.abc import Iterator
import contextlib
from typing import Any


@contextlib.contextmanager
def extra() -> Iterator[None]:
  """Says which extra brings what cannot be imported inside.

  Raises:
    ValueError: (one line) instead of an ImportError.
  """
  try:
    yield
  except ImportError as error:
    package = (error.name or '').partition('.')[0] or 'A package'
    raise ValueError(
        f"{package} cannot be imported: pip install 'vfljax[he]'."
    ) from error


def gmp() -> Any:
  """gmpy2: integers of any length."""
  with extra():
    import gmpy2
  return gmpy2


def paillier() -> Any:
  """phe's Paillier: how keys are made, and decryption."""
  with extra():
    from phe import paillier as found
  return found


def tenseal() -> Any:
  """TenSEAL: SEAL's CKKS for Python."""
  with extra():
    import tenseal as found
  return found
