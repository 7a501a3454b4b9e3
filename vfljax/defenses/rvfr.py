"""RVFR: embeddings recovered from a subspace (Liu et al. 2021).

The embeddings that all parties have of a sample lie together near a subspace of
few dimensions; with a corrupted party's embedding they do not. The active party
learns that subspace from embeddings, robustly, since a few training samples may
be corrupted. Of each sample its top network sees the point of the subspace that
fits most parties: a party farther off than usual counts by its distance and not
by the square.

The authors work in stages, each over all training data: train the extractors,
learn the subspace, purify the embeddings, train the server's model on those.
Here they run side by side: running statistics of the embeddings, weighted by
the inverse of their distance to the current subspace, are kept as in batch
normalization, and the subspace is spanned by their leading principal
directions. There is no public code; the algorithms inside the stages are ours.
The last stage needs a top with weights (`server`). The active party's own
embedding, if there is one, is trusted.
"""
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import check, crossing, target
from vfljax.defense import Defense
from vfljax.numerics import (
    eigh, floating, in_blocks, masked_median, safe_sqrt,
)
from vfljax.types import Array, Net, Params

AT_ONCE = 1 << 24  # Entries of the samples' systems of equations: 64 MiB.


class Settings(NamedTuple):
  """The arguments of `rvfr`."""

  rank: float
  server: bool
  warmup: int
  decay: float
  steps: int


def rvfr(
    rank: float = 0.5, *, server: bool = False, warmup: int = 50,
    decay: float = 0.99, steps: int = 8,
) -> Defense:
  """Predicts from embeddings that are projected into a common subspace.

  Args:
    rank: Dimension of the subspace as a share of the total width of all
      embeddings, in (0, 1]; at 1 nothing changes.
    server: Whether the top is trained on purified embeddings, too, after
      `warmup` rounds; for tops with weights. The cut-layer gradients are then
      taken at the purified embeddings.
    warmup: Number of rounds, 0 or more.
    decay: Factor of the running statistics per round, in [0, 1).
    steps: Of the iteratively reweighted least squares for a sample, 1 or more.

  Raises:
    ValueError: if an argument is out of its range.
  """
  check.inside('rvfr: rank', rank, 0, 1, open_low=True)
  check.count('rvfr: warmup', warmup, 0)
  check.inside('rvfr: decay', decay, 0, 1, open_high=True)
  check.count('rvfr: steps', steps)

  own = Settings(rank, server, warmup, decay, steps)
  return Defense(top=partial(purifying, own))


def purifying(own: Settings, net: Net) -> Net:
  """The top network on purified embeddings; 'seen' has the statistics."""

  def init(key, us):
    z = together(us)
    seen = dict(
        mean=jnp.zeros(z.shape[1], z.dtype),
        square=jnp.zeros((z.shape[1],) * 2, z.dtype),
        weight=jnp.zeros((), z.dtype), rounds=jnp.zeros((), z.dtype),
    )
    return dict(net=net.init(key, us), seen=seen)

  def purified(seen, us):
    rank = dimensions(us, own.rank)
    plane = subspace(seen, rank)
    clean = in_blocks(
        lambda us: purify(us, *plane, own.steps), us,
        max(1, AT_ONCE // rank**2),
    )
    ready = seen['weight'] > 0
    return tuple(
        u if u is None else jnp.where(ready, c, u) for u, c in zip(us, clean)
    )

  def apply(params, us):
    return net.apply(params['net'], purified(params['seen'], us))

  def train(params, key, us):
    seen = jax.lax.stop_gradient(params['seen'])
    _check_width(seen, us)
    fixed = jax.lax.stop_gradient(us)
    if own.server:
      late = seen['rounds'] >= own.warmup
      clean = jax.lax.stop_gradient(purified(seen, fixed))
      us = tuple(
          u if u is None else u + jnp.where(late, c - f, 0)
          for u, c, f in zip(us, clean, fixed)
      )
    y, stats = net.run(params['net'], key, us)
    new = absorbed(seen, fixed, dimensions(us, own.rank), own.decay,
                   crossing.counted(together(fixed)))
    return y, dict(net=stats, seen=new)

  def absorb(params, stats):
    return dict(
        net=net.absorb(params['net'], stats['net']), seen=stats['seen']
    )

  return Net(init, apply, train, absorb)


def together(us: tuple[Array | None, ...]) -> Array:
  """The embeddings side by side, [batch, width of all].

  In float32 at least: of fewer bits there are no eigenvectors.
  """
  flat = [u.reshape(len(u), -1) for u in us if u is not None]
  return floating(jnp.concatenate(flat, axis=-1))


def _check_width(seen: Params, us: tuple[Array | None, ...]) -> None:
  """Raises ValueError for embeddings of fewer parties than the subspace's."""
  want, got = len(seen['mean']), together(us).shape[1]
  if got != want:
    raise ValueError(
        f'rvfr: its subspace is that of the embeddings of all parties, {want} '
        f'numbers a sample, but its top network got {got}. It cannot be '
        'chained with a defense that trains on fewer parties (multi_head).'
    )


def dimensions(us: tuple[Array | None, ...], rank: float) -> int:
  """The dimension of the subspace, 1 or more."""
  return max(1, round(rank * together(us).shape[1]))


def absorbed(
    seen: Params, us: tuple[Array | None, ...], rank: int, decay: float,
    real: Array | None = None,
) -> Params:
  """The running statistics, updated with a round.

  A sample's weight is inverse to its distance from the subspace, which
  minimizes the sum of distances in place of the sum of squares.

  Args:
    seen: 'mean' [width], 'square' [width, width] and 'weight', sums that decay,
      and 'rounds', a count.
    us: The round's embeddings.
    rank: The subspace's dimension.
    decay: Factor of the sums per round.
    real: [batch] 1, or 0 for a row that does not count; by default all do.
  """
  z = together(us)
  real = jnp.ones(len(z), z.dtype) if real is None else real
  mean, basis, _ = subspace(seen, rank)
  away = z - mean[None]
  distance = jnp.linalg.norm(away - (away @ basis) @ basis.T, axis=-1)
  middle = masked_median(distance[:, None], real > 0)[0]
  weight = middle / jnp.maximum(distance, jnp.maximum(middle, 1e-12))
  weight = jnp.where((seen['weight'] > 0) & (middle > 0), weight, 1.0)
  weight = real.astype(z.dtype) * weight.astype(z.dtype)
  return dict(
      mean=decay * seen['mean'] + weight @ z,
      square=decay * seen['square'] + (z * weight[:, None]).T @ z,
      weight=decay * seen['weight'] + weight.sum(),
      rounds=seen['rounds'] + 1,
  )


def subspace(seen: Params, rank: int) -> tuple[Array, Array, Array]:
  """Mean [width], orthonormal leading directions [width, rank], and each
  coordinate's mean squared distance from the subspace, [width]."""
  count = jnp.maximum(seen['weight'], 1e-12)
  mean = seen['mean'] / count
  covariance = seen['square'] / count - mean[:, None] * mean[None]
  sizes, directions = eigh(covariance)
  rest = directions[:, :-rank] ** 2 @ jnp.maximum(sizes[:-rank], 0)
  return mean, directions[:, -rank:], rest


def _solved(matrices: Array, vectors: Array) -> Array:
  """Solves a linear system per row, [batch, n, n] and [batch, n]: [batch, n].

  On CPUs one after the other, as batched solves deadlocked there; see
  `numerics.svd`, where decompositions are done so, too.
  """
  one = lambda both: jnp.linalg.solve(*both)
  if target.kind() == 'cpu':
    return jax.lax.map(one, (matrices, vectors))
  return jax.vmap(one)((matrices, vectors))


def purify(
    us: tuple[Array | None, ...], mean: Array, basis: Array, rest: Array,
    steps: int = 8,
) -> tuple[Any, ...]:
  """Replaces each sample's embeddings by those of a point of the subspace.

  The point minimizes the sum over parties of Huber's loss of the distance, by
  `steps` of iteratively reweighted least squares. The loss is quadratic up to
  twice a party's usual distance, so that a party far off is outvoted. Where all
  embeddings lie in the subspace, that distance is rounding; it is then at least
  a thousandth of the sample's smallest embedding, which no party can raise.

  Args:
    us: [batch, ...] each; the first is the active party's own or `None`. It is
      trusted: it counts in full, and is returned as it is.
    mean, basis, rest: See `subspace`.
    steps: 1 or more.
  """
  trusted, given = us[0] is not None, [u for u in us if u is not None]
  z = together(us) - mean[None]
  widths = [u.reshape(len(u), -1).shape[1] for u in given]
  owner = jnp.asarray(np.repeat(np.arange(len(widths)), widths))
  parts = jax.nn.one_hot(owner, len(widths), dtype=z.dtype)  # [width, parties]
  usual = 2 * jnp.sqrt(rest @ parts)
  sizes = safe_sqrt((z**2) @ parts / parts.sum(0)[None])
  least = 1e-3 * sizes.min(1, keepdims=True) + 1e-12
  usual = jnp.maximum(usual[None], least)  # [batch, parties]

  def closest(weights):
    """The points of least squares for weights [batch, parties]."""
    return _nearest(z, basis, weights @ parts.T)

  def step(weights, _):
    gap = safe_sqrt(((closest(weights) - z) ** 2) @ parts)
    weights = usual / jnp.maximum(gap, usual)
    return (weights.at[:, 0].set(1.0) if trusted else weights), None

  start = jnp.ones((len(z), len(widths)), z.dtype)
  weights = jax.lax.scan(step, start, None, length=steps)[0]
  found = closest(weights) + mean[None]
  edges = np.cumsum(widths)[:-1]
  clean = [
      c.reshape(u.shape).astype(u.dtype)
      for c, u in zip(jnp.split(found, edges, axis=1), given)
  ]
  return (us[0], *clean[1:]) if trusted else (None, *clean)


def _nearest(z: Array, basis: Array, weights: Array) -> Array:
  """The point of a subspace at the least weighted squared distance, row by row.

  Args:
    z: [batch, width].
    basis: [width, rank], see `subspace`; its center is 0.
    weights: [batch, width], of each coordinate's square.
  """
  gram = jnp.einsum('wi,bw,wj->bij', basis, weights, basis)
  ridge = 1e-6 * jnp.trace(gram, axis1=1, axis2=2) + 1e-12
  one = jnp.eye(basis.shape[1], dtype=z.dtype)[None]
  gram = gram + ridge[:, None, None] * one
  aim = jnp.einsum('wi,bw->bi', basis, weights * z)
  return _solved(gram, aim) @ basis.T
