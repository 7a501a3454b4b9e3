"""The disk fills up at every moment of a run, or another run is there."""
import errno
import itertools
import os
import subprocess
import sys
import textwrap
import time
from unittest import mock

import pytest

from tests.faults import tiny
from vfljax.runner.errors import UserError
from vfljax.runner.machine import disk


def full_at(number):
  """A `disk.fault` that raises at the moment of that number, and counts."""
  moments = itertools.count(1)

  def fault(file):
    if next(moments) == number:
      raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file))

  return fault


def moments(place, saves):
  """How many moments of writing an untouched run has."""
  with mock.patch.object(disk, 'fault') as fault:
    tiny.run(place, saves=saves)
  return fault.call_count


def survives(place, number, whole, saves):
  with mock.patch.object(disk, 'fault', full_at(number)):
    with pytest.raises(UserError, match='No space left') as error:
      tiny.run(place, saves=saves)
  assert len(str(error.value).splitlines()) == 2
  assert not list(place.rglob('.vfljax-*')), 'something unfinished was left'
  tiny.run(place, saves=saves)
  assert tiny.results(place) == whole, number


def fill(folder, tally, saves, every):
  count = moments(folder / 'whole', saves)
  whole = tiny.results(folder / 'whole')
  for number in range(1, count + 1, every):
    survives(folder / str(number), number, whole, saves)
    tally('full disks')
  return count


@pytest.mark.faults
def test_a_disk_that_is_full_at_every_moment(tmp_path, tally):
  assert fill(tmp_path, tally, tiny.STEPS, 1) > 60


def test_a_disk_that_is_full_at_some_moments(tmp_path, tally):
  assert fill(tmp_path, tally, 2, 11) > 22  # Three moments at least.


@pytest.mark.parametrize('years', [-30, 1])
def test_a_clock_that_was_set(tmp_path, monkeypatch, years, tally):
  """Nothing here goes by the time of a file or of the day."""
  tiny.run(tmp_path / 'whole', saves=2)
  with pytest.raises(tiny.Left):
    tiny.run(tmp_path / 'out', ('iso/0.1', 3), saves=2)
  then = time.time() + years * 365 * 86400
  for place in (tmp_path / 'out').rglob('*'):
    os.utime(place, (then, then))
  monkeypatch.setattr(time, 'time', lambda: then)
  monkeypatch.setattr(time, 'time_ns', lambda: int(then * 1e9))
  tiny.run(tmp_path / 'out', saves=2)
  assert tiny.results(tmp_path / 'out') == tiny.results(tmp_path / 'whole')
  tally('clocks that were set')


def test_of_two_processes_one_is_refused(tmp_path, tally):
  """And goes on where the other one was killed."""
  program = textwrap.dedent('''
      import sys, time
      from vfljax.runner.machine import disk
      with disk.alone(sys.argv[1]):
        print('in', flush=True)
        time.sleep(600)
  ''')
  child = subprocess.Popen(
      [sys.executable, '-c', program, str(tmp_path)], stdout=subprocess.PIPE
  )
  assert child.stdout is not None and child.stdout.readline() == b'in\n'
  with pytest.raises(UserError, match='Another process'):
    with disk.alone(tmp_path):
      pass
  child.kill()
  child.wait()
  child.stdout.close()
  tiny.run(tmp_path)
  tally('two processes')
