"""Networks small enough for a test."""
import jax
import jax.numpy as jnp
import numpy as np

from vfljax import nets


def weights(seed: int = 0):
  return nets.mlp(16, 8, 6).init(jax.random.key(seed), jnp.ones((1, 12)))


def drawn(net, x, seed: int = 0):
  """Weights of a network for samples `x`, of NumPy's numbers.

  Compiling what draws them takes longer than all else in many tests.
  """
  return numbers(jax.eval_shape(net.init, jax.random.key(0), x), seed)


def numbers(shapes, seed: int = 0):
  """Weights of those shapes: uniform by fan-in, as `init` draws them; norms
  start where they do."""
  draw = np.random.default_rng(seed).uniform

  def leaf(path, x):
    name = path[-1].key
    if name in ('scale', 'var'):
      return jnp.asarray(np.ones(x.shape, x.dtype))
    if name == 'mean':
      return jnp.asarray(np.zeros(x.shape, x.dtype))
    limit = 1 / np.sqrt(max(np.prod(x.shape[:-1]), 9))
    return jnp.asarray(draw(-limit, limit, x.shape).astype(x.dtype))

  return jax.tree_util.tree_map_with_path(leaf, shapes)
