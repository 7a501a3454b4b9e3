"""Threefry, written out: the bits are JAX's."""
import subprocess
import sys

import jax
from jax.extend.core.primitives import threefry2x32_p
import jax.numpy as jnp
import numpy as np
import pytest

from tests import compiling
from tests.devices import of_a_cpu
from vfljax.runner.machine import threefry


@pytest.mark.parametrize('bits', [threefry.bits, compiling.threefry])
@pytest.mark.parametrize('key, counter, expected', [
    # Random123's known answers for Threefry 2x32 of 20 rounds.
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((2**32 - 1,) * 2, (2**32 - 1,) * 2, (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3),
     (0xC4923A9C, 0x483DF7A0)),
])
def test_known_answers(key, counter, expected, bits):
  words = [jnp.uint32(word) for word in (*key, *counter)]
  assert [int(word) for word in bits(*words)] == list(expected)


def test_bits_are_those_of_jax():
  draw = np.random.default_rng(0)
  k1, k2 = draw.integers(0, 2**32, (2, 3, 1), np.uint32)
  x1, x2 = draw.integers(0, 2**32, (2, 3, 7), np.uint32)
  there = jax.jit(threefry2x32_p.bind)(k1, k2, x1, x2)
  for one, other in zip(threefry.bits(k1, k2, x1, x2), there):
    np.testing.assert_array_equal(one, other)


def test_xla_may_not_write_the_rounds_into_what_reads_them():
  """They stay a function of the program, which many draws call."""
  words = [jnp.uint32(i) for i in range(4)]
  text = jax.jit(threefry.bits).lower(*words).as_text()
  assert text.count('@_words') == 2  # Called once, and written once.


@pytest.mark.slow
@of_a_cpu
def test_a_draw_is_one_kernel_from_then_on():
  """In a process of its own, for there is no way back."""
  program = '''
import jax
from vfljax.runner.machine import threefry
draw = lambda key: jax.random.bits(key, (5,))
before, loops = draw(jax.random.key(3)), jax.jit(draw).lower(jax.random.key(3))
threefry.in_one_kernel()
jax.clear_caches()
after, none = draw(jax.random.key(3)), jax.jit(draw).lower(jax.random.key(3))
assert (before == after).all()
assert 'while' in loops.as_text() and 'while' not in none.as_text()
'''
  subprocess.run([sys.executable, '-c', program], check=True, timeout=120)


@of_a_cpu
@pytest.mark.slow
def test_a_chain_of_keys_is_no_longer_than_its_links():
  """XLA may not write a key's rounds into whatever reads it: since JAX 0.11 a
  program with five keys, one made of the other, took minutes to compile, and
  with JAX 0.10 programs were up to twice as long."""
  program = '''
import jax
from vfljax.runner.machine import threefry
threefry.in_one_kernel()
def mixes(links):
  def draw(key):
    for _ in range(links):
      key = jax.random.split(key)[1]
    return jax.random.uniform(key, (5,))
  made = jax.jit(draw).lower(jax.random.key(0))
  text = made.compile().as_text()
  assert text.count(' call(') == links + 1
  return text.count(' xor(')
assert 0 < mixes(4) < 8 * mixes(1)
'''
  subprocess.run([sys.executable, '-c', program], check=True, timeout=120)
