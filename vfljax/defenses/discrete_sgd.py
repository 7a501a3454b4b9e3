"""DiscreteSGD: few distinct gradient values (Fu et al. 2022; Kang et al. 2022).

Eq. 19 of Kang et al. divides mean +- 2 standard deviations of the batch's
elements into N bins and moves each element to the nearest endpoint of a bin;
elements outside become 0. (The text swaps the names of the two bounds.) The
public code of Fu et al. instead rounds to multiples of 2 * bound / N, centered
on 0 and unbounded: `bound=` does that. PlugVFL adds Laplace noise to what is
left: `noise=`.
"""
import jax
import jax.numpy as jnp

from vfljax import check
from vfljax.defense import Defense, each
from vfljax.numerics import floating
from vfljax.types import Array


def discretize(
    d: Array, bins, bound=None, weights: Array | None = None
) -> Array:
  """Eq. 19, or multiples of 2 * bound / bins if `bound` is given.

  Args:
    d: [batch, width] gradients.
    bins: Number of bins N, 1 or more; may be traced.
    bound: `None` for Eq. 19. Above 0 for the variant of Fu et al., whose values
      are .03 and, on Criteo, .001; halves go to the even multiple.
    weights: [batch] of 0 and 1; rows at 0 (padding) do not count towards the
      mean and the (population) standard deviation.

  Returns:
    [batch, width]. Where all elements are equal, Eq. 19 returns them.
  """
  if bound is not None:
    interval = jnp.asarray(2 * bound / bins, d.dtype)
    return jnp.round(d / interval) * interval
  rows = jnp.ones(len(d), d.dtype) if weights is None else weights
  rows = floating(rows)  # In half precision there is no count of 257 rows.
  share = (rows / jnp.maximum(rows.sum() * d.shape[-1], 1))[:, None]
  share = share.astype(d.dtype)
  largest = jnp.abs(d).max(initial=0)
  scale = jnp.where(largest > 0, largest, 1)  # Squares of 1e-20 underflow.
  x = d / scale
  mean = (share * x).sum()
  std = jnp.sqrt((share * (x - mean) ** 2).sum())
  interval = (4 * std / bins).astype(d.dtype)
  low = mean - 2 * std
  eps = jnp.finfo(d.dtype).eps
  flat = std <= eps * jnp.abs(mean)
  # Halves are rounded down: of two nearest endpoints the first is taken.
  steps = jnp.ceil((x - low) / jnp.where(flat, 1, interval) - 0.5)
  endpoint = low + jnp.clip(steps, 0, bins).astype(d.dtype) * interval
  # One of five elements that differs from the others lies exactly on the bound
  # and counts as inside, hence the tolerance. (NaN is not outside: it stays.)
  outside = jnp.abs(x - mean) > 2 * std * (1 + 8 * eps)
  return jnp.where(flat, d, jnp.where(outside, 0, endpoint * scale))


def discrete_sgd(bins, bound=None, noise=0.0) -> Defense:
  """Replaces each party's gradient by its discretization.

  Args:
    bins: Eq. 19's N, 1 or more; may be traced.
    bound: See `discretize`.
    noise: Scale of the Laplace noise that is added to every element of the
      discrete gradient, 0 or more, in the gradient's own unit; may be traced.

  Raises:
    ValueError: if `bins` is below 1, `bound` is not above 0, or `noise` is
      below 0.
  """
  check.whole('bins', bins, 1)
  if bound is not None:
    check.above('bound', bound, 0)
  check.at_least('noise', noise, 0)

  def perturb(key, d, labels):
    found = discretize(d, bins, bound, labels.sum(-1))
    if isinstance(noise, (int, float)) and not noise:
      return found
    added = jax.random.laplace(key, d.shape, d.dtype) * noise
    return (found + added).astype(d.dtype)

  return Defense(gradient=each(perturb))
