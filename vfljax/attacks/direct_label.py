"""Direct label inference (Fu et al. 2022; Kang et al. 2022, Eq. 4).

Without a trainable top, the cut-layer gradient of a sample is p - y: its only
negative entry is at the label. Noise can leave several negative entries or
none, so the smallest is taken, which is at least as good as the first negative.
"""
from vfljax import nets
from vfljax.attack import Attack, recipe
from vfljax.scene import Scene, summed
from vfljax.views import CutGradients


def _logits(scene: Scene) -> str:
  """A need: cut-layer gradients are those at the logits."""
  if not scene.open_top:
    return ''
  return (
      'reads labels from the signs of gradients at the logits; with a '
      'trainable top there are none. Use --config.model.trainable_top=False '
      'or --config.model.algorithm=vlr.'
  )


@recipe(needs=(summed, _logits))
def direct_label() -> Attack:
  """Scores: [batch, classes], minus the gradient's entries.

  An embedding of width 1 (a sigmoid's logit) gives the scores (0, -d). They
  mean something only where the top has no weights.
  """

  def run(key, view: CutGradients):
    del key
    d = view.received.reshape(len(view.received), -1)
    return nets.pair(-d) if d.shape[1] == 1 else -d

  return Attack(CutGradients, run)
