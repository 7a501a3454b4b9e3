"""The packages of the extra `he`, imported when they are first needed.

`import vfljax.he` works without them; making a key does not.
"""
from typing import Any

from vfljax.need import extra


def gmp() -> Any:
  """gmpy2: integers of any length."""
  with extra('he'):
    import gmpy2
  return gmpy2


def paillier() -> Any:
  """phe's Paillier: how keys are made, and decryption."""
  with extra('he'):
    from phe import paillier as found
  return found


def tenseal() -> Any:
  """TenSEAL: SEAL's CKKS for Python."""
  with extra('he'):
    import tenseal as found
  return found
