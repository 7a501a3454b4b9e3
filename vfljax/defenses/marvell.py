"""Marvell (Li et al. 2022; Kang et al. 2022, Eq. 16-17): optimal label noise.

Two Gaussians, one a class, are added to the gradients of a batch with binary
labels, so that the summed KL divergence between the classes' perturbed
gradients is the least that a noise power allows. Classes are modelled as
Gaussians of isotropic covariance; the noise has one variance along the gap
between the class centers and another across it.

The authors alternate three sub-problems from a random start, in pure Python.
Here: across the gap only the class of smaller variance gets noise, s; for fixed
s the noise along the gap has a closed form; and what remains is convex in s
(`_falls`), so that a search on the derivative's sign finds it in a fixed number
of steps. Everything is divided by the largest input first, and divergences are
sums of squares without a cancelling constant, which keeps 32 bits accurate.

Degenerate batches: with one class only (a batch of 1 included), or with equal
class centers, there is no gap to hide, the power `power * ||gap||^2` is 0 and
the gradient passes unchanged. An attacker who recognises a round without noise
knows that it has one class, as most rounds have where positives are rare. One
sample in a class has variance 0; in one dimension there is no "across".
(The authors' code divides by zero in all of these but the third, GAFM's passes
the batch size for d. Theirs can raise the power until the divergence is low.)
"""
from typing import NamedTuple

import jax
import jax.numpy as jnp

from vfljax import check, target
from vfljax.defense import Defense, each
from vfljax.numerics import common_type, safe_sqrt
from vfljax.types import Array

# (Pieces into which a level of the search cuts its interval, levels for 32-bit
# floats, levels for 64-bit ones.) A GPU evaluates all pieces at once.
ELSEWHERE, ON_GPU = (16, 10, 14), (1024, 4, 6)


class Allocation(NamedTuple):
  """Variances of the optimal noise, and what they achieve.

  Attributes:
    lam10: Of negative samples' noise, along the gap.
    lam20: The same across it, in each of the d - 1 directions.
    lam11: Of positive samples' noise, along the gap.
    lam21: The same across it.
    sum_kl: KL(1 || 0) + KL(0 || 1) of the perturbed gradients.
  """

  lam10: Array
  lam20: Array
  lam11: Array
  lam21: Array
  sum_kl: Array


def solve(u, v, d, g, p, power) -> Allocation:
  """The noise of least summed KL divergence, Eq. 16.

  Arguments are numbers or arrays that broadcast, and may be traced. With
  a_k = lam1k + (u, v)_k and b_k = lam2k + (u, v)_k, it minimizes
  [(d-1) (b1-b0)^2 / (b0 b1) + (a1-a0)^2 / (a0 a1) + g (1/a0 + 1/a1)] / 2 under
  p (lam11 + (d-1) lam21) + (1-p) (lam10 + (d-1) lam20) <= power and
  lam1k >= lam2k >= 0.

  Args:
    u: Mean over the coordinates of the variance of negative gradients, >= 0.
    v: The same of positive gradients.
    d: Number of coordinates, 1 or more.
    g: Squared distance between the class centers, >= 0.
    p: Share of positive samples, in (0, 1).
    power: Bound on the noise's power, >= 0, in the unit of `g`. The bound
      itself, not the multiple of `g` that the defense takes.

  Returns:
    An `Allocation`. All of the power is used. `sum_kl` is infinite where a
    class has no variance and gets no noise; if both have no variance, the d - 1
    directions across the gap, in which nothing varies, do not count. For d
    above 1 `jax.grad` is right of `sum_kl` alone, at a power of 0 of nothing.

  Raises:
    ValueError: if a number that is not traced is out of its range.
  """
  for name, value in dict(u=u, v=v, g=g, power=power).items():
    check.at_least(f'solve: {name}', value, 0, many=True)
  check.at_least('solve: d', d, 1, many=True)
  check.inside('solve: p', p, 0, 1, open_low=True, open_high=True, many=True)
  return _solved(u, v, d, g, p, power)


def _solved(u, v, d, g, p, power) -> Allocation:
  """`solve` unchecked: NaN of a training that diverged stays NaN."""
  one_dimension = isinstance(d, int) and d == 1  # Nothing to search for.
  dtype = common_type(*(_floating(x) for x in (u, v, g, p, power)))
  u, v, d, g, p, power = jnp.broadcast_arrays(
      *(jnp.asarray(x).astype(dtype) for x in (u, v, d, g, p, power))
  )
  unit = jnp.maximum(jnp.maximum(u, v), jnp.maximum(g, power))
  unit = jnp.where(unit > 0, unit, 1)
  u, v, g, power = u / unit, v / unit, g / unit, power / unit
  swap = u > v  # From here on "lo" is the class of smaller variance.
  problem = _Problem(
      lo=jnp.minimum(u, v), hi=jnp.maximum(u, v), gap=g, power=power, d=d,
      share_lo=jnp.where(swap, p, 1 - p), share_hi=jnp.where(swap, 1 - p, p),
  )
  s = jnp.zeros_like(u) if one_dimension else _across(problem, target.kind())
  along_lo, along_hi = _along(problem, s)
  choose = lambda a, b: unit * jnp.where(swap, a, b)
  return Allocation(
      lam10=choose(along_hi, along_lo), lam20=choose(0, s),
      lam11=choose(along_lo, along_hi), lam21=choose(s, 0),
      sum_kl=_sum_kl(problem, s, along_lo, along_hi),
  )


def error_lower_bound(sum_kl):
  """1/2 - sqrt(sum_kl)/4: least mean error of any attacker (Li et al. 2022).

  0 from a divergence of 4 on, where the bound would be negative.
  """
  return jnp.maximum(0.5 - jnp.sqrt(sum_kl) / 4, 0)


def auc_upper_bound(sum_kl):
  """1/2 + sqrt(sum_kl)/2 - sum_kl/8: largest AUC; for sum_kl < 4, 1 above."""
  bound = 0.5 + jnp.sqrt(sum_kl) / 2 - sum_kl / 8
  return jnp.where(sum_kl < 4, bound, 1)


def marvell(power) -> Defense:
  """Adds the optimal noise to each party's gradient; for two classes.

  Args:
    power: Power of the noise as a multiple of the squared distance between the
      class centers of the batch's gradient, 0 or more; may be traced. (Kang et
      al.'s tau, which they do not define; `init_scale` of the authors' code.)

  Raises:
    ValueError: if `power` is negative; on labels of other than two classes.
  """
  check.at_least('power', power, 0)

  def perturb(key, d, labels):
    if labels.shape[-1] != 2:
      raise ValueError(
          'marvell is for binary labels (2 classes); the data have'
          f' {labels.shape[-1]}.'
      )
    return _perturb(key, d, labels, power)

  return Defense(gradient=each(perturb))


class _Problem(NamedTuple):
  """`solve`'s inputs in relative units, the class of smaller variance first."""

  lo: Array
  hi: Array
  gap: Array
  power: Array
  d: Array
  share_lo: Array
  share_hi: Array


def _floating(x) -> Array | float:
  """`x`, integers as Python floats so that they do not decide the dtype."""
  return x if jnp.issubdtype(jnp.result_type(x), jnp.floating) else 0.0


@jax.jit(static_argnums=1, inline=True)  # Else compiled at each eager call.
def _across(problem: _Problem, kind: str) -> Array:
  """Noise across the gap, on the class of smaller variance.

  The optimal s never raises the smaller variance above the larger one, and its
  power, with the part that the gap's direction must then get, is at most all of
  it. Each level tests the slope between all pieces and goes on in one of them.
  """
  pieces, *levels = ON_GPU if kind == 'gpu' else ELSEWHERE
  afford = problem.power / jnp.maximum(problem.share_lo * problem.d, 1e-30)
  most = jnp.minimum(problem.hi - problem.lo, afford)
  most = jnp.where(problem.d > 1, most, 0)
  grid = jnp.arange(1, pieces, dtype=most.dtype)
  # One array carries all: each operand of an XLA loop costs, on a CPU more than
  # the arithmetic of this one (with one operand 3 times the solves a second,
  # JAX 0.10).
  def narrow(_, packed):
    *inputs, low, width = packed
    width = width / pieces
    s = low[..., None] + grid * width[..., None]
    falls = _falls(_Problem(*(x[..., None] for x in inputs)), s)
    low = low + width * falls.astype(width.dtype).sum(-1)
    return jnp.concatenate([packed[:-2], jnp.stack([low, width])])

  packed = jnp.stack([*problem, jnp.zeros_like(most), most])
  # On a GPU a level is two kernels; a loop's iteration would cost more.
  *_, low, width = jax.lax.fori_loop(
      0, levels[most.dtype.itemsize > 4], narrow, packed, unroll=kind == 'gpu'
  )
  return low + width / 2


def _along(problem: _Problem, s: Array) -> tuple[Array, Array]:
  """Noise along the gap (lo, hi) for given s: closed form.

  With a power R left, C = R + the classes' weighted variances, and r the ratio
  of the perturbed variances (hi over lo), the divergence is 1/r + r +
  g/C (share_hi r + share_lo)(1 + 1/r): convex, least at r^2 = (C + share_lo g)
  / (C + share_hi g). The constraints lo >= s, hi >= 0 bound r, so clip.
  """
  lo, hi, g, power, d, share_lo, share_hi = problem
  left = power - share_lo * (d - 1) * s
  total = left + share_lo * lo + share_hi * hi
  bottom = total + share_hi * g
  top = jnp.where(bottom > 0, total + share_lo * g, 1)  # No slope at a root 0.
  ratio = jnp.sqrt(top / jnp.where(bottom > 0, bottom, 1))
  tilt = hi - ratio * lo
  weight = share_hi * ratio + share_lo
  along_lo = (left + share_hi * tilt) / weight
  along_hi = (ratio * left - share_lo * tilt) / weight
  at_edge = (left - share_lo * s) / jnp.maximum(share_hi, 1e-30)
  too_low, too_high = along_lo < s, along_hi < 0
  along_hi = jnp.where(too_low, at_edge, along_hi)
  along_lo = jnp.where(too_high, left / jnp.maximum(share_lo, 1e-30), along_lo)
  return jnp.maximum(along_lo, s), jnp.maximum(along_hi, 0)


def _falls(problem: _Problem, s: Array) -> Array:
  """Whether the divergence falls in s, the noise along the gap being optimal.

  Each piece (interior, lo = s, hi = 0) is convex in s and the pieces join
  smoothly, so the sign of the slope changes once. It is not below 0 where
  lo = s: there a_lo = b_lo, and what is left of the slope where the interior
  ends, 1/hi - 1/a_hi + (a_hi + g - hi) / a_lo^2, is not, as a_hi >= hi.
  """
  lo, hi, g, *_ = problem
  along_lo, along_hi = _along(problem, s)
  more = along_lo > s
  # No 0 / 0, at which `jax_debug_nans` stops: not where `more` decides alone,
  # nor where nothing varies, which leaves no s to choose.
  a_lo, a_hi, b_lo = jnp.where(more, along_lo + lo, 1), along_hi + hi, s + lo
  b_lo = jnp.where((hi > 0) | (b_lo > 0), b_lo, 1)
  # Both of twice the divergence, divided by the d - 1 directions across.
  across = 1 / hi - hi / b_lo / b_lo
  along = 1 / a_hi - (a_hi + g) / a_lo / a_lo
  return more & (across < along)


def _over(top: Array, bottom: Array) -> Array:
  """top / bottom of numbers from 0: infinite over 0, and 0 over 0 is 0.

  Never NaN in between, at which `jax_debug_nans` stops.
  """
  none = bottom == 0
  over = jnp.where(none, jnp.inf, top / jnp.where(none, 1, bottom))
  return jnp.where(top > 0, over, 0)


def _sum_kl(problem: _Problem, s: Array, along_lo: Array, along_hi: Array):
  lo, hi, g, _, d, *_ = problem
  a_lo, a_hi, b_lo = along_lo + lo, along_hi + hi, s + lo
  rest = jnp.where(d > 1, jnp.abs(hi - lo - s), 0)
  across = (d - 1) * _over(rest, hi) * _over(rest, b_lo)
  gap = jnp.abs(a_hi - a_lo)
  along = _over(gap, a_lo) * _over(gap, a_hi) + _over(g, a_lo) + _over(g, a_hi)
  return (jnp.where(d > 1, across, 0) + along) / 2


def _perturb(key, d: Array, labels: Array, power) -> Array:
  """Noise for one party's gradient, [batch, width]; padding is left alone."""
  largest = jnp.abs(d).max(initial=0)
  scale = jnp.where(largest > 0, largest, 1)  # Squares of 1e-20 must not be 0.
  x = d / scale
  positive = labels[:, 1] > labels[:, 0]
  negative = (labels[:, 0] > 0) & ~positive
  count0, mean0, u = _moments(x, negative)
  count1, mean1, v = _moments(x, positive)
  gap = jnp.where((count0 > 0) & (count1 > 0), mean1 - mean0, 0)
  g = gap @ gap
  p = jnp.clip(count1 / jnp.maximum(count0 + count1, 1), 1e-6, 1 - 1e-6)
  noise = _solved(u, v, d.shape[-1], g, p, jnp.asarray(power, d.dtype) * g)
  axis = gap / jnp.where(g > 0, safe_sqrt(g), 1)
  pick = lambda a0, a1: jnp.where(positive, a1, jnp.where(negative, a0, 0))
  across = pick(noise.lam20, noise.lam21)
  along = pick(noise.lam10 - noise.lam20, noise.lam11 - noise.lam21)
  root = lambda variance: safe_sqrt(variance)[:, None]
  k_along, k_across = jax.random.split(key)
  z_along = jax.random.normal(k_along, (len(d), 1), d.dtype)
  z_across = jax.random.normal(k_across, d.shape, d.dtype)
  noise_along = root(along) * z_along * axis[None]
  return d + scale * (noise_along + root(across) * z_across)


def _moments(x: Array, mask: Array) -> tuple[Array, Array, Array]:
  """Count, center [width] and mean coordinate variance (1/n) of masked rows."""
  rows = mask.astype(x.dtype)
  count = rows.sum()
  center = rows @ x / jnp.maximum(count, 1)
  spread = (rows[:, None] * (x - center[None]) ** 2).sum()
  return count, center, spread / jnp.maximum(count, 1) / x.shape[-1]
