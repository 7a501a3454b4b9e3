"""Networks small enough for a test."""
import jax
import jax.numpy as jnp

from vfljax import nets


def weights(seed: int = 0):
  return nets.mlp(16, 8, 6).init(jax.random.key(seed), jnp.ones((1, 12)))
