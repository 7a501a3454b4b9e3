"""Checkpoints in the background: one at a time, and no error is lost."""
import threading

import numpy as np
import pytest

from vfljax.runner.errors import UserError
from vfljax.runner.workdir.writer import Writer


class Slow:
  """A work directory that writes when it is let."""

  def __init__(self):
    self.let, self.written = threading.Event(), []

  def save_checkpoint(self, unit, step, tree):
    assert self.let.wait(30)
    self.written.append((unit, step, float(tree.arrays['0'][0])))
    if step == 3:
      raise UserError('The disk is full.')


def test_training_goes_on_while_a_checkpoint_is_written():
  work, state = Slow(), np.zeros(1)
  with Writer(work, 'iso/0') as writer:
    assert not writer.busy
    writer.save(1, [state])
    state += 1  # The memory is used again.
    assert writer.busy and not work.written
    work.let.set()
    writer.save(2, [state])  # Waits for the first.
    assert work.written[0] == ('iso/0', 1, 0.0)
  assert work.written[1:] == [('iso/0', 2, 1.0)]  # Finished on leaving.


def test_what_the_disk_refuses_is_told_at_the_next_occasion():
  work = Slow()
  work.let.set()
  with Writer(work, 'none') as writer:
    writer.save(3, [np.zeros(1)])
    with pytest.raises(UserError, match='full'):
      writer.save(4, [np.zeros(1)])
    with pytest.raises(UserError, match='full'):
      writer.wait()
    with pytest.raises(UserError, match='full'):
      writer.check()
    writer.settle()  # Of a unit that is done nobody minds.
  assert len(work.written) == 1


def test_looking_waits_for_nothing_and_settling_does():
  work = Slow()
  with Writer(work, 'none') as writer:
    writer.settle()
    writer.save(3, [np.zeros(1)])
    writer.check()
    assert writer.busy and not work.written and writer.took == 0
    threading.Timer(0.1, work.let.set).start()
    writer.settle()
    assert not writer.busy and len(work.written) == 1


def test_it_knows_how_long_the_last_one_took():
  work = Slow()
  with Writer(work, 'none') as writer:
    writer.save(1, [np.zeros(1)])
    threading.Timer(0.1, work.let.set).start()
    writer.wait()
    assert 0.1 <= writer.took < 20
