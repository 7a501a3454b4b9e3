"""What all tests share: two CPU devices, a compilation cache, Hypothesis.

Tests run on what users get: on a CPU nothing here touches precision, debugging
or matmul settings. One thing is different. A test runs its program once or
twice, and compiling took three quarters of the suite's time, so programs are
compiled without LLVM's optimizations and, where jaxlib still has it (before
0.11), by XLA's older, quicker way to fuse operations, which halves that again.
Both are for speed: the operations and their types are the same.
JAX_DISABLE_MOST_OPTIMIZATIONS=0 make test compiles as users do.

JAX's settings are made on this process alone, not in its environment, so that
a command line under test starts as a user's would.
"""
import atexit
import gc
import os

# A GPU is one device for all workers; JAX_PLATFORMS=cuda,cpu asks for it.
os.environ.setdefault('JAX_PLATFORMS', 'cpu')

import hypothesis
from hypothesis import strategies
import jax
import pytest

from tests import compiling, quickest
from vfljax.runner.machine import threefry

# Sharding the seed axis needs a second device, also on a laptop with one core.
jax.config.update('jax_num_cpu_devices', 2)

if 'JAX_DISABLE_MOST_OPTIMIZATIONS' not in os.environ:
  compiling.compile_quickly()
  compiling.trace_threefry_once()
compiling.keep_memory()
compiling.share_contexts()
if jax.default_backend() != 'cpu':  # As the runner has it: no TF32.
  jax.config.update('jax_default_matmul_precision', 'highest')
# A command line under test would have it so for all tests after it, too.
threefry.in_one_kernel = lambda: None

# No test takes the power away, so nothing waits for disks.
os.fsync = lambda descriptor: None

# Tracing makes many small objects that live on: looking through all of them as
# often as Python does took a fifth of the time, and finds next to no memory.
gc.set_threshold(1_000_000, 10, 10)


@pytest.fixture
def optimized():
  """For numbers that are small differences of large ones: as users compile."""
  before = jax.config.values['jax_disable_most_optimizations']
  jax.config.update('jax_disable_most_optimizations', False)
  yield
  jax.config.update('jax_disable_most_optimizations', before)


# The same examples every time: a failure in CI is one that others can repeat.
hypothesis.settings.register_profile(
    'vfljax', deadline=None, derandomize=True, database=None, max_examples=20
)
hypothesis.settings.load_profile('vfljax')


def pytest_addoption(parser):
  quickest.add_option(parser)


def pytest_configure(config):
  """Keeps compiled programs in .pytest_cache/d/jax for the next run."""
  cache = getattr(config, 'cache', None)
  if cache is None:  # pytest -p no:cacheprovider
    return
  config.pluginmanager.register(quickest.Quickest(config))
  worker = os.environ.get('PYTEST_XDIST_WORKER', 'main')
  compiling.share_programs(cache.mkdir('jax'), worker)


def pytest_collection():
  """With its first test Hypothesis looks through all objects: few so early."""
  hypothesis.given(strategies.none())(lambda _: None)()


@pytest.hookimpl(trylast=True)  # When a test has put back what it replaced.
def pytest_runtest_teardown():
  compiling.keep_programs()


def pytest_sessionfinish():
  """Leaves at once: what JAX remembers took five seconds to be put away.

  Pytest looks through it five times for what a destructor had to say: here that
  is done once. A worker has told all by now, so it frees nothing.
  """
  gc.collect()
  gc.freeze()
  if 'PYTEST_XDIST_WORKER' in os.environ:
    atexit.register(os._exit, 0)
