"""Mean attack (GAFM, Eq. 8): the class whose mean gradient is nearer.

The attacker is given both classes' mean gradients over a half of the round that
is not scored (`views.ClassCenters`; the paper scores the samples that it
averaged), which makes this an upper bound on clustering. The paper scores the
hard decision, whose AUC is the balanced accuracy; `soft` scores the difference
of the distances instead, which ranks samples within a class, too.

A gradient as near to one center as to the other counts as negative; Eq. 8 calls
it positive. That matters only where many are, as between two equal centers.

In a small round a class may have no known sample. Its center is then zeros,
which is a good guess without a defense (`views.class_centers`). The paper's
centers are of all samples, so that this case does not occur there.
"""
import jax.numpy as jnp

from vfljax.attack import Attack, recipe
from vfljax.numerics import row_norms
from vfljax.scene import two_classes
from vfljax.types import Array
from vfljax.views import ClassCenters


@recipe(needs=(two_classes,))
def mean_scoring(soft: bool = False) -> Attack:
  """Scores: [batch], 1 for nearer to the positive center and 0 otherwise.

  Args:
    soft: Score by ||g - negative|| - ||g - positive|| instead.
  """

  def run(key, view: ClassCenters):
    del key
    return nearer(view.received, view.means, soft)

  return Attack(ClassCenters, run)


def nearer(received: Array, centers: Array, soft: bool) -> Array:
  """How much nearer each row is to `centers[1]` than to the other, [batch].

  Raises:
    ValueError: if there are not two: others would not be looked at.
  """
  if len(centers) != 2:
    raise ValueError(
        f'Mean and median scoring tell two classes apart; got {len(centers)} '
        'centers. Of more, gradient_clustering guesses the classes.'
    )
  d = received.reshape(len(received), -1)
  far = [row_norms(d - center.reshape(1, -1)) for center in centers]
  score = far[0] - far[1]
  return score if soft else above(score, 0)


def above(x: Array, threshold: Array | float) -> Array:
  """1 where x is above the threshold, else 0; NaN stays NaN."""
  return jnp.where(jnp.isnan(x), x, (x > threshold).astype(x.dtype))
