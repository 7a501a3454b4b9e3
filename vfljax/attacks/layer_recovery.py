"""Recovering a masked layer from a passive party's own transcript.

VMask (Tan et al., NDSS 2025) keeps a layer's weights in secret shares and
argues in section IV-D that a passive party cannot compute them: the active
party added noise theta_r, and one batch gives too few equations if it has fewer
samples than the layer has inputs. But a semi-honest party that records all that
the protocol shows it has more than one batch:

- It knew the weights when it put them into shares, and it computes every
  update, z^T g. All that it lacks is theta_r, which is small and never changes
  while the layer is masked. `layer_tracking` simply ignores it.
- Each batch's outputs minus those of the party's own copy are z theta_r: linear
  equations in the same unknown, whatever the updates were. So equations of
  several batches can be combined, and ceil(n1 / B) batches determine theta_r.
  `layer_solving` solves them by least squares, convolutions as products of
  their patches.

Both are our finding about a published defense, measured in
experiments/vmask/adaptive.py. Where a layer's output and its gradient stay with
the active party (T4, `mpc.to_active`), both attacks have only the initial
weights; they do not use T4's input gradients, which tell more (see there). The
attacks are not in the registry, whose runner plays VMask in the fast mode,
without a transcript; `masked.training` gives one.
"""
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from vfljax.attack import Attack
from vfljax.nets.convolution import Padding, edges
from vfljax.nets.windows import windows
from vfljax.numerics import exact, svd
from vfljax.types import Array
from vfljax.views import MaskedLayer

# Share of the largest singular value, below which are float32 rounding errors.
CUTOFF = 1e-5


class Solved(NamedTuple):
  """The solution for theta_r.

  Attributes:
    noise: [inputs, outputs] the least-squares solution of smallest norm.
    rank: The equations' rank: the number of input directions that occurred.
    inputs: The number of inputs, a bias being one more.
  """

  noise: Array
  rank: Array
  inputs: int


def solve_noise(
    inputs: Array, residuals: Array, cutoff: float = CUTOFF
) -> Solved:
  """theta_r from residuals = inputs @ theta_r.

  Args:
    inputs: [equations, n].
    residuals: [equations, m].
    cutoff: Singular values below this share of the largest count as 0, > 0.

  Returns:
    `Solved`. theta_r is 0 in input directions that never occurred; there it has
    not affected any output either.
  """
  left, size, right = svd(inputs)
  kept = size > cutoff * size[0]
  inverse = jnp.where(kept, 1 / jnp.where(kept, size, 1), 0)
  apply = lambda r: exact(right.T, inverse[:, None] * exact(left.T, r))
  noise = apply(residuals)
  noise = noise + apply(residuals - exact(inputs, noise))  # Undoes rounding.
  return Solved(noise, kept.sum(), inputs.shape[1])


def layer_tracking() -> Attack:
  """Guesses the party's own copy of the weights, without theta_r."""

  def run(key: Any, view: MaskedLayer) -> dict[str, Array]:
    del key
    return view.copy

  return Attack(MaskedLayer, run)


def layer_solving(
    strides: tuple[int, int] = (1, 1),
    padding: Padding = 'SAME',
    cutoff: float = CUTOFF,
) -> Attack:
  """Guesses the party's copy plus theta_r, solved for from its transcript.

  Args:
    strides: Of a convolution, (down, right).
    padding: Of a convolution, as in `nets.convolution.Conv`.
    cutoff: As in `solve_noise`.

  Returns:
    An attack whose guess is the layer's weights, like `copy`; without outputs
    (T4) `copy` itself. Facts: 'rank' and 'inputs' of `Solved`, 0 without.
  """

  def run(key: Any, view: MaskedLayer) -> dict[str, Array]:
    del key
    solved = _solve(view, strides, padding, cutoff)
    if solved is None:
      return view.copy
    kernel = view.copy['kernel']
    rows = solved.noise[: kernel.size // kernel.shape[-1]]
    guess = {'kernel': kernel + rows.reshape(kernel.shape)}
    if 'bias' in view.copy:
      guess['bias'] = view.copy['bias'] + solved.noise[-1]
    return guess

  def facts(view: MaskedLayer) -> dict[str, Array]:
    solved = _solve(view, strides, padding, cutoff)
    rank, inputs = (0, 0) if solved is None else (solved.rank, solved.inputs)
    return dict(rank=jnp.asarray(rank, jnp.float32),
                inputs=jnp.asarray(inputs, jnp.float32))

  return Attack(MaskedLayer, run, facts)


def _solve(
    view: MaskedLayer, strides: tuple[int, int], padding: Padding, cutoff: float
) -> Solved | None:
  if isinstance(view.outputs, tuple) or isinstance(view.inputs, tuple):
    return None
  assert isinstance(view.copies, dict)
  rows, residuals = jax.vmap(
      lambda z, y, copy: _equations(z, y, copy, strides, padding)
  )(view.inputs, view.outputs, view.copies)
  flat = lambda a: a.reshape(-1, a.shape[-1])
  return solve_noise(flat(rows), flat(residuals), cutoff)


def _equations(
    z: Array, y: Array, copy: dict[str, Array], strides: tuple[int, int],
    padding: Padding,
) -> tuple[Array, Array]:
  """One round's equations: (z [equations, n], z theta_r [equations, m])."""
  kernel = copy['kernel']
  if kernel.ndim > 2:
    window = kernel.shape[:-2]
    pads = edges(padding, z.shape[1:-1], window, strides)
    z = windows(z, window, strides, pads)
  z = z.reshape(-1, z.shape[-1])
  weights = kernel.reshape(-1, kernel.shape[-1])
  if 'bias' in copy:
    z = jnp.concatenate([z, jnp.ones_like(z[:, :1])], axis=1)
    weights = jnp.concatenate([weights, copy['bias'][None]])
  return z, y.reshape(-1, y.shape[-1]) - exact(z, weights)
