"""Direction scoring (Li et al. 2022; Kang et al. 2022, Eq. 6).

Gradients of one class point one way, those of the other the opposite way. The
attacker knows one positive sample of the round and compares with its gradient
as received, with a defense's noise. That is our reading: Kang et al. assume
that the positive gradient is known, and do not say whether with the noise. Li
et al. compare with a clean gradient of a positive; an attacker who has one is
stronger against noise, which changes the received direction from round to
round. The known sample's own score is the best possible one, so it is not
scored (`known`).
"""
from vfljax.attack import Attack, recipe
from vfljax.numerics import directions
from vfljax.scene import two_classes
from vfljax.views import KnownPositive


@recipe(needs=(two_classes,))
def direction_scoring() -> Attack:
  """Scores: [batch], the cosine with the known positive's gradient, -1..1.

  0 where a gradient is 0, and everywhere if the round has no known positive.
  """

  def run(key, view: KnownPositive):
    del key
    unit = directions(view.received)
    return unit @ (view.known @ unit)

  return Attack(KnownPositive, run)
