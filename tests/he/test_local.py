"""The plain parts of the protocols."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.he import plain
from vfljax.he import local


@pytest.mark.parametrize('dtype', [np.float32, np.float64])
def test_parts_without_parameters_pass_gradients_on(dtype):
  """Features as they are, and a loss on the sum: nothing there to learn."""
  x, labels = np.arange(6, dtype=dtype).reshape(2, 3), np.eye(3)[:2]
  with jax.enable_x64(dtype == np.float64):
    bottom = local.Bottom(plain.TANH, (), 0.1)
    u = bottom.forward(x)
    top = local.Top(
        lambda p, z, y: optax.softmax_cross_entropy(z, y).mean(), (), 0.1
    )
    loss, d = top.learn(u, labels)
    bottom.backward(d.astype(np.float64))
    middle = local.Middle(plain.TANH, (), 0.1)
    middle.forward(x)
    through = middle.through(d.astype(np.float64))
  assert u.dtype == dtype and loss > 0 and bottom.params == ()
  expected = (jax.nn.softmax(u) - labels) / 2
  np.testing.assert_allclose(d, expected, rtol=1e-5)
  np.testing.assert_allclose(
      through, d * (1 - jnp.tanh(x) ** 2), rtol=1e-4, atol=1e-7
  )
