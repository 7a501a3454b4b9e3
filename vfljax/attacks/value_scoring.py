"""Value scoring: the gradient itself, where the cut layer is one number wide.

The hard decisions of the mean and median attacks (GAFM, Eq. 8 and 9) throw away
how far a gradient is from the border, and norm scoring throws away its sign.
This keeps both: the negated sum of the gradient's coordinates, since a loss
falls for positives where their embedding rises. It needs no label at all.
"""
from vfljax.attack import Attack, recipe
from vfljax.scene import two_classes
from vfljax.views import CutGradients


@recipe(needs=(two_classes,))
def value_scoring() -> Attack:
  """Scores: [batch], minus the sum of each sample's gradient."""

  def run(key, view: CutGradients):
    del key
    return -view.received.reshape(len(view.received), -1).sum(-1)

  return Attack(CutGradients, run)
