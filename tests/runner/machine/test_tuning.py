"""What XLA is told to leave out."""
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax.runner.machine import tuning


class Lowered:
  """Remembers what it was compiled with; refuses options if told so."""

  def __init__(self, refusal=''):
    self.seen, self.refusal = [], refusal

  def compile(self, options=None):
    self.seen.append(options)
    if options and self.refusal:
      raise jax.errors.JaxRuntimeError(self.refusal)
    return 'program'


@pytest.fixture
def gpu(monkeypatch):
  here = SimpleNamespace(device_kind='NVIDIA H100 80GB HBM3', platform='gpu')
  monkeypatch.setattr(jax, 'local_devices', lambda: [here])
  monkeypatch.delenv('XLA_FLAGS', raising=False)


def test_a_gpu_has_the_libraries_products(gpu):
  lowered = Lowered()
  assert tuning.compiled(lowered) == 'program'
  assert lowered.seen == [{'xla_gpu_enable_triton_gemm': False}]


def test_who_sets_the_flag_has_chosen(gpu, monkeypatch):
  monkeypatch.setenv('XLA_FLAGS', '--xla_gpu_enable_triton_gemm=true')
  lowered = Lowered()
  tuning.compiled(lowered)
  assert lowered.seen == [None]


def test_an_xla_without_the_option_has_its_own(gpu):
  lowered = Lowered('No such option: xla_gpu_enable_triton_gemm')
  assert tuning.compiled(lowered) == 'program'
  assert len(lowered.seen) == 2 and lowered.seen[-1] is None


def test_another_failure_is_not_tried_again(gpu):
  lowered = Lowered('RESOURCE_EXHAUSTED: Out of memory')
  with pytest.raises(jax.errors.JaxRuntimeError, match='Out of memory'):
    tuning.compiled(lowered)
  assert len(lowered.seen) == 1


def test_a_kernel_is_not_cut_up_where_each_core_has_a_device(monkeypatch):
  monkeypatch.delenv('XLA_FLAGS', raising=False)
  x = jnp.ones((3000, 100))
  lowered = jax.jit(lambda x, i: 2 * x[i]).lower(x, jnp.arange(2000))
  cut = 'outer_dimension_partitions'
  assert cut in lowered.compile().as_text()
  program = tuning.compiled(lowered)
  assert cut not in program.as_text()
  np.testing.assert_array_equal(program(x, jnp.arange(2000)), 2)


def test_the_only_device_keeps_its_own(monkeypatch):
  one = jax.local_devices()[:1]
  monkeypatch.setattr(jax, 'local_devices', lambda: one)
  assert tuning.options() is None


def test_xla_knows_the_option():
  """It is of all devices' options, so a CPU can be asked."""
  lowered = jax.jit(lambda x: x + 2).lower(1)
  assert lowered.compile({tuning.TRITON: False})(1) == 3
