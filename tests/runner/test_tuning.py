"""What XLA is told to leave out before a GPU trains."""
from types import SimpleNamespace

import jax
import pytest

from vfljax.runner import tuning


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
  here = SimpleNamespace(device_kind='NVIDIA H100 80GB HBM3')
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


def test_a_cpu_keeps_its_own():
  program = tuning.compiled(jax.jit(lambda x: x + 1).lower(1))
  assert tuning.options() is None and program(1) == 2


def test_xla_knows_the_option():
  """It is of all devices' options, so a CPU can be asked."""
  lowered = jax.jit(lambda x: x + 2).lower(1)
  assert lowered.compile({tuning.TRITON: False})(1) == 3
