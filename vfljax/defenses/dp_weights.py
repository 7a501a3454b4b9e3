"""Gaussian noise on the gradients of a passive party's own weights.

Where parties share the gradients of their weights, an attacker can reconstruct
the samples behind them (CAFE). Here a passive party clips its gradients and
adds noise before it uses or shows them, to hide its samples from the active
party. This is not DP-SGD, which clips each sample's gradient by itself. Zou et
al. (2023) clip to a 2-norm of 3 and add deviations of 0.1 to 10.
"""
import jax
import jax.numpy as jnp

from vfljax import check
from vfljax.defense import Defense
from vfljax.numerics import floating


def dp_weights(std, clip_norm: float = 3.0) -> Defense:
  """Clips each passive party's whole gradient and adds N(0, `std`^2) to it.

  Args:
    std: Standard deviation of the noise on every weight's gradient, 0 or more,
      in the gradient's own unit; may be traced.
    clip_norm: Bound on the 2-norm of all of the party's gradients together,
      above 0; may be traced.

  Raises:
    ValueError: if an argument is out of its range.
  """
  check.at_least('dp_weights: std', std, 0)
  check.inside('dp_weights: clip_norm', clip_norm, 0, jnp.inf, open_low=True)

  def share(key, gradients):
    leaves, shape = jax.tree.flatten(gradients)
    squares = sum(jnp.sum(g.astype(jnp.float32) ** 2) for g in leaves)
    factor = jnp.minimum(1, clip_norm / jnp.maximum(jnp.sqrt(squares), 1e-30))
    # Drawn in half precision, noise would end at 2.9 deviations.
    full, keys = map(floating, leaves), jax.random.split(key, len(leaves))
    blurred = [
        (g * factor + std * jax.random.normal(k, g.shape, g.dtype)).astype(
            own.dtype
        )
        for k, g, own in zip(keys, full, leaves)
    ]
    return jax.tree.unflatten(shape, blurred)

  return Defense(share=share)
