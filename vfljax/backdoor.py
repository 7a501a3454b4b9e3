"""Attacks on the trained model: deviate in training, strike at inference.

A backdoor is two adversaries: one acts in training and may plant a trigger, the
other acts at inference, on samples that the attackers choose. Both are hooks on
the attackers' own features and messages, so that they can do no more than a
passive party can.
"""
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from vfljax import check, metrics
from vfljax.adversary import Adversary
from vfljax.numerics import common_type
from vfljax.types import Array


class Backdoor(NamedTuple):
  """The attackers' behaviour in training and at inference.

  Attributes:
    training: The adversary for `Plan.adversary` and `play_round`.
    inference: The adversary for `predict`, on the samples that are attacked.
    target: The class that the model should predict for attacked samples; may be
      traced. `None` for attackers who want any error.
  """

  training: Adversary
  inference: Adversary
  target: Array | int | None = None


def measured(
    backdoor: Backdoor, clean: Array, attacked: Array, labels: Array
) -> dict[str, Array]:
  """Scores a backdoor on the samples that it attacks.

  Args:
    backdoor: Whose target it is.
    clean: [n, classes] logits without the attack.
    attacked: [n, classes] logits with it.
    labels: [n, classes]; a row of zeros does not count, and one with several
      classes is of the largest.

  Returns:
    Fractions. 'attacked_accuracy', and 'drop', clean minus attacked accuracy.
    With a target also, over the samples of other classes: 'backdoor_accuracy',
    the share predicted as the target, and 'untriggered', the same without the
    attack. NaN if logits are NaN.

  Raises:
    ValueError: if the target is none of the classes: nothing is taken for it
      (both are NaN if it is traced); if labels and logits differ in shape.
  """
  for logits in clean, attacked:
    check.alike('backdoor.measured', logits, labels)
  real = (labels.sum(-1) > 0).astype(jnp.float32)
  before = metrics.accuracy(clean, labels, real)
  after = metrics.accuracy(attacked, labels, real)
  found = dict(attacked_accuracy=after, drop=before - after)
  if backdoor.target is None:
    return found
  classes = labels.shape[-1]
  check.whole('Backdoor.target', backdoor.target, 0, classes - 1)
  target = jnp.asarray(backdoor.target).astype(jnp.int32)
  others = real * (labels.argmax(-1) != target).astype(jnp.float32)
  others = jnp.where((target >= 0) & (target < classes), others, 0)
  taken = jnp.full(len(labels), target)
  share = lambda logits: metrics.accuracy(logits, taken, others)
  return found | dict(
      backdoor_accuracy=share(attacked), untriggered=share(clean)
  )


def some(name: str, parties: Sequence[int]) -> None:
  """Raises ValueError, of the attack `name`, if nobody deviates."""
  if not isinstance(parties, (tuple, list)) or not parties:
    raise ValueError(f'{name} needs one or more parties; got {parties!r}.')


def value_range(features: Sequence[Array]) -> tuple[Array, Array]:
  """The smallest and the largest value in any of the attackers' features."""
  kind = common_type(*features)
  low = jnp.stack([x.min().astype(kind) for x in features]).min()
  return low, jnp.stack([x.max().astype(kind) for x in features]).max()


def stamp(x: Array, value: float | Array = 1.0) -> Array:
  """Features with a trigger: four pixels of a checkerboard, lower right.

  The places are those of VFLAIR, for the one attacker of two parties; it has
  them magenta and green in turn where there are colors. Of four parties each
  attacker lights the last pixel alone there. In tables it sets the first column
  to 0.1.

  Args:
    x: [n, height, width, channels] images of 3x3 pixels or more, whose pixels
      (-1, -1), (-2, -2), (-1, -3) and (-3, -1) become `value`, counted from the
      corner, in every channel; or [n, columns], whose last four columns (or
      all, if fewer) become `value`.
    value: The value of a trigger's pixel: the largest that features have. One
      number that the features' type holds; may be traced.

  Raises:
    ValueError: for smaller images, or a value that is no such number.
  """
  x = jnp.asarray(x)
  if jnp.issubdtype(x.dtype, jnp.integer):  # A part of one would be cut off.
    held = jnp.iinfo(x.dtype)
    check.whole('stamp: value', value, int(held.min), int(held.max))
  elif x.dtype != bool:
    check.inside(
        'stamp: value', value, -np.inf, np.inf, open_low=True, open_high=True
    )
  value = jnp.asarray(value).astype(x.dtype)
  if x.ndim == 2:
    return x.at[:, -4:].set(value)
  if x.ndim != 4 or min(x.shape[1:3]) < 3:
    raise ValueError(
        'A trigger needs [n, columns] or images of 3 x 3 pixels or more; got '
        f'features of shape {x.shape}.'
    )
  high = jnp.array([-1, -2, -1, -3])
  wide = jnp.array([-1, -2, -3, -1])
  return x.at[:, high, wide].set(value)
