"""What a person can give away: `--budget` and `--max_leak`."""
from typing import NamedTuple

from absl import flags

from vfljax.runner.errors import UserError


class Goal(NamedTuple):
  """What a person can give away.

  Attributes:
    budget: Points of utility, 0 or more; `None` for any price.
    max_leak: Points that the worst attack may learn, 0 or more; `None` for as
      few as there are to be had.
  """

  budget: float | None = None
  max_leak: float | None = None

  @property
  def asked(self) -> bool:
    return self != Goal()


def goal(budget: float | None, max_leak: float | None) -> Goal:
  """A goal of numbers that make sense.

  Raises:
    UserError: for others.
  """
  asked = (
      ('budget', budget, 2, 'any price will do'),
      ('max_leak', max_leak, 10, 'as little is to leak as there is to be had'),
  )
  for flag, value, likely, without in asked:
    if value is not None and not 0 <= value <= 100:
      raise UserError(
          f'--{flag} is in percentage points, 0 to 100; got {value:g}.\nType '
          f'--{flag}={likely}, or leave it out if {without}.'
      )
  return Goal(budget, max_leak)


def define(found: flags.FlagValues) -> None:
  """Adds the two flags."""
  flags.DEFINE_float(
      'budget', None, 'Points of utility that a defense may cost: the report '
      'says which one leaks least within it.', flag_values=found,
  )
  flags.DEFINE_float(
      'max_leak', None, 'Points that the worst attack may learn: the report '
      'says which defense keeps to it at least cost.', flag_values=found,
  )
