"""The end of memory: told before it comes, and when it has."""
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

from tests.devices import of_a_cpu
from vfljax import target
from vfljax.runner.compiled.making import Maker
from vfljax.runner.errors import UserError
from vfljax.runner.machine import exhausted

GIB = 1 << 30


def test_every_word_for_the_end_of_memory_is_explained():
  told = (
      'RESOURCE_EXHAUSTED: Out of memory allocating 35 bytes.',
      'INTERNAL: YNNPACK operation failed: ...',
      'INTERNAL: Failed to allocate 35 bytes for a buffer',
  )
  for error in [*map(jax.errors.JaxRuntimeError, told), MemoryError()]:
    with pytest.raises(UserError, match='too little memory'):
      with exhausted.explained():
        raise error
  with target.tracing_for('gpu'):
    with pytest.raises(UserError, match='seeds_per_chunk=1'):
      with exhausted.explained():
        raise MemoryError
  with pytest.raises(jax.errors.JaxRuntimeError, match='else'):
    with exhausted.explained():
      raise jax.errors.JaxRuntimeError('INTERNAL: something else')


def taking(arguments, outputs, shared, temporary):
  """A program of which XLA says that it takes so many GiB."""
  return SimpleNamespace(memory_analysis=lambda: SimpleNamespace(
      argument_size_in_bytes=arguments * GIB,
      output_size_in_bytes=outputs * GIB, alias_size_in_bytes=shared * GIB,
      temp_size_in_bytes=temporary * GIB,
  ))


def machine(monkeypatch, devices, gib):
  monkeypatch.setattr(jax, 'local_device_count', lambda: devices)
  monkeypatch.setattr(exhausted, 'memory', lambda: gib * GIB)


def test_what_a_program_takes_on_all_devices_is_more_than_there_is(monkeypatch):
  program = taking(5, 3, 2, 6)
  with target.tracing_for('cpu'):
    machine(monkeypatch, 1, 12)
    assert not exhausted.warning(program)
    assert not exhausted.warning(SimpleNamespace(memory_analysis=lambda: None))
    machine(monkeypatch, 1, 11.9)
    assert 'about 12 GiB, of 11.9 GiB.' in exhausted.warning(program)
    assert '--devices' not in exhausted.warning(program)
    machine(monkeypatch, 2, 23.5)
    said = exhausted.warning(program)
    assert 'about 24 GiB, of 23.5 GiB.' in said
    assert 'type --devices=1 (at least 12 GiB), or --config.data.lim' in said
  with target.tracing_for('gpu'):  # It says so itself.
    assert not exhausted.warning(program)


@of_a_cpu
def test_who_compiles_tells_once_of_programs_that_do_not_fit(monkeypatch):
  monkeypatch.setattr(exhausted, 'memory', lambda: 3 << 20)
  told: list[str] = []
  shape = lambda n: jax.ShapeDtypeStruct((n, 1 << 10), jnp.float32)
  with ThreadPoolExecutor(1) as pool:
    maker = Maker(pool, None, tell=told.append)
    asked = (jnp.sin, 1 << 9), (jnp.sin, 1 << 6), (jnp.cos, 1 << 10)
    for fn, rows in asked:  # 4 MiB, half a MiB, and 8 MiB.
      maker.make(jax.jit(fn).lower(shape(rows))).result()
  assert len(told) == 1
  assert told[0].startswith('Memory: a program takes about')
