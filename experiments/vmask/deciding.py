"""What a few trainings can decide, so that noise never helps a claim.

A limit is kept or passed "clearly" if the distance is at least the trainings'
sample deviation. Nearer than that, nothing is decided. A limit never counts as
kept if a training diverged, was not measured, or is the only one.
"""
from collections.abc import Iterable, Mapping, Sequence
import math

from experiments import evidence
from experiments.vmask import older

CLEARLY = 'by at least what trainings deviate, else not decided'
Found = bool | None


def within(values: Iterable[float], limit: float = 0.0) -> Found:
  """Whether something is at most a limit, from a value of each training.

  Returns:
    `None` where trainings deviate more than their mean is off the limit, where
    one diverged, or where there is none. One alone can only be over it.
  """
  values = list(values)
  known = finite(values)
  if not known:
    return None
  off, std = deviating(known)
  off -= limit
  if off > 0:
    return False if len(known) == 1 or off >= std else None
  return True if len(known) == len(values) > 1 and -off >= std else None


def below(values: Iterable[float]) -> Found:
  """Whether values are clearly below zero; zeros in all trainings are not."""
  values = list(values)
  return False if values and not any(values) else within(values)


def trend(steps: Sequence[Sequence[float]], up: bool = False) -> Found:
  """Whether something falls step by step, or rises; a row of trainings a step.

  From the first step to the last it does so clearly. A step whose mean goes the
  other way decides against it if it does so clearly, and else nothing.
  """
  sign = -1 if up else 1
  moved = lambda a, b: [sign * (y - x) for x, y in zip(a, b, strict=True)]
  if len(steps) < 2 or not all(steps):
    return None
  found = [below(moved(steps[0], steps[-1]))]
  for a, b in zip(steps, steps[1:]):
    step = moved(a, b)
    still = finite(step) == step and older.mean(step) <= 0
    found.append(still or within(step))
  return every(found)


def deviating(values: Iterable[float]) -> tuple[float, float]:
  """Mean and sample deviation over the trainings that did not diverge."""
  found = evidence.reading.summarize(finite(values))
  return found.mean, found.std


def either(*found: Found) -> Found:
  """One of them is enough."""
  return True if True in found else None if None in found else False


def every(found: Iterable[Found]) -> Found:
  """All have to hold; of nothing nothing does."""
  found = list(found)
  if False in found:
    return False
  return None if None in found or not found else True


def finite(values: Iterable[float]) -> list[float]:
  return [value for value in values if math.isfinite(value)]


def apart(
    a: older.Row, measure: str, b: older.Row, other: str = ''
) -> list[float]:
  """a - b by training; nothing where one was not measured."""
  return older.less(a[measure], b[other or measure]) if (
      measure in a and (other or measure) in b
  ) else []


def remarks(found: Mapping[str, Found]) -> str:
  """'; not decided: M, FM', if there is anything to say."""
  if not found:
    return '; nothing to compare'
  names = [name for name, one in found.items() if one is None]
  return f'; not decided: {", ".join(names)}' if names else ''
