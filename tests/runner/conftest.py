"""Where programs are kept for a later start, and JAX's own cache aside."""
import jax
from jax.experimental.compilation_cache import compilation_cache
import pytest

from vfljax.runner.compiled import kept


@pytest.fixture
def uncached():
  """JAX's cache stands aside: what it knows is not kept."""
  jax.config.update('jax_enable_compilation_cache', False)
  compilation_cache.reset_cache()
  yield
  jax.config.update('jax_enable_compilation_cache', True)
  compilation_cache.reset_cache()


@pytest.fixture
def place(tmp_path):
  """Where programs are kept."""
  with kept.within(str(tmp_path / 'cache')):
    yield tmp_path / 'cache' / kept.FOLDER
