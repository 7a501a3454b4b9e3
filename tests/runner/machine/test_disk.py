"""Moments of writing at which tests of faults stop a run."""
import errno
import itertools
from pathlib import Path

import pytest

from vfljax.runner.machine import disk


def test_a_fault_comes_at_the_moment_that_was_asked_for(monkeypatch):
  monkeypatch.setattr(disk, '_FAULT', ['*/b', '2', 'full'])
  monkeypatch.setattr(disk, '_MOMENTS', itertools.count(1))
  for file in ('a/a', 'a/b', 'a/a'):
    disk.fault(Path(file))
  with pytest.raises(OSError, match='a/b') as error:
    disk.fault(Path('a/b'))
  assert error.value.errno == errno.ENOSPC
  disk.fault(Path('a/b'))
  monkeypatch.setattr(disk, '_FAULT', [''])
  disk.fault(Path('a/b'))
