"""How exactly accelerators multiply: said by the runner, kept where it says."""
import types

import jax
import jax.numpy as jnp
import pytest

from vfljax import numerics
from vfljax.attacks import layer_recovery
from vfljax.runner.config import Config, TrainConfig
from vfljax.runner.machine import precision
from vfljax.runner.workdir.saved import completed


def traced():
  a = jnp.ones((2, 2))
  return str(jax.make_jaxpr(lambda a: a @ a)(a))


@pytest.fixture
def accelerator(monkeypatch):
  gpu = types.SimpleNamespace(platform='gpu')
  monkeypatch.setattr(jax, 'local_devices', lambda: [gpu])


def test_a_cpus_programs_stay_as_they_are():
  before = traced()
  with precision.of_products('default'):
    assert traced() == before


def test_a_cpu_does_not_do_what_no_record_says():
  """JAX's own setting: a CPU would obey this word, and not know others."""
  before = traced()
  with jax.default_matmul_precision('F64_F64_F64'):
    assert traced() != before
    with precision.of_products('highest'):
      assert traced() == before


@pytest.mark.parametrize('word', precision.WORDS)
def test_products_on_accelerators(accelerator, word):
  before = traced()
  with precision.of_products(word):
    assert f'Precision.{word.upper()}' in traced()
    exact = jax.make_jaxpr(lambda a: numerics.exact(a, a))(jnp.ones((2, 2)))
    assert 'Precision.HIGHEST' in str(exact)
  assert traced() == before


def test_solving_for_noise_never_rounds():
  """Every product is at the highest precision, whatever the caller's is."""
  with jax.default_matmul_precision('default'):
    text = str(jax.make_jaxpr(layer_recovery.solve_noise)(
        jnp.ones((8, 3)), jnp.ones((8, 2))
    ))
  assert text.count('dot_general') == text.count('precision=(Precision.HIGHEST')


def test_it_is_recorded_and_older_directories_have_the_default():
  assert TrainConfig().precision == 'highest'
  saved = completed({'train': {'epochs': 3}, **{
      k: {} for k in ('data', 'model', 'attack', 'auxiliary')
  }}, Config())
  assert saved['train']['precision'] == 'highest'
