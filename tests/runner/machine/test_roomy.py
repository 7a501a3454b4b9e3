"""Deep calls find the stack as it is: no memory comes and goes with each."""
import resource

import pytest

from vfljax.runner.machine.roomy import roomy

# Of this thread, where the system tells threads apart.
_WHOSE = getattr(resource, 'RUSAGE_THREAD', resource.RUSAGE_SELF)
CALLS = 50
DEPTHS = 500  # Several of Python's own pieces.


def _leaf(a=1, b=2, c=3, d=4, e=5):
  return a + b + c + d + e


def _mapped_at(depth: int) -> int:
  """Pages mapped by calls from so deep."""
  if depth:
    return _mapped_at(depth - 1)
  before = resource.getrusage(_WHOSE).ru_minflt
  for _ in range(CALLS):
    _leaf()
  return resource.getrusage(_WHOSE).ru_minflt - before


def test_no_depth_maps_memory_with_each_call():
  most = roomy(lambda: max(_mapped_at(depth) for depth in range(DEPTHS)))()
  assert most < CALLS


def test_a_function_in_it_is_called_as_it_was():

  @roomy
  def called(a, *, b):
    """Its words."""
    return a - b

  assert called(5, b=3) == 2
  assert (called.__name__, called.__doc__) == ('called', 'Its words.')
  with pytest.raises(TypeError):
    called(5)


def test_room_in_room():
  assert roomy(roomy(lambda: 7))() == 7
