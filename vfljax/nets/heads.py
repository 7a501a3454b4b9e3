"""Inference heads for attackers who complete a stolen bottom network."""
import jax
from jax import lax
import jax.numpy as jnp

from vfljax import check, crossing
from vfljax.types import Net


def normalized_head(classes: int, layers: int = 1) -> Net:
  """Fu et al.'s inference head: batch normalization, ReLU, linear; repeated.

  The kernels start at one, so that all logits are equal, as in their code.
  Means and variances leave out rows that fill up a batch. Running variances are
  means of squares (1/n); PyTorch's are n/(n-1) of that.

  Args:
    classes: Width of the last linear layer; those before keep the embedding's.
    layers: 1 or more.

  Raises:
    ValueError: without layers.
  """
  check.count('normalized_head: layers', layers)

  def init(key, u):
    del key
    width = u.reshape(len(u), -1).shape[1]
    ones = lambda *shape: jnp.ones(shape, u.dtype)
    zeros = lambda *shape: jnp.zeros(shape, u.dtype)
    return [
        dict(
            scale=ones(width), shift=zeros(width), mean=zeros(width),
            var=ones(width), kernel=ones(width, out), bias=zeros(out),
        )
        for out in [width] * (layers - 1) + [classes]
    ]

  def layer(p, u, mean, var):
    p = jax.tree.map(lambda x: x[None], dict(p, mean=mean, var=var))
    u = (u - p['mean']) / jnp.sqrt(p['var'] + 1e-5) * p['scale'] + p['shift']
    return jax.nn.relu(u) @ p['kernel'][0] + p['bias']

  def apply(params, u):
    u = u.reshape(len(u), -1)
    for p in params:  # Statistics are measured: no gradient moves them.
      u = layer(p, u, *map(lax.stop_gradient, (p['mean'], p['var'])))
    return u

  def train(params, key, u):
    del key
    u, stats, real = u.reshape(len(u), -1), [], crossing.mask(u)
    real = None if real is None else real[:, None]
    for p in params:
      # NumPy's own methods know no `where` of `None`.
      mean, var = jnp.mean(u, 0, where=real), jnp.var(u, 0, where=real)
      stats.append(lax.stop_gradient(dict(
          mean=0.9 * p['mean'] + 0.1 * mean, var=0.9 * p['var'] + 0.1 * var
      )))
      u = layer(p, u, mean, var)
    return u, stats

  def absorb(params, stats):
    return [p | s for p, s in zip(params, stats)]

  return Net(init, apply, train, absorb)
