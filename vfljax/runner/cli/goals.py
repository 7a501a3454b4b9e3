"""The user's limits on utility loss and leakage: `--budget`, `--max_leak`."""
from typing import NamedTuple

from absl import flags

from vfljax.runner.errors import UserError


class Goal(NamedTuple):
  """The user's limits on utility loss and leakage, in percentage points.

  Attributes:
    budget: Utility that a defense may cost, 0 or more; `None` for no limit.
    max_leak: Leakage that the worst attack may reach, 0 or more; `None` for the
      least possible.
  """

  budget: float | None = None
  max_leak: float | None = None

  @property
  def asked(self) -> bool:
    return self != Goal()


def goal(budget: float | None, max_leak: float | None) -> Goal:
  """A goal, its numbers checked.

  Raises:
    UserError: for a number outside 0 to 100.
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
      'budget', None, 'Percentage points of utility that a defense may cost: '
      'the report says which one leaks least within that.', flag_values=found,
  )
  flags.DEFINE_float(
      'max_leak', None, 'Percentage points that the worst attack may leak: '
      'the report says which defense stays within that at the least cost.',
      flag_values=found,
  )
