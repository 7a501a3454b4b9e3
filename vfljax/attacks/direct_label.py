"""Direct label inference (Fu et al. 2022; Kang et al. 2022, Eq. 4).

Without a trainable top, the cut-layer gradient of a sample is p - y, whose only
negative entry is the label's. With noise there may be several negative entries
or none, so the smallest is taken, which is at least as good as the first
negative one.
"""
from vfljax import nets
from vfljax.attack import Attack, recipe
from vfljax.scene import Scene, summed
from vfljax.views import CutGradients


def _logits(scene: Scene) -> str:
  """A need: cut-layer gradients are gradients with respect to the logits."""
  if not scene.open_top:
    return ''
  return (
      'reads labels from the signs of gradients at the logits; with a '
      'trainable top there are none. Use --config.model.trainable_top=False '
      'or --config.model.algorithm=vlr.'
  )


@recipe(needs=(summed, _logits))
def direct_label() -> Attack:
  """Scores: [batch, classes], the negated gradient.

  For an embedding of width 1 (a sigmoid's logit) they are (0, -d). They are
  meaningful only where the top has no weights.
  """

  def run(key, view: CutGradients):
    del key
    d = view.received.reshape(len(view.received), -1)
    return nets.pair(-d) if d.shape[1] == 1 else -d

  return Attack(CutGradients, run)
