"""For which kind of device is traced."""
import jax
import pytest

from vfljax import target


def test_it_is_what_jax_has_unless_another_is_named():
  assert target.kind() == jax.default_backend()
  with target.tracing_for('rocm'):
    assert target.kind() == 'gpu'
    with target.tracing_for('tpu'):
      assert target.kind() == 'tpu'
    assert target.kind() == 'gpu'
  assert target.kind() == jax.default_backend()


def test_an_error_inside_ends_it():
  with pytest.raises(KeyError), target.tracing_for('tpu'):
    raise KeyError
  assert target.kind() == jax.default_backend()


def test_a_platform_that_there_is_not():
  with pytest.raises(ValueError, match="cpu, gpu, cuda, rocm, tpu; got 'npu'"):
    with target.tracing_for('npu'):
      pass
