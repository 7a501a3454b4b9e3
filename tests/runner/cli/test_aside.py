"""What is done beside the first training."""
import threading

from vfljax.runner.cli import aside


def test_what_waits_is_done_once_and_beside():
  done, here = [], threading.current_thread()
  told = threading.Event()

  def work():
    done.append(threading.current_thread())
    told.set()

  with aside.waiting(work):
    assert not done
    aside.begin()
    aside.begin()
    assert told.wait(10)
  assert len(done) == 1 and done[0] is not here and done[0].daemon


def test_outside_of_the_block_nothing_waits():
  done = []
  with aside.waiting(lambda: done.append(1)):
    pass
  aside.begin()
  assert not done
