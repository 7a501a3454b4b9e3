"""When a report is written again, and when it may stay."""
import os
import shutil

import pytest

from tests import fake_results
from vfljax.report import current, writing
from vfljax.runner.cli.goals import Goal

PAGES = 'summary.md', 'report.html'


@pytest.fixture(scope='module')
def written(tmp_path_factory):
  """A work directory with its report, for all to copy."""
  place = tmp_path_factory.mktemp('written') / 'out'
  work = fake_results.make(place, seeds=2, defenses=('none', 'iso')).path
  assert not current.is_current(work)
  writing.write(work)
  return work


@pytest.fixture
def place(written, tmp_path):
  return shutil.copytree(written, tmp_path / 'out')


def test_what_was_written_is_current(place):
  assert current.is_current(place)
  for file in place.iterdir():  # As a copy has other times.
    os.utime(file, times=(0, 0) if file.name in PAGES else None)
  assert current.is_current(place)


def test_with_other_advice_it_is_not(place):
  """Asked for without a budget after a run with one, nor the other way."""
  asked = Goal(budget=2.0)
  assert not current.is_current(place, asked)
  writing.write(place, goal=asked)
  assert current.is_current(place, asked) and not current.is_current(place)


@pytest.mark.parametrize('name', [
    *PAGES, 'results.jsonl', 'timings.json', 'config.json', 'about.json',
    '.report.json',
])
def test_what_was_changed_is_not(place, name):
  """An edited page, too: it does not say what the results say."""
  file = place / name
  before = file.read_bytes() if file.exists() else b''
  file.write_bytes(before + b' \n{')
  os.utime(file, ns=(0, 0))  # Older than all else, as from a backup.
  assert not current.is_current(place)
  if before:
    file.unlink()
    assert not current.is_current(place)


def test_another_version_of_the_program_writes_another_report(
    place, monkeypatch, tmp_path
):
  package = tmp_path / 'vfljax'
  package.mkdir()
  (package / '__init__.py').write_text('')
  monkeypatch.setattr(current.vfljax, '__file__', str(package / '__init__.py'))
  assert not current.is_current(place)
  current.note(place)
  assert current.is_current(place)
  (package / 'added.py').write_text('')
  assert not current.is_current(place)
