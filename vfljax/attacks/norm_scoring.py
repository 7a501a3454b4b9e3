"""Norm scoring (Li et al. 2022; Kang et al. 2022, Eq. 5).

The gradient of a sample is (p - y) times a factor of similar size for all
samples, and |p - y| is larger for the rarer class while the model still gives
it small probabilities.
"""
from vfljax.attack import Attack, recipe
from vfljax.numerics import row_norms
from vfljax.scene import two_classes
from vfljax.views import CutGradients


@recipe(needs=(two_classes,))
def norm_scoring() -> Attack:
  """Scores: [batch], the 2-norm of each sample's cut-layer gradient."""

  def run(key, view: CutGradients):
    del key
    return row_norms(view.received.reshape(len(view.received), -1))

  return Attack(CutGradients, run)
