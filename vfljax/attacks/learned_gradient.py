"""Learned gradients: a classifier of cut-layer gradients, from a few labels.

Direct label inference reads one entry's sign and fails as soon as anything
stands between the embedding and the logits, MID's bottleneck for one, whether
or not labels still show in the gradient. This attacker adapts: it keeps the
gradients it is sent, knows the labels of a few of those samples, and learns to
tell classes apart by the gradients' directions. It is the measure of a defense
of gradients that direct label inference is not (ours; no paper's).
"""
import jax.numpy as jnp

from vfljax import nets
from vfljax.attack import REPLAYED, Attack, recipe
from vfljax.completion import Samples, Schedule, check, complete
from vfljax.numerics import row_norms
from vfljax.types import Array
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
    head = nets.mlp(*hidden, view.known_labels.shape[-1])
    known, wanted = direction(view.known_received), direction(view.received)
    # On the scale of the known ones; a direction may hardly vary. They are of
    # length 1: if all are one, what is left is rounding, and stays that small.
    mean, std = known.mean(0)[None], known.std(0)[None]
    scale = lambda d: (d - mean) / (std + 1e-3 * std.max() + 2e-6)
    known, wanted = scale(known), scale(wanted)
    return complete(
        key, schedule, head.apply, head.init(key, known),
        Samples(known, view.known_labels, wanted),
    )[-1]

  return Attack(RecordedGradients, run)


def direction(d: Array) -> Array:
  """[n, width] gradients of length 1, or 0 where a gradient is 0."""
  d = d.reshape(len(d), -1)
  lengths = row_norms(d)[:, None]
  return jnp.where(lengths > 0, d / jnp.where(lengths > 0, lengths, 1), 0)
