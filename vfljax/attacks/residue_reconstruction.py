"""Residue reconstruction (Tan et al. 2022; Kang et al. 2022, Eq. 7-10).

In vertical logistic regression the cut-layer gradients (the residues) may be
encrypted, while a passive party learns the gradient of its own weights: X^T d,
linear in the residues d, with its own samples X. Where those are linearly
independent there is one solution and the labels are its signs; elsewhere the
attacker takes the least-squares solution of smallest norm.

Eq. 7 has no bias. A bias adds one more equation, sum(d), and is used here where
the bottom has one.
"""
from typing import NamedTuple

import jax
import jax.numpy as jnp

from vfljax import nets
from vfljax.attack import Attack, recipe
from vfljax.numerics import exact, floating, svd
from vfljax.scene import Scene
from vfljax.types import Array
from vfljax.views import ModelGradients


class Residues(NamedTuple):
  """What can be said of a round's residues.

  Attributes:
    values: [batch, width] the least-squares solution of smallest norm.
    rank: Of the samples, with a bias those of a column of ones more.
    exact: Whether it is the only solution, Eq. 8: rank = number of samples.
  """

  values: Array
  rank: Array
  exact: Array


def reconstruct(
    features: Array, kernel: Array, bias: Array | None = None,
    valid: Array | None = None,
) -> Residues:
  """Solves Eq. 7, in the sense of Eq. 9 where Eq. 8 does not hold.

  Args:
    features: [batch, columns] the passive party's samples.
    kernel: [columns, width] its weights' gradient, X^T d.
    bias: [width] its bias's gradient, the sum of d; `None` without a bias.
    valid: [batch] 1 for a sample, 0 for padding, whose residue is 0.
  """
  # Features may be whole numbers, or in half precision, which have no SVD.
  x, g = floating(features).reshape(len(features), -1), floating(kernel)
  if bias is not None:
    x = jnp.concatenate([x, jnp.ones_like(x[:, :1])], axis=1)
    g = jnp.concatenate([g, floating(bias)[None]])
  real = jnp.ones(len(x), x.dtype) if valid is None else valid.astype(x.dtype)
  left, size, right = svd(x * real[:, None])
  small = size[0] * max(x.shape) * jnp.finfo(x.dtype).eps
  kept = size > small
  inverse = jnp.where(kept, 1 / jnp.where(kept, size, 1), 0)
  values = exact(left, inverse[:, None] * exact(right, g))
  rank = kept.sum()
  return Residues(values, rank, rank == (real > 0).sum())


def _linear(scene: Scene) -> str:
  """A need: bottoms are linear."""
  if scene.linear:
    return ''
  return (
      'solves for the gradients of a linear bottom network: use '
      '--config.model.algorithm=vlr.'
  )


@recipe(needs=(_linear,))
def residue_reconstruction() -> Attack:
  """Scores: minus the residues, [batch, classes]; two classes: (0, -d).

  A residue is p - y: negative at the label, so the scores' signs are the labels
  where the solution is exact. The fact 'exact' says whether it is.

  Raises:
    ValueError: if the attacker's bottom network is not one linear layer.
  """

  def solve(view: ModelGradients) -> Residues:
    kernel, bias = linear_gradient(view.gradients)
    return reconstruct(view.features, kernel, bias, view.valid)

  def run(key, view: ModelGradients):
    del key
    scores = -solve(view).values
    return nets.pair(scores) if scores.shape[1] == 1 else scores

  def facts(view: ModelGradients):
    return dict(exact=solve(view).exact.astype(jnp.float32))

  return Attack(ModelGradients, run, facts)


def linear_gradient(gradients) -> tuple[Array, Array | None]:
  """The kernel's and the bias's gradient of a network of one linear layer.

  Raises:
    ValueError: if the gradients are those of another network.
  """
  leaves = jax.tree.leaves(gradients)
  kernels = [g for g in leaves if g.ndim == 2]
  biases = [g for g in leaves if g.ndim == 1]
  if len(kernels) != 1 or len(kernels) + len(biases) != len(leaves) or (
      len(biases) > 1
  ):
    raise ValueError(
        'residue_reconstruction needs a bottom network of one linear layer, as '
        'in vertical logistic regression.'
    )
  return kernels[0], biases[0] if biases else None
