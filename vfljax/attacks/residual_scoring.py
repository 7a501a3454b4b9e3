"""Residual scoring: the part of gradients that embeddings do not explain.

Under many defenses the gradient is a smooth function of the embedding plus a
small term that depends on the label: GAFM's whole GAN term and most of its
cross-entropy are functions of f(x), which the attacker has sent itself. So it
regresses the round's gradients on its embeddings and scores the residuals,
without any label.

Ours. On GAFM, where f is one number, it is stronger than the paper's attacks.
A polynomial has degree x width + 1 terms, and as many samples are explained by
it whatever their gradients. So the degree falls, down to 1, until a round has
more samples than that; where it has not even then, all scores are 0.
"""
import jax.numpy as jnp

from vfljax import check
from vfljax.attack import Attack, recipe
from vfljax.numerics import eigh, exact, floating, svd
from vfljax.scene import two_classes
from vfljax.types import Array
from vfljax.views import CutGradients

RIDGE = 1e-6  # Share of the largest singular value; smaller ones count as 0.


@recipe(needs=(two_classes,))
def residual_scoring(degree: int = 5) -> Attack:
  """Scores: [batch], the residuals' first principal component.

  The sign of a component is arbitrary and is chosen as in `value_scoring`;
  the folded AUC does not depend on it.

  Args:
    degree: Of the polynomial in each coordinate of the embedding, 1 or more;
      lower in a round of few samples.

  Raises:
    ValueError: if `degree` is not an integer >= 1.
  """
  check.count('degree', degree)

  def run(key, view: CutGradients):
    del key
    # No library decomposes matrices in half precision.
    flat = lambda x: floating(x).reshape(len(x), -1)
    sent, received = flat(view.sent), flat(view.received)
    rest = residuals(sent, received, view.valid, degree)
    _, axes = eigh(exact(rest.T, rest))
    axis = axes[:, -1]
    return -rest @ (axis * jnp.where(axis.sum() < 0, -1, 1))

  return Attack(CutGradients, run)


def residuals(sent: Array, received: Array, valid: Array, degree: int) -> Array:
  """`received` minus its least-squares polynomial in `sent`, in unit scale.

  Args:
    sent: [batch, width].
    received: [batch, coordinates].
    valid: [batch], 0 for rows to leave out; their residuals are 0.
    degree: Of the polynomial in each column of `sent`, as far as there are
      more samples than terms.

  Returns:
    [batch, coordinates], divided by the largest gradient of the round; zeros if
    all of it is explained by as many terms as there are samples.
  """
  rows = valid[:, None].astype(received.dtype)
  count = jnp.maximum(rows.sum(), 1)
  center = ((rows * sent).sum(0) / count)[None]
  spread = jnp.sqrt((rows * (sent - center) ** 2).sum(0) / count)
  x = (sent - center) / jnp.where(spread > 0, spread, 1)[None]
  x = jnp.where(rows > 0, x, 0)  # Padding may be far off: x^5 is infinite.
  most = jnp.maximum((count - 2) / x.shape[1], 1)
  powers = [jnp.where(i <= most, x**i, 0) for i in range(1, degree + 1)]
  design = rows * jnp.concatenate([jnp.ones_like(x[:, :1]), *powers], axis=1)
  target = rows * received
  largest = jnp.abs(target).max(initial=0)
  target = target / jnp.where(largest > 0, largest, 1)
  basis, values, _ = svd(design)
  kept = (values > RIDGE * values[0]).astype(basis.dtype)
  basis = basis * kept[None]
  rest = target - exact(basis, exact(basis.T, target))
  # As many terms as samples leave rounding alone, which says nothing.
  return rest * (kept.sum() < count).astype(rest.dtype)  # NaN stays.
