"""Results in the background: one job at a time, none lost, no error lost."""
import threading

import pytest

from vfljax.runner.errors import UserError
from vfljax.runner.machine.stopping import Stop
from vfljax.runner.workdir.saver import Saver


def full():
  raise UserError('The disk is full.')


@pytest.fixture
def left(monkeypatch):
  """Whether a signal has ended the process."""
  found = []
  monkeypatch.setattr('vfljax.runner.machine.stopping.leave', found.append)
  return found


def test_the_next_job_trains_while_one_is_saved():
  free, saved = threading.Event(), []
  with Saver(Stop()) as saver:
    saver.begin(lambda: free.wait(30) and saved.append('first'))
    saver.begin(lambda: saved.append('second'))
    saver.check()  # Nothing has gone wrong yet.
    assert not saved
    free.set()
  assert saved == ['first', 'second']  # Finished on leaving.


def test_what_is_begun_is_finished_whatever_ends_the_run():
  saved = []
  with pytest.raises(KeyboardInterrupt):
    with Saver(Stop()) as saver:
      saver.begin(lambda: saved.append('first'))
      raise KeyboardInterrupt
  assert saved == ['first']


@pytest.mark.parametrize('error', [
    UserError('The disk is full.'), MemoryError('The memory is full.')
])
def test_what_could_not_be_saved_is_told_once_and_loses_nothing_else(error):
  saved = threading.Event()

  def fail():
    raise error

  with Saver(Stop()) as saver:
    saver.begin(fail)
    saver.begin(saved.set)
    assert saved.wait(30)
    with pytest.raises(type(error), match='full'):
      saver.check()
    saver.check()
  with pytest.raises(type(error), match='full'):
    with Saver(Stop()) as saver:
      saver.begin(fail)


def test_a_thread_that_cannot_be_had_is_no_save_to_wait_for(left, monkeypatch):
  stop = Stop()
  with Saver(stop) as saver:
    monkeypatch.setattr(saver._pool, 'submit', lambda do: full())
    with pytest.raises(UserError):
      saver.begin(lambda: None)
  stop.ask()
  assert left


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
