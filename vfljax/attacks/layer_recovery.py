"""Recovering a masked layer from a passive party's own transcript.

VMask (Tan et al., NDSS 2025) keeps a layer's weights in shares, and
argues in section IV-D that a passive party cannot compute them: noise theta_r
was added at the active party, and one batch gives too few equations if it is
smaller than the layer's inputs. A semi-honest party that keeps what the
protocol shows it knows more than one batch, however:

- It knew the weights when it put them into shares, and it computes every
  update, z^T g. All that it lacks is theta_r, which is small and never changes
  while the layer is masked. `layer_tracking` simply goes without it.
- Each batch's outputs minus those of its own copy are z theta_r: linear
  equations in the same unknown, whatever the updates were. So they add up over
  batches, and ceil(n1 / B) batches determine theta_r. `layer_solving` solves
  them by least squares, convolutions as products of their patches.

Both are our finding about a published defense, measured in
experiments/vmask/adaptive.py. Where output and gradient of a layer stay with
the active party (T4, `mpc.to_active`), neither has anything to go by but the
weights from before; its input gradients, which tell more (see there), are not
looked at. They are not in the registry: its runner plays VMask in
the fast mode, which has no transcript; `masked.training` gives one.
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

# Of the largest singular value; below it lie rounding errors of float32.
CUTOFF = 1e-5


class Solved(NamedTuple):
  """What can be said of theta_r.

  Attributes:
    noise: [inputs, outputs] least squares solution of smallest norm.
    rank: Of the equations: directions of the input that occurred.
    inputs: How many there are, a bias being one more.
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
    cutoff: Singular values below this share of the largest count as none, > 0.

  Returns:
    `Solved`. Inputs that never occur leave directions of theta_r at 0, which
    do not affect outputs either.
  """
  left, size, right = svd(inputs)
  kept = size > cutoff * size[0]
  inverse = jnp.where(kept, 1 / jnp.where(kept, size, 1), 0)
  apply = lambda r: exact(right.T, inverse[:, None] * exact(left.T, r))
  noise = apply(residuals)
  noise = noise + apply(residuals - exact(inputs, noise))  # Undoes rounding.
  return Solved(noise, kept.sum(), inputs.shape[1])


def layer_tracking() -> Attack:
  """The party's own copy of the weights, theta_r left out; guess: as `copy`."""

  def run(key: Any, view: MaskedLayer) -> dict[str, Array]:
    del key
    return view.copy

  return Attack(MaskedLayer, run)


def layer_solving(
    strides: tuple[int, int] = (1, 1),
    padding: Padding = 'SAME',
    cutoff: float = CUTOFF,
) -> Attack:
  """The party's copy plus theta_r as its transcript determines it.

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
  """One round's: what multiplies theta_r, and what comes out of it."""
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
