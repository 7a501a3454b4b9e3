"""Results in the background: one job at a time, none lost, no error lost."""
import threading

import pytest

from vfljax.runner.errors import UserError
from vfljax.runner.saver import Saver
from vfljax.runner.stopping import Stop


def full():
  raise UserError('The disk is full.')


@pytest.fixture
def left(monkeypatch):
  """Whether a signal has ended the process."""
  found = []
  monkeypatch.setattr('vfljax.runner.stopping.leave', found.append)
  return found


def test_the_next_job_trains_while_one_is_saved():
  free, saved = threading.Event(), []
  with Saver(Stop()) as saver:
    saver.begin(lambda: free.wait(30) and saved.append('first'))
    assert not saved
    free.set()
    saver.begin(lambda: saved.append('second'))  # Waits for the first.
    assert saved[:1] == ['first']
  assert saved == ['first', 'second']  # Finished on leaving.


def test_what_is_begun_is_finished_whatever_ends_the_run():
  saved = []
  with pytest.raises(KeyboardInterrupt):
    with Saver(Stop()) as saver:
      saver.begin(lambda: saved.append('first'))
      raise KeyboardInterrupt
  assert saved == ['first']


def test_what_the_disk_refuses_is_told_before_the_next_and_on_leaving():
  with pytest.raises(UserError, match='full'):
    with Saver(Stop()) as saver:
      saver.begin(full)
      with pytest.raises(UserError, match='full'):
        saver.begin(lambda: None)
  with pytest.raises(UserError, match='full'):
    with Saver(Stop()) as saver:
      saver.begin(full)


def test_a_signal_waits_for_what_is_being_saved(left):
  free, stop = threading.Event(), Stop()
  with Saver(stop) as saver:
    with stop.awaited():  # As the job is, to its end.
      saver.begin(lambda: free.wait(30))
    stop.ask()
    assert stop and not left
    free.set()
  stop.since = 0.0
  stop.ask()
  assert left
