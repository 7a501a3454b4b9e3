"""What is drawn, what it is tried against, and what the record must say."""
import json

import pytest

from tests import drawn_mutants


def test_a_mutant_that_lives_on_has_a_reason():
  rows = json.loads(drawn_mutants.RECORD.read_text())['rows']
  assert rows
  for row in rows:
    assert (row['verdict'] == 'killed') != bool(row.get('equivalent')), row


def test_annotations_imports_and_refusals_are_left_alone():
  code = (
      'import a.b\n'
      'def f(x: int | None = 3) -> int | None:\n'
      '  raise ValueError(x + 1)\n'
      '  y: int | str = x + 1\n'
  )
  spared = {(start[0], start[1]) for start, _ in drawn_mutants._spared(code)}
  assert spared == {(1, 0), (2, 9), (2, 28), (3, 2), (4, 5)}


def test_a_modules_own_tests_come_first():
  quick = list(drawn_mutants.ALWAYS)
  found = drawn_mutants.tests_of('vfljax/defenses/marvell.py')
  assert found[:3] == [*quick, 'tests/defenses/test_marvell.py']
  # A module that others use is tried by their tests.
  found = drawn_mutants.tests_of('vfljax/defenses/randomized.py')
  assert 'tests/defenses/test_gafm.py' in found
  # No test of a ring's product names the module that makes it.
  found = drawn_mutants.tests_of('vfljax/mpc/outer_conv.py')
  assert 'tests/mpc/test_ring.py' in found
  # Nor does one of `passed`, whose name is any word.
  found = drawn_mutants.tests_of('vfljax/passed.py')
  assert found[:3] == [*quick, 'tests/test_misuse.py']
  # Tests that are far from others are near to modules of their own folder.
  # They are quick, and what all modules promise comes last.
  found = drawn_mutants.tests_of('vfljax/data/split.py')
  assert found[0] == 'tests/data/test_split.py'
  assert 'tests/data/test_load.py' in found
  assert found[-4:] == [*quick, '-m', 'not faults and not slow']
  found = drawn_mutants.tests_of('vfljax/contracts/luck.py')
  assert found[0] == 'tests/test_contracts.py'
  found = drawn_mutants.tests_of('vfljax/runner/compiled/replay.py')
  assert found[0] == 'tests/runner/compiled/test_replay.py'
  # A module without tests of its own: by those that notice recorded faults.
  found = drawn_mutants.tests_of('vfljax/types.py')
  assert 'tests/nets/test_modules.py' in found
  # Networks are tried by all of their folder, and where a paper's is tried.
  found = drawn_mutants.tests_of('vfljax/nets/wide_deep.py')
  assert found[2] == 'tests/nets/test_networks.py'
  assert 'tests/nets/test_winograd.py' in found
  assert 'tests/data/test_gafm_data.py' in found
  assert not any('test_gafm' in test for test in drawn_mutants.tests_of(
      'vfljax/nets/winograd.py'
  ))
  found = drawn_mutants.tests_of('vfljax/he/ckks.py')
  assert found[2] == 'tests/he/test_sums.py'
  assert 'tests/he/test_party.py' in found
  found = drawn_mutants.tests_of('experiments/vmask/judges.py')
  first = found.index('tests/experiments/test_vmask_evidence.py')
  assert first < found.index('tests/experiments/test_mid_experiments.py')
  assert found[-2:] == ['-m', 'not faults and not slow']
  assert not drawn_mutants.contracts_of('experiments/vmask/judges.py')
  contracts = drawn_mutants.contracts_of('vfljax/defenses/iso.py')
  assert contracts[-2:] == ['-k', 'iso']
  assert 'tests/defenses/test_contract.py' in contracts


def test_a_change_elsewhere_draws_nothing_else(tmp_path, monkeypatch):
  pytest.importorskip('cosmic_ray')
  one, other = tmp_path / 'one.py', tmp_path / 'other.py'
  one.write_text('def f(x):\n  return 2 * x + 1\n')
  other.write_text('def g(x):\n  return x - 3 if x > 4 else x\n')
  monkeypatch.setattr(drawn_mutants, 'modules', lambda: [one, other])
  offered = drawn_mutants.offered
  monkeypatch.setattr(
      drawn_mutants, 'offered', lambda path: offered(path, tmp_path)
  )

  def drawn():
    found = drawn_mutants.sample(100, 0)
    return [
        drawn_mutants.mutated(m, tmp_path) for m in found if m.file == 'one.py'
    ]

  before = drawn()
  assert len(before) > 2 and one.read_text() not in before
  other.write_text('def g(x):\n  return 7 * x\n')
  assert drawn() == before


def test_a_folder_or_a_module_can_be_drawn_from_alone(tmp_path, monkeypatch):
  pytest.importorskip('cosmic_ray')
  files = [tmp_path / name for name in ('room/one.py', 'room/two.py', 'one.py')]
  (tmp_path / 'room').mkdir()
  for file in files:
    file.write_text('def f(x):\n  return 2 * x + 1\n')
  monkeypatch.setattr(drawn_mutants, 'modules', lambda: files)
  offered = drawn_mutants.offered
  monkeypatch.setattr(
      drawn_mutants, 'offered', lambda path: offered(path, tmp_path)
  )
  drawn = lambda *names: {m.file for m in drawn_mutants.sample(99, 0, names)}
  assert drawn('room') == {'room/one.py', 'room/two.py'}
  assert drawn('one') == {'room/one.py', 'one.py'}
  assert len(drawn()) == 3
