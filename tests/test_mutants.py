"""Recorded mutants still fit the code; and what is said of one that does not.

None of the record is run here; that is `make mutants`.
"""
import os
import re
import subprocess
import sys

import pytest

from tests import mutants

RECORD = mutants.recorded()


def test_every_recorded_mutant_still_applies():
  for mutant in RECORD:
    changed = mutants.applied(mutant)
    compile(changed, mutant.file, 'exec')
  names = [mutant.name for mutant in RECORD]
  assert len(set(names)) == len(names)


def test_every_recorded_mutant_has_tests_that_are_there():
  for mutant in RECORD:
    assert bool(mutant.tests) != bool(mutant.equivalent), mutant.name
    for test in mutant.tests:
      file, _, name = test.partition('::')
      text = (mutants.ROOT / file).read_text()
      wanted = re.escape(name.partition('[')[0])
      assert re.search(rf'^def {wanted}\(', text, re.M), mutant.name


def test_build_md_counts_them():
  killed = [mutant for mutant in RECORD if not mutant.equivalent]
  told = re.search(
      r'There are (\d+): (\d+) were killed when they were entered, (\d+) of '
      r'them by tests written for them. The other (\d+) change nothing',
      ' '.join((mutants.ROOT / 'BUILD.md').read_text().split()),
  )
  assert told and [int(x) for x in told.groups()] == [
      len(RECORD), len(killed), sum(mutant.gap for mutant in killed),
      len(RECORD) - len(killed),
  ]


@pytest.mark.slow
def test_the_cases_that_a_mutant_names_are_there():
  """A change of a test's parameters gives its cases other names."""
  named = {test for mutant in RECORD for test in mutant.tests}
  done = subprocess.run([
      sys.executable, '-m', 'pytest', '--collect-only', '-q',
      '-m', 'not faults', '-p', 'no:cacheprovider',
      *sorted({test.partition('::')[0] for test in named}),
  ], cwd=mutants.ROOT, capture_output=True, text=True, check=True)
  there = set(done.stdout.splitlines())
  there |= {case.partition('[')[0] for case in there}
  assert not named - there


def repository(folder, tests):
  (folder / 'doubling.py').write_text('def twice(x):\n  return x + x\n')
  (folder / 'test_code.py').write_text(
      f'import doubling\n\n\ndef test_twice():\n  {tests}\n'
  )


def fault(text='x + x', replacement='x * x'):
  return mutants.Mutant(
      'a fault', 'doubling.py', text, replacement, ['test_code.py']
  )


@pytest.mark.slow
def test_a_fault_is_killed_by_a_test_that_fails(tmp_path, monkeypatch):
  """And one that does the same is not."""
  monkeypatch.setattr(mutants, 'PRELOADED', [])  # Its test needs no JAX.
  repository(tmp_path, 'assert doubling.twice(3) == 6')
  before = (tmp_path / 'doubling.py').read_text()
  none = fault(replacement='2 * x')._replace(name='no fault')
  killed, survived = mutants.run([fault(), none], tmp_path)
  assert killed['verdict'] == 'killed' and survived['verdict'] == 'SURVIVED'
  assert killed['by'] == 'test_code.py::test_twice' != survived['by']
  assert (tmp_path / 'doubling.py').read_text() == before


@pytest.mark.parametrize('text, times', [('x - x', 0), ('x', 3)])
def test_a_mutant_out_of_date_is_refused(tmp_path, text, times):
  repository(tmp_path, 'pass')
  with pytest.raises(ValueError, match=f'doubling.py {times} times, not once'):
    mutants.applied(fault(text), tmp_path)


def test_an_unknown_name_is_told(capsys):
  assert mutants.main(['no such mutant']) == 2
  assert 'No mutant begins with no such' in capsys.readouterr().out


@pytest.mark.slow
def test_a_copy_has_what_tests_are_made_of(tmp_path):
  """Such as BUILD.md, whose examples keep the contracts, too."""
  root = mutants.copied(tmp_path)
  code = subprocess.run(
      [sys.executable, '-c', 'import tests.contracts as c; print(c.__file__)'],
      cwd=root, env=os.environ | dict(PYTHONPATH=str(root)),
      capture_output=True, text=True,
  )
  assert code.returncode == 0, code.stderr
  assert code.stdout.startswith(str(root))
