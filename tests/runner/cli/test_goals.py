"""What a person can give away, and what is no such number."""
import pytest

from vfljax.runner.cli.goals import Goal, goal
from vfljax.runner.errors import UserError


def test_points_are_taken():
  assert goal(0, 100) == Goal(0, 100)
  assert not goal(None, None).asked


@pytest.mark.parametrize('value', [float('inf'), float('nan'), -1, 100.1])
def test_what_is_no_number_of_points_is_told_what_to_type(value):
  with pytest.raises(UserError, match='Type --budget=2, or leave it '):
    goal(value, None)
  with pytest.raises(UserError, match='Type --max_leak=10, or leave it '):
    goal(None, value)
