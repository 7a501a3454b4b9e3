"""Residue mask (Tan et al. 2022; Kang et al. 2022, section 7 and Table 5).

Random elements of the cut-layer gradient (the residue, in logistic regression)
are set to zero, so that a passive party cannot solve for the residues from the
averaged gradient of its weights. Kang et al. describe it in a sentence and do
not evaluate it: that each element is masked independently with probability
`ratio`, anew in each round, and that the rest is not scaled up, is our reading.
Tan et al.'s abstract speaks of additive and multiplicative noise and of a
hybrid with encryption, of which this may be the second; their text was not at
hand.
"""
import jax
import jax.numpy as jnp

from vfljax import check
from vfljax.defense import Defense, each


def residue_mask(ratio) -> Defense:
  """Zeroes each element of the gradient with probability `ratio`.

  Args:
    ratio: Expected share of the elements that are masked, in [0, 1]; may be
      traced.

  Raises:
    ValueError: if `ratio` is outside [0, 1].
  """
  check.inside('ratio', ratio, 0, 1)

  def mask(key, d, labels):
    del labels
    shown = jax.random.uniform(key, d.shape, jnp.float32) >= ratio
    return jnp.where(shown, d, jnp.zeros_like(d))

  return Defense(gradient=each(mask))
