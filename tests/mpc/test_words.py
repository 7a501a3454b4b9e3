"""Words of the generators bit by bit, and how messages of steps add up."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.perturbing import check_apart
from vfljax.mpc import prg, wire


@pytest.mark.parametrize('name', list(prg.REGISTRY))
def test_no_two_bits_of_neighbouring_words_go_together(name):
  key = jax.random.key(5) if name == 'threefry' else prg.chacha20_key(b'5' * 32)
  with jax.enable_x64(True):
    words = np.asarray(prg.get(name).words(key, (8000,)))
  bits = np.unpackbits(words.view(np.uint8)).reshape(4000, 128)
  check_apart(bits)
  np.testing.assert_allclose(bits.mean(0), 0.5, atol=0.05)


def test_what_is_said_offline_stays_offline_in_a_later_step():
  say = lambda flight: (
      wire.Message(jnp.zeros((2, 3)), 'm', 'passive', 'active', flight),
  )
  whole = wire.then(say(1) + say(2), say(0) + say(1), say(0), say(1))
  assert [m.flight for m in whole] == [1, 2, 0, 3, 0, 4]
  assert wire.count(whole) == wire.Count(4 * 48, 4 * 6, 4, 2 * 48)
