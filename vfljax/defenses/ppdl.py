"""PPDL: few elements, chosen and sent with noise (Shokri and Shmatikov 2015).

Elements are visited in random order. By the sparse vector technique each is
compared with a threshold, with noise on both; those above are released with
fresh noise and clipped, until a share of all has been released. The rest is 0.
Constants and the split of the budget, 8/9 and 2/9 (their sum is not 1 in Shokri
et al. either), are those of Fu et al. (2022). What differs: if fewer elements
than allowed pass, their code sends the others in the clear, ours sends zeros;
and at least one element may be released, where theirs divides the budget by 0.

The threshold's noise is drawn anew only after a release, so a direct program is
a loop of batch x width steps. Here a draw belongs to the position after the
release, which has the same distribution: the next release from each position is
then found for all at once, and pointer doubling finds the positions that are
reached.
"""
import jax
import jax.numpy as jnp

from vfljax import check
from vfljax.defense import Defense, each
from vfljax.numerics import common_type
from vfljax.permuting import permutation
from vfljax.types import Array


def noise_scale(budget, released, sensitivity=1.0):
  """Scale 2 * released * sensitivity / budget of the Laplace noise."""
  return 2 * released * sensitivity / budget


def noise_scales(released, epsilon=1.8, sensitivity=1.0, scale=None):
  """Scales of the noise on the threshold, the queries and the answers.

  Args:
    released: The largest number of elements that may be sent.
    epsilon, sensitivity: See `ppdl`.
    scale: The answers' scale, if it is not to follow from epsilon; the others
      are then a quarter and a half of it, the same ratios as with epsilon.
  """
  select, answer = (
      noise_scale(share * epsilon, released, sensitivity)
      for share in (8 / 9, 2 / 9)
  )
  if scale is not None:
    select, answer = scale / 4, scale
  return select, 2 * select, answer


def released_count(share, count):
  """How many of `count` elements are sent: int(share * count), 1 or more."""
  exact = jnp.asarray(share, jnp.float32) * jnp.asarray(count, jnp.float32)
  return jnp.maximum(jnp.floor(exact * (1 + 1e-6)), 1)


def release(
    d: Array, order: Array, count, threshold_noise: Array, query_noise: Array,
    answer_noise: Array, gamma=1e-3, tau=1e-4,
) -> Array:
  """The deterministic part of PPDL, given all noise and the order of visit.

  Args:
    d: [elements] gradient.
    order: [elements] permutation: the indices of `d` in the order of visit;
      that each occurs once is not checked.
    count: Elements to release at most, 1 or more; may be traced.
    threshold_noise: [elements]; entry i is on the threshold for the first
      release at or after visit i. Only the entries at 0 and after each release
      are used.
    query_noise: [elements]; entry i is on the magnitude seen at visit i.
    answer_noise: [elements]; entry i is on the element released at visit i.
    gamma: Elements are clipped to [-gamma, gamma], both for the comparison and
      when they are released.
    tau: Threshold on the clipped magnitude.

  Returns:
    [elements], zero where not released.
  """
  x = _taken(d, order)
  seen = jnp.abs(jnp.clip(x, -gamma, gamma)) + query_noise
  chosen = _chosen(seen, tau + threshold_noise, count)
  answer = jnp.clip(x + answer_noise, -gamma, gamma)
  return jnp.zeros_like(d).at[order].set(jnp.where(chosen, answer, 0))


def ppdl(
    share, epsilon=1.8, gamma=1e-3, tau=1e-4, sensitivity=1.0, scale=None
) -> Defense:
  """Releases up to a share of the gradient's elements, with noise.

  Args:
    share: Theta_u of Shokri et al., in (0, 1]; may be traced.
    epsilon: Privacy budget of a party's round, above 0; may be traced.
    gamma: Bound on a released element, above 0.
    tau: Threshold, 0 or more.
    sensitivity: Of one element, above 0.
    scale: Scale of the Laplace noise on a released element, above 0, in the
      gradient's own unit; may be traced. If given, `epsilon` and `sensitivity`
      are ignored. `None` derives it from these: by default it is 5 times the
      number of elements released, while gradients are clipped to 0.001. PlugVFL
      has 0.0001 to 0.01.

  Raises:
    ValueError: if an argument is out of range.
  """
  check.inside('share', share, 0, 1, open_low=True)
  check.at_least('tau', tau, 0)
  for name, value in dict(
      epsilon=epsilon, gamma=gamma, sensitivity=sensitivity
  ).items():
    check.above(name, value, 0)
  if scale is not None:
    check.above('scale', scale, 0)

  def perturb(key, d, labels):
    k_order, *k_noise = jax.random.split(key, 4)
    real = jnp.broadcast_to(labels.sum(-1)[:, None] > 0, d.shape).ravel()
    order = permutation(k_order, d.size)
    count = released_count(share, real.sum(dtype=jnp.int32))
    scales = noise_scales(count, epsilon, sensitivity, scale)
    on_threshold, on_query, on_answer = (
        (jax.random.laplace(k, (d.size,), d.dtype) * s).astype(d.dtype)
        for k, s in zip(k_noise, scales)
    )
    # Padding is never released.
    on_query = jnp.where(_taken(real, order), on_query, -jnp.inf)
    out = release(
        d.ravel(), order, count, on_threshold, on_query, on_answer, gamma, tau
    )
    return out.reshape(d.shape)

  return Defense(gradient=each(perturb))


def _chosen(seen: Array, thresholds: Array, count) -> Array:
  """Which visits release: the next one with seen >= threshold, `count` times.

  The threshold that counts is the one at the position after the last release.
  """
  n = len(seen)
  end = jnp.array([n + 1, n + 1])  # No more releases after the last visit.
  jump = jnp.append(_next_at_least(seen, thresholds) + 1, end)
  nth = jnp.arange(1, n + 1)
  after = jnp.zeros_like(nth)  # Position after the nth release, by bits of n.
  for bit in range(n.bit_length()):
    after = jnp.where((nth >> bit) & 1 > 0, _taken(jump, after), after)
    jump = _taken(jump, jump)
  released = nth.astype(common_type(nth, count)) <= count
  return jnp.zeros(n + 2, bool).at[after].set(released)[1:n + 1]


def _next_at_least(x: Array, thresholds: Array) -> Array:
  """For each i the first j >= i with x[j] >= thresholds[i]; len(x) if none."""
  n = len(x)
  levels = [x]  # levels[k][i] = max(x[i : i + 2^k]).
  for k in range(max(n - 1, 0).bit_length()):
    top = levels[-1]
    later = jnp.pad(top[2**k:], (0, 2**k), constant_values=-jnp.inf)
    levels.append(jnp.maximum(top, later))
  j = jnp.arange(n)
  for k in reversed(range(len(levels))):
    none_here = _taken(levels[k], jnp.minimum(j, n - 1)) < thresholds
    j = jnp.where(none_here, jnp.minimum(j + 2**k, n), j)
  return j


def _taken(x: Array, places: Array) -> Array:
  """x[places] without JAX's bounds checks; places are in 0..len(x) - 1."""
  return jnp.asarray(x).at[places].get(
      mode='promise_in_bounds', wrap_negative_indices=False
  )
