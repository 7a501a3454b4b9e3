"""What XLA is told to leave out."""
import os
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax.runner import device, tuning

LOOPS = '--xla_backend_extra_options=xla_cpu_disable_loop_unrolling'


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


def said(before):
  environment = dict(before)
  tuning.set_up(environment)
  return environment['XLA_FLAGS']


def test_loops_are_left_as_they_are_beside_what_somebody_asks_for():
  assert said({}) == LOOPS
  assert said(dict(XLA_FLAGS='--xla_a=1')) == f'--xla_a=1 {LOOPS}'


def test_who_has_extra_options_gets_those():
  own = '--xla_backend_extra_options=xla_cpu_optimize_for_size'
  assert said(dict(XLA_FLAGS=own)) == own


def test_the_command_line_says_so(monkeypatch):
  monkeypatch.setenv('XLA_FLAGS', '')
  monkeypatch.setattr(device.threefry, 'in_one_kernel', lambda: None)
  monkeypatch.setattr(device.jax.config, 'update', lambda *_: None)
  device.set_up(1, '')
  assert os.environ['XLA_FLAGS'] == LOOPS


def test_xla_knows_the_option():
  """It is of all devices' options, so a CPU can be asked."""
  lowered = jax.jit(lambda x: x + 2).lower(1)
  assert lowered.compile({tuning.TRITON: False})(1) == 3
