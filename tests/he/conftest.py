"""Keys of 1024 bits, made once a session, and federations to compare with."""
import pytest

from vfljax import he


@pytest.fixture(scope='session')
def keys():
  """Three pairs."""
  return tuple(he.generate(1024) for _ in range(3))
