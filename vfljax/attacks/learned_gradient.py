"""Learned gradients: a classifier of cut-layer gradients, from a few labels.

Direct label inference reads one entry's sign and fails as soon as there is a
layer between the embedding and the logits, such as MID's bottleneck, even if
the gradient still tells the label. This attacker adapts: it records the
gradients that it receives, knows the labels of a few of those samples, and
trains a classifier on the gradients' directions. It tests a defense of
gradients where direct label inference cannot (ours; no paper's).
"""
from vfljax import nets, samples
from vfljax.attack import REPLAYED, Attack, recipe
from vfljax.completion import Samples, Schedule, check, complete
from vfljax.numerics import directions
from vfljax.views import RecordedGradients

SCHEDULE = Schedule(epochs=300, stages=1, learning_rate=0.05)


@recipe(stage=REPLAYED)
def learned_gradient(
    hidden: tuple[int, ...] = (), schedule: Schedule = SCHEDULE
) -> Attack:
  """Scores: [n, classes], logits of a head on the gradients' directions.

  Args:
    hidden: Hidden widths of the head; linear without any.
    schedule: How it trains on the known gradients.

  Raises:
    ValueError: if the schedule makes no sense.
  """
  check(schedule)

  def run(key, view: RecordedGradients):
    samples.check_known(
        'learned_gradient', view.known_received, view.known_labels, 1
    )
    head = nets.mlp(*hidden, view.known_labels.shape[-1])
    known, wanted = map(directions, (view.known_received, view.received))
    # Standardized by the known ones. A coordinate may hardly vary, hence the
    # floor: if all directions are equal, rounding errors stay small.
    mean, std = known.mean(0)[None], known.std(0)[None]
    scale = lambda d: (d - mean) / (std + 1e-3 * std.max() + 2e-6)
    known, wanted = scale(known), scale(wanted)
    return complete(
        key, schedule, head.apply, head.init(key, known),
        Samples(known, view.known_labels, wanted),
    )[-1]

  return Attack(RecordedGradients, run)
